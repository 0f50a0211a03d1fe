package edge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gridcast/edge/keys"
	"gridcast/schemas/wire"
)

// adminServer serves metrics, profiles and the status on the admin address. It is net/http: nothing here
// is asked often, and pprof speaks it.
func (e *Edge) adminServer() (server, error) {
	listener, err := net.Listen("tcp", e.cfg.AdminListen)
	if err != nil {
		return server{}, fmt.Errorf("listen for metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(e.deps.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /status", e.showStatus)
	mux.HandleFunc("GET /usage", e.showUsage)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	e.log.Info("edge shows metrics", "address", listener.Addr().String())
	return server{
		serve: func() error {
			if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve metrics: %w", err)
			}
			return nil
		},
		shutdown: func(ctx context.Context) error {
			if err := s.Shutdown(ctx); err != nil {
				return fmt.Errorf("stop metrics: %w", err)
			}
			return nil
		},
	}, nil
}

// showStatus answers as /status of the API does, for the operator's console: the API's own
// address may be one that balances over several edges.
func (e *Edge) showStatus(w http.ResponseWriter, _ *http.Request) { e.show(w, e.Status()) }

// showUsage answers with what each key asked of this edge. It is a list and no metric: clients
// come and go, and a label would keep every one of them for ever.
func (e *Edge) showUsage(w http.ResponseWriter, _ *http.Request) { e.show(w, e.Usage()) }

// Usage lists what each key asked of this edge since it was started.
func (e *Edge) Usage() []keys.KeyUsage {
	table := e.keys.Table()
	if table == nil {
		return nil
	}
	return table.Usage()
}

// show answers with a value in the envelope of the API.
func (e *Edge) show(w http.ResponseWriter, v any) {
	body, err := wire.Marshal(wire.Wrap(v, e.deps.RaceTime(time.Now())))
	if err != nil {
		panic("BUG: admin answer: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // a console that went away needs no answer
}
