package main

import (
	"context"
	"fmt"
	"net"

	"golang.org/x/sync/errgroup"

	"gridcast/builder"
	"gridcast/deploy/clock"
	"gridcast/deploy/console"
	"gridcast/deploy/widget"
	"gridcast/edge"
	"gridcast/edge/adminport"
	"gridcast/snapshots/blob"
)

type serveCmd struct {
	builderFlags `embed:""`
	edgeFlags    `embed:""`
	consoleFlags `embed:""`
	sourceFlags  `embed:""`
	webhookFlags `embed:""`
	Demo         bool    `help:"Replay a race weekend of the embedded seasons in a new store under .var/demo."`
	DemoSpeed    float64 `help:"Race seconds in a real second of the demo." default:"300"`

	startKey string // for the start page of the demo
}

func (c *serveCmd) Run(ctx context.Context, s *streams) error {
	if c.Demo {
		return c.runDemo(ctx, s)
	}
	clock, err := c.clock()
	if err != nil {
		return err
	}
	if _, err := c.policy(); err != nil {
		return err
	}
	// An edge only reads. A store that cannot be written is served all the same, and one that is
	// not there yet is made.
	store, err := c.open(ctx)
	if err != nil {
		var readErr error
		if store, readErr = c.openToRead(ctx); readErr != nil {
			return err
		}
	}
	open := func(ctx context.Context) (*builder.Builder, error) {
		store, err := c.open(ctx)
		if err != nil {
			return nil, err
		}
		return c.builderOn(ctx, s, store, kindOf(clock), c.instant(clock))
	}
	return c.serve(ctx, s, store, clock, open, func(address, console string) error {
		if console == "" {
			s.printf("gridcast serves %s from %s\n", address, store)
			return nil
		}
		s.printf("gridcast serves %s from %s, operators at %s with the token in %s\n", address, store, console, c.OperatorTokenFile)
		return nil
	})
}

// serve serves what is published until ctx ends, and builds beside it. Once requests are answered
// it calls started with the addresses of the API and of the operator's console, which may be
// empty.
func (c *serveCmd) serve(ctx context.Context, s *streams, store blob.Store, clock clock.Clock,
	open func(context.Context) (*builder.Builder, error), started func(address, console string) error,
) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; choose another address with --listen", cfg.Listen, err)
	}
	limits, done, err := c.limits(ctx, s.log)
	if err != nil {
		return err
	}
	defer done()
	b := &backstage{clock: clock, tiers: cfg.Tiers, registry: adminport.NewRegistry(), log: s.log, sources: &c.sourceFlags, webhooks: &c.webhookFlags}
	e, err := edge.New(cfg, edge.Deps{
		Store: store, Log: s.log, RaceTime: clock.Race, Listener: listener, Registry: b.registry, Limits: limits, Builder: b.trouble,
		Widgets: widget.Releases(), Start: func() edge.StartPage {
			if c.startKey == "" {
				return edge.StartPage{} // the console is not for the readers of the API
			}
			return edge.StartPage{Key: c.startKey, Console: b.port.url()}
		},
	})
	if err != nil {
		return err
	}
	if b.port, err = c.consoleFlags.listen(ctx, b, console.Local(e)); err != nil {
		return err
	}
	scheme := "http"
	if cfg.TLSCert != "" {
		scheme = "https"
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return e.Run(ctx) })
	group.Go(func() error {
		return b.run(ctx, newBar(s.err), open, func(ctx context.Context) bool { return published(ctx, store) })
	})
	group.Go(func() error { return b.port.serve(ctx) })
	group.Go(func() error {
		select {
		case <-e.Started():
			notifyReady(ctx, s.log)
			return started(fmt.Sprintf("%s://%s", scheme, listener.Addr()), b.port.url())
		case <-ctx.Done():
			return nil
		}
	})
	return group.Wait()
}
