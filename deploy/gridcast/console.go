package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"gridcast/deploy/console"
	"gridcast/deploy/operator"
	"gridcast/edge/keys"
)

// consoleFlags is what the operator's port is told.
type consoleFlags struct {
	OperatorListen    string   `help:"Where operators find the console; empty: nowhere. Keep it private: whoever has the token may do everything." default:"127.0.0.1:8090" placeholder:"HOST:PORT"`
	OperatorTokenFile string   `help:"A file with the token that operators sign in with; made with a new one if it is not there." default:".var/operator-token" placeholder:"FILE" type:"path"`
	Edges             []string `help:"The admin ports of the edges, for the console." placeholder:"URL"`
}

// token reads the operator's token, or makes one.
func (f *consoleFlags) token() (string, error) {
	data, err := os.ReadFile(f.OperatorTokenFile)
	if errors.Is(err, fs.ErrNotExist) {
		return f.makeToken()
	}
	if err != nil {
		return "", fmt.Errorf("read the operator's token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if len(token) < console.MinToken {
		return "", fmt.Errorf("read the operator's token: %s holds %d characters, want at least %d", f.OperatorTokenFile, len(token), console.MinToken)
	}
	return token, nil
}

func (f *consoleFlags) makeToken() (string, error) {
	if err := os.MkdirAll(filepath.Dir(f.OperatorTokenFile), 0o750); err != nil {
		return "", fmt.Errorf("make the operator's token: %w", err)
	}
	token := rand.Text()
	file, err := os.OpenFile(f.OperatorTokenFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("make the operator's token: %w", err)
	}
	_, err = fmt.Fprintln(file, token)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("make the operator's token: %w", err)
	}
	return token, nil
}

// operatorPort is the console, listening.
type operatorPort struct {
	console  *console.Console
	listener net.Listener
	server   *http.Server
}

// openConsole opens the operator's port of a service, which local edges share the process with.
// It returns nil if there is to be none.
func (f *consoleFlags) openConsole(ctx context.Context, service *operator.Service, tiers keys.Tiers, log *slog.Logger, local ...console.Edge) (*operatorPort, error) {
	if f.OperatorListen == "" {
		return nil, nil //nolint:nilnil // no port is no error, and serve of nil does nothing
	}
	token, err := f.token()
	if err != nil {
		return nil, err
	}
	deeds, err := service.Operator(ctx, tiers)
	if err != nil {
		return nil, err
	}
	edges := local
	for _, address := range f.Edges {
		edges = append(edges, console.Remote(address))
	}
	listener, err := operator.Listen(ctx, f.OperatorListen)
	if err != nil {
		return nil, fmt.Errorf("listen for operators on %s: %w; choose another address with --operator-listen", f.OperatorListen, err)
	}
	if address, ok := listener.Addr().(*net.TCPAddr); ok && !address.IP.IsLoopback() {
		log.Warn("the operator's port is not on loopback; have a proxy before it speak TLS", "address", address)
	}
	page, err := console.New(console.Config{
		Token: token, Operator: deeds, Log: log, Speed: service.Speed(), Address: listener.Addr(), Edges: edges, Sources: service.Sources,
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &operatorPort{console: page, listener: listener, server: operator.Server(page.Handler())}, nil
}

// url is where an operator finds the console; empty if there is none.
func (p *operatorPort) url() string {
	if p == nil {
		return ""
	}
	return "http://" + p.listener.Addr().String()
}

// serve answers operators until ctx ends.
func (p *operatorPort) serve(ctx context.Context) error {
	if p == nil {
		return nil
	}
	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(stopped)
		p.console.Close() // ends streams and runs, so that the server can drain
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), operator.StopGrace)
		defer cancel()
		_ = p.server.Shutdown(drain) // what is left then is cut off with the process
	})
	if err := p.server.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve operators: %w", err)
	}
	<-stopped
	return nil
}
