// Package adminport is what every private port has in common, of an edge, a scheduler or the console:
// limits of time, size and connections, a look at the name it is asked by, metrics and profiles.
package adminport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"
)

// NewRegistry returns a registry with the metrics of the runtime and the process.
func NewRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// What a private port grants. An answer that takes longer, such as a stream or a profile, lifts
// the limits of time for itself.
const (
	maxConnections = 256
	maxHeader      = 16 << 10
	requestTime    = 30 * time.Second // to send a request, its body too
	answerTime     = 2 * time.Minute
)

// Listen opens a private port, for at most maxConnections connections at a time: those of a port
// in the process of an edge are taken from the clients.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return netutil.LimitListener(listener, maxConnections), nil
}

// Server returns the server of a private port, with limits of time and size.
func Server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: requestTime, WriteTimeout: answerTime,
		IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
	}
}

// LocalHosts refuses, where a port is on loopback, requests for the name of another host: a page
// that has its own name resolve to this machine gets to the port, but cannot hide its name.
func LocalHosts(at net.Addr, next http.Handler) http.Handler {
	address, ok := at.(*net.TCPAddr)
	if !ok || !address.IP.IsLoopback() {
		return next // a proxy before it answers to whatever names it likes
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

// Mux returns what every admin port serves: metrics and profiles.
func Mux(registry *prometheus.Registry) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	for path, profile := range map[string]http.HandlerFunc{
		"GET /debug/pprof/": pprof.Index, "GET /debug/pprof/profile": pprof.Profile,
		"GET /debug/pprof/trace": pprof.Trace, "GET /debug/pprof/symbol": pprof.Symbol,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // a profile takes as long as it is asked for
			profile(w, r)
		})
	}
	return mux
}

// Serve serves an admin port until ctx ends.
func Serve(ctx context.Context, address string, handler http.Handler) error {
	listener, err := Listen(ctx, address)
	if err != nil {
		return fmt.Errorf("listen for metrics on %s: %w; choose another address with --admin-listen", address, err)
	}
	server := Server(LocalHosts(listener.Addr(), handler))
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
