package main

import (
	"context"
	"fmt"
	"net"

	"golang.org/x/sync/errgroup"

	"gridcast/builder"
	"gridcast/deploy/clock"
	"gridcast/deploy/console"
	"gridcast/deploy/operator"
	"gridcast/edge"
)

type serveCmd struct {
	builderFlags `embed:""`
	edgeFlags    `embed:""`
	consoleFlags `embed:""`
	sourceFlags  `embed:""`
	Demo         bool    `help:"Replay a race weekend of the embedded seasons in a new store under .var/demo."`
	DemoSpeed    float64 `help:"Race seconds in a real second of the demo." default:"300"`
}

func (c *serveCmd) Run(ctx context.Context, s *streams) error {
	if c.Demo {
		return c.runDemo(ctx, s)
	}
	b, clock, err := c.builder(ctx, s)
	if err != nil {
		return err
	}
	return c.serve(ctx, s, b, clock, func(address, console string) error {
		if console == "" {
			return s.printf("gridcast serves %s from %s\n", address, b.Store)
		}
		return s.printf("gridcast serves %s from %s, operators at %s with the token in %s\n", address, b.Store, console, c.OperatorTokenFile)
	})
}

// serve builds, then conducts and serves until ctx ends. Once requests are answered it calls
// started with the addresses of the API and of the operator's console, which may be empty.
func (c *serveCmd) serve(ctx context.Context, s *streams, b *builder.Builder, clock clock.Clock, started func(address, console string) error) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; choose another address with --listen", cfg.Listen, err)
	}
	registry := operator.NewRegistry()
	limits, done, err := c.limits(ctx, s.log)
	if err != nil {
		return err
	}
	defer done()
	e, err := edge.New(cfg, edge.Deps{
		Store: b.Store, Log: s.log, RaceTime: clock.Race, Listener: listener, Registry: registry, Limits: limits,
	})
	if err != nil {
		return err
	}
	service := operator.NewService(b, clock, s.log, registry)
	sources, err := c.sources(ctx, b, clock.IsSystem(), s.log)
	if err != nil {
		return err
	}
	service.Ingest(sources)
	bar := newProgress(s.err, "building")
	err = service.Start(ctx, bar.phase)
	bar.finish()
	if err != nil {
		return err
	}
	operators, err := c.openConsole(ctx, service, cfg.Tiers, s.log, console.Local(e))
	if err != nil {
		return err
	}
	scheme := "http"
	if cfg.TLSCert != "" {
		scheme = "https"
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return e.Run(ctx) })
	group.Go(func() error { return service.Run(ctx) })
	group.Go(func() error { return operators.serve(ctx) })
	group.Go(func() error {
		select {
		case <-e.Started():
			return started(fmt.Sprintf("%s://%s", scheme, listener.Addr()), operators.url())
		case <-ctx.Done():
			return nil
		}
	})
	return group.Wait()
}
