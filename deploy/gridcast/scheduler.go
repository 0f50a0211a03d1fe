package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
)

// schedulerCmd builds when something falls due, and shows operators the console.
type schedulerCmd struct {
	builderFlags `embed:""`
	consoleFlags `embed:""`
	AdminListen  string `help:"Where metrics and profiles are served; default: nowhere." placeholder:"HOST:PORT"`
}

func (c *schedulerCmd) Run(ctx context.Context, s *streams) error {
	b, clock, err := c.builder(ctx, s)
	if err != nil {
		return err
	}
	conductor := newConductor(b, clock, s.log)
	bar := newProgress(s.err, "building")
	err = conductor.start(ctx, bar.phase)
	bar.finish()
	if err != nil {
		return err
	}
	operators, err := c.openConsole(ctx, conductor)
	if err != nil {
		return err
	}
	registry := newRegistry()
	registry.MustRegister(conductor.metrics, conductor.jobs.Collector())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return conductor.run(ctx) })
	group.Go(func() error { return operators.serve(ctx) })
	if c.AdminListen != "" {
		group.Go(func() error { return serveMetrics(ctx, c.AdminListen, registry) })
	}
	if operators != nil {
		s.log.Info("scheduler runs", "store", b.Store.String(), "console", operators.url(), "token_file", c.OperatorTokenFile)
	}
	return group.Wait()
}

// newRegistry returns a registry with the metrics of the runtime and the process.
func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// serveMetrics serves metrics and profiles until ctx ends.
func serveMetrics(ctx context.Context, address string, registry *prometheus.Registry) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for metrics on %s: %w; choose another address with --admin-listen", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
