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
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/builder"
	"gridcast/builder/ledger"
	"gridcast/deploy/clock"
	"gridcast/deploy/console"
	"gridcast/deploy/service"
	"gridcast/edge/adminport"
	"gridcast/edge/keys"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
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

// operatorPort is the console's, listening from the start of the process on. Until there is a
// service it says why.
type operatorPort struct {
	listener net.Listener
	token    string
	edges    []console.Edge
	log      *slog.Logger
	problem  func() string // why there is no service yet
	ready    func() bool
	console  atomic.Pointer[console.Console]
	handler  atomic.Pointer[http.Handler] // of the console
}

// listen opens the operator's port of a process that local edges share. It returns nil if there is
// to be none.
func (f *consoleFlags) listen(ctx context.Context, b *backstage, local ...console.Edge) (*operatorPort, error) {
	if f.OperatorListen == "" {
		return nil, nil //nolint:nilnil // no port is no error, and the methods of nil do nothing
	}
	token, err := f.token()
	if err != nil {
		return nil, err
	}
	p := &operatorPort{token: token, edges: local, log: b.log, problem: b.trouble, ready: b.started.Load}
	for _, address := range f.Edges {
		p.edges = append(p.edges, console.Remote(address))
	}
	if p.listener, err = adminport.Listen(ctx, f.OperatorListen); err != nil {
		return nil, fmt.Errorf("listen for operators on %s: %w; choose another address with --operator-listen", f.OperatorListen, err)
	}
	if address, ok := p.listener.Addr().(*net.TCPAddr); ok && !address.IP.IsLoopback() {
		b.log.Warn("the operator's port is not on loopback; have a proxy before it speak TLS", "address", address)
	}
	return p, nil
}

// open has the console answer for a service.
func (p *operatorPort) open(ctx context.Context, running *service.Service, tiers keys.Tiers) error {
	if p == nil {
		return nil
	}
	actions, err := running.Operator(ctx, tiers)
	if err != nil {
		return err
	}
	page, err := console.New(console.Config{
		Token: p.token, Operator: actions, Log: p.log, Speed: running.Speed(), Address: p.listener.Addr(), Edges: p.edges,
		Sources: running.Sources, Problem: p.problem,
	})
	if err != nil {
		return err
	}
	handler := page.Handler()
	p.console.Store(page)
	p.handler.Store(&handler)
	return nil
}

// looks has each edge that the port knows of look for a new version.
func (p *operatorPort) looks() []func(context.Context) {
	if p == nil {
		return nil
	}
	looks := make([]func(context.Context), len(p.edges))
	for i, e := range p.edges {
		looks[i] = e.Look
	}
	return looks
}

// ServeHTTP answers as the console does, once there is one. /healthz says that the process
// answers, /readyz that versions are built.
func (p *operatorPort) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler := p.handler.Load()
	switch {
	case r.URL.Path == "/healthz":
		_, _ = w.Write([]byte("ok\n")) // who went away needs no answer
		return
	case r.URL.Path == "/readyz" && handler != nil && p.ready():
		_, _ = w.Write([]byte("ok\n"))
		return
	case r.URL.Path == "/readyz":
		http.Error(w, "versions are not built; the log and the console say why", http.StatusServiceUnavailable)
		return
	case handler != nil:
		(*handler).ServeHTTP(w, r)
		return
	}
	w.Header().Set("Retry-After", "1")
	http.Error(w, "the scheduler has not started yet; its log says why", http.StatusServiceUnavailable)
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
	server := adminport.Server(p)
	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(stopped)
		if page := p.console.Load(); page != nil {
			page.Close() // ends streams and runs, so that the server can drain
		}
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), service.StopGrace)
		defer cancel()
		_ = server.Shutdown(drain) // what is left then is cut off with the process
	})
	if err := server.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve operators: %w", err)
	}
	<-stopped
	return nil
}

// backstage is what a process runs beside an edge, or without one: the builder, the jobs, the
// console.
type backstage struct {
	clock    clock.Clock
	tiers    keys.Tiers
	registry *prometheus.Registry
	log      *slog.Logger
	port     *operatorPort
	sources  *sourceFlags
	webhooks *webhookFlags

	problem atomic.Pointer[string] // why the service has not started; nil: it has, or is about to
	started atomic.Bool            // versions are built
}

// trouble says why versions are not built; empty: they are.
func (b *backstage) trouble() string {
	if text := b.problem.Load(); text != nil {
		return *text
	}
	return ""
}

// The pauses between attempts to start.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// run opens a builder and runs the service until ctx ends. What fails is tried again, since an
// edge serves meanwhile what is published; where published says that nothing is, or the command
// line is wrong, the error is returned.
func (b *backstage) run(ctx context.Context, bar *bar, open func(context.Context) (*builder.Builder, error), published func(context.Context) bool) error {
	var running *service.Service
	attempt := func() error {
		if running == nil {
			built, err := open(ctx)
			if err != nil {
				return err
			}
			sources, err := b.sources.sources(ctx, built, b.clock.IsSystem(), b.log)
			if err != nil {
				return err
			}
			sender, err := b.webhooks.sender(b.log)
			if err != nil {
				return err
			}
			running = service.New(built, b.clock, b.log, b.registry)
			running.Ingest(sources)
			running.Deliver(sender)
			running.Tell(b.port.looks()...)
		}
		if b.port != nil && b.port.console.Load() == nil {
			if err := b.port.open(ctx, running, b.tiers); err != nil {
				return err
			}
		}
		return running.Start(ctx, bar.show)
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := attempt()
		bar.finish()
		var usage usageError
		switch {
		case err == nil:
			b.problem.Store(nil)
			b.started.Store(true)
			return running.Run(ctx)
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was told to stop, and a start that was broken off is no failure
		case errors.As(err, &usage), errors.Is(err, ledger.ErrKind), !published(ctx):
			return err
		}
		text := err.Error()
		b.problem.Store(&text)
		b.log.Error("versions are not built; what is published is served meanwhile", "err", err, "again_in", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// published says whether a store has a version, or had one before it was damaged.
func published(ctx context.Context, store blob.Store) bool {
	pointer, _, err := snapshots.LoadPointer(ctx, store)
	return err != nil || pointer.Version > 0
}
