// Package adminport is common to every private port, of an edge, a scheduler or the console:
// limits of time, size and connections, a check of the host name, metrics and profiles.
package adminport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gridcast/snapshots/watch"
)

// NewRegistry returns a registry with the release and the commit of the program, and the metrics of the runtime, the process and its
// watched files.
func NewRegistry(release, commit string) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gridcast_build_info", Help: "1, with the release of the program, its commit and its version of Go.",
		ConstLabels: prometheus.Labels{"version": release, "commit": commit, "goversion": runtime.Version()},
	}, func() float64 { return 1 }))
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), watch.Collector())
	return registry
}

// The limits of a private port. A longer answer, such as a stream or a profile, lifts
// the limits of time for itself.
const (
	maxConnections = 256
	maxOfAddress   = 64
	maxSilence     = 2 * time.Second // of a connection, when another one needs its place
	maxHeader      = 16 << 10
	requestTime    = 30 * time.Second // for a whole request with its body
	answerTime     = 2 * time.Minute
)

// Listen opens a private port, for at most maxConnections connections at a time, because a private port
// in the process of an edge shares its file descriptors with clients. An address can hold a share of them.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &bounded{Listener: listener, silence: maxSilence}, nil
}

// Server returns the server of a private port, with limits of time and size.
func Server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: requestTime, WriteTimeout: answerTime,
		IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
	}
}

// LocalHosts refuses requests for the name of another host, where a port is on loopback. A page
// can resolve its own name to this machine and reach the port, but it cannot hide its name.
func LocalHosts(at net.Addr, next http.Handler) http.Handler {
	address, ok := at.(*net.TCPAddr)
	if !ok || !address.IP.IsLoopback() {
		return next // a proxy in front may use any name
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); (err != nil || !ip.IsLoopback()) && host != "localhost" {
			http.Error(w, "this port answers only to localhost", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Mux returns the handler of every admin port: metrics and profiles.
func Mux(registry *prometheus.Registry) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	for path, profile := range map[string]http.HandlerFunc{
		"GET /debug/pprof/": pprof.Index, "GET /debug/pprof/profile": pprof.Profile,
		"GET /debug/pprof/trace": pprof.Trace, "GET /debug/pprof/symbol": pprof.Symbol,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // a profile takes the requested time
			profile(w, r)
		})
	}
	return mux
}

// Open opens an admin port.
func Open(ctx context.Context, address string) (net.Listener, error) {
	listener, err := Listen(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("listen for metrics on %s: %w; choose another address with --admin-listen", address, err)
	}
	return listener, nil
}

// scrapeGrace is the time in which a running answer of an admin port, such as a scrape, can end after the signal.
const scrapeGrace = 2 * time.Second

// Serve serves an admin port until ctx ends, and lets running answers end for a moment.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	if err := Run(ctx, listener, Server(LocalHosts(listener.Addr(), handler)), scrapeGrace); err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

// Run serves until ctx ends, lets running answers end for at most grace, and cuts off the rest.
func Run(ctx context.Context, listener net.Listener, server *http.Server, grace time.Duration) error {
	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(stopped)
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		_ = server.Shutdown(drain) // Close cuts off the answers that it leaves
		_ = server.Close()
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped
	return nil
}

// bounded is a listener with a bound on its open connections, of all clients and of one address. At a bound
// a new connection takes the place of the one that has been silent for longest. So a client that never
// finishes its requests keeps nobody waiting. The new connection is closed if no other is silent.
type bounded struct {
	net.Listener
	silence time.Duration

	mu   sync.Mutex // guards open
	open []*tracked
}

// tracked is an open connection of a bounded listener.
type tracked struct {
	net.Conn
	listener *bounded
	address  string
	active   atomic.Int64 // time of the latest byte, Unix nanoseconds
}

// Accept implements [net.Listener].
func (l *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &tracked{Conn: conn, listener: l}
		c.address, _, _ = net.SplitHostPort(conn.RemoteAddr().String())
		c.active.Store(time.Now().UnixNano())
		if l.admit(c) {
			return c, nil
		}
		_ = conn.Close()
	}
}

// admit makes room for a connection, and reports false if there is none.
func (l *bounded) admit(c *tracked) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	rivals := slices.DeleteFunc(slices.Clone(l.open), func(other *tracked) bool { return other.address != c.address })
	switch {
	case len(rivals) >= maxOfAddress:
	case len(l.open) >= maxConnections:
		rivals = l.open
	default:
		l.open = append(l.open, c)
		return true
	}
	silent := slices.MinFunc(rivals, func(a, b *tracked) int { return cmp.Compare(a.active.Load(), b.active.Load()) })
	if c.active.Load()-silent.active.Load() < int64(l.silence) {
		return false
	}
	_ = silent.Conn.Close()
	l.open[slices.Index(l.open, silent)] = c
	return true
}

// Read implements [net.Conn].
func (c *tracked) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.active.Store(time.Now().UnixNano())
	return n, err
}

// Write implements [net.Conn].
func (c *tracked) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.active.Store(time.Now().UnixNano())
	return n, err
}

// Close implements [net.Conn].
func (c *tracked) Close() error {
	c.listener.mu.Lock()
	c.listener.open = slices.DeleteFunc(c.listener.open, func(other *tracked) bool { return other == c })
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
