package servers

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sync/errgroup"

	"gridcast/builder"
	"gridcast/builder/bulk"
	"gridcast/deploy/console"
	"gridcast/deploy/flags"
	"gridcast/deploy/service"
	"gridcast/deploy/terminal"
	"gridcast/deploy/widget"
	"gridcast/edge"
	"gridcast/edge/adminport"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/clock"
)

// Serve is builder, scheduler and edge in one process.
type Serve struct {
	flags.Builder
	flags.Edge
	flags.Console
	flags.Sources
	flags.Webhooks
	NewStore  bool    `help:"Open a new ledger in an empty store although this machine has served versions of that store. The edge then forgets its copy." env:"-"`
	Demo      bool    `help:"Replay a race weekend of the embedded seasons in a new store under .var/demo."`
	DemoSpeed float64 `help:"Race seconds in a real second of the demo." default:"300"`
	Sandbox   bool    `help:"Replay race weekends in a simulated world too, one an hour; keys of the tier sandbox are answered from it."`

	startKey string       // for the start page of the demo
	laps     service.Laps // of the demo's races
}

// Run serves and builds until ctx ends.
func (c *Serve) Run(ctx context.Context, s *terminal.Streams) error {
	if c.Demo {
		return c.runDemo(ctx, s)
	}
	if s.Given["demo-speed"] {
		return terminal.Usagef("--demo-speed needs --demo")
	}
	clock, err := c.Race()
	if err != nil {
		return err
	}
	if _, err := c.Policy(); err != nil {
		return err
	}
	if c.NewStore && c.CacheDir != "" && c.Lost(ctx, c.Storage) != nil {
		if err := edge.Forget(c.CacheDir); err != nil {
			return fmt.Errorf("--new-store: %w", err)
		}
	}
	// Open creates a store that does not exist, unless it was lost. The edge only reads, so a store that cannot be
	// written is served too.
	c.Storage.Log = s.Log
	store, err := c.open(ctx)
	if err != nil {
		var readErr error
		if store, readErr = c.OpenToRead(ctx); readErr != nil {
			if store, err = unmounted(ctx, s, &c.Edge, c.Storage, err); err != nil {
				return err
			}
		} else if _, lost := errors.AsType[*flags.LostError](err); lost {
			store = serveCopy(s, store, err)
		}
	}
	open := func(ctx context.Context) (*builder.Builder, error) {
		store, err := c.open(ctx)
		if err != nil {
			return nil, err
		}
		return c.On(ctx, s, store, flags.LedgerKind(clock), c.Instant(clock))
	}
	return c.serve(ctx, s, store, clock, open, func(_ context.Context, address, console string) {
		if console == "" {
			s.Printf("gridcast serves %s from %s\n", address, store)
		} else {
			s.Printf("gridcast serves %s from %s, operators at %s with the token in %s\n", address, store, console, c.OperatorTokenFile)
		}
	})
}

// localAdmin is the address of metrics if none is configured. Only this machine reaches it.
const localAdmin = "127.0.0.1:9100"

// admin opens localAdmin. It returns nil if another address is configured, or if localAdmin is taken, which it logs: a
// service without metrics is better than none.
func (c *Serve) admin(ctx context.Context, s *terminal.Streams) net.Listener {
	if c.AdminListen != "" || s.Given["admin-listen"] {
		return nil
	}
	listener, err := adminport.Listen(ctx, localAdmin)
	if err != nil {
		s.Log.Warn("metrics are not served; --admin-listen HOST:PORT takes another port", "err", err)
		return nil
	}
	return listener
}

// open opens the store, and creates it unless it was lost.
func (c *Serve) open(ctx context.Context) (blob.Store, error) {
	if err := c.Lost(ctx, c.Storage); err != nil {
		return nil, err
	}
	return c.Open(ctx)
}

// serve serves the published version and builds new ones until ctx ends. When the edge answers, it
// calls started with the URL of the API and the URL of the console; the second is empty without a
// console.
func (c *Serve) serve(ctx context.Context, s *terminal.Streams, store blob.Store, clock clock.Clock,
	open func(context.Context) (*builder.Builder, error), started func(ctx context.Context, address, console string),
) error {
	cfg, err := c.Config()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{KeepAlive: -1}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; choose another address with --listen", cfg.Listen, err)
	}
	limits, done, err := c.Limits(ctx, s.Log)
	if err != nil {
		return err
	}
	defer done()
	w := &worker{clock: clock, tiers: cfg.Tiers, registry: adminport.NewRegistry(s.Version, s.Commit), streams: s, sources: &c.Sources, webhooks: &c.Webhooks, laps: c.laps, edges: c.Console.Edges, drained: make(chan struct{})}
	if c.Sandbox {
		w.sandbox = newSandbox(c.Builder, s)
	}
	_, w.apiPort, _ = net.SplitHostPort(listener.Addr().String())
	e, err := edge.New(cfg, edge.Deps{
		Store: store, Log: s.Log, Release: s.Version, RaceTime: clock.Race, Listener: listener, Admin: c.admin(ctx, s), Registry: w.registry, Limits: limits, Builder: w.trouble,
		Downloads: bulk.Downloads{}, Widgets: widget.Releases(), Start: func() edge.StartPage {
			if c.startKey == "" {
				return edge.StartPage{} // readers of the API must not find the console
			}
			return edge.StartPage{Key: c.startKey, Console: w.port.url()}
		},
	})
	if err != nil {
		return err
	}
	if w.port, err = listen(ctx, &c.Console, w, console.Local(e)); err != nil {
		return err
	}
	scheme := "http"
	if cfg.TLSCert != "" {
		scheme = "https"
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return returnMemory(ctx) })
	group.Go(func() error {
		defer close(w.drained)
		return e.Run(ctx)
	})
	group.Go(func() error { return w.run(ctx, store, open) })
	group.Go(func() error { return w.port.serve(ctx) })
	group.Go(func() error { notifyStarted(ctx, e.Started(), s.Log); return nil })
	group.Go(func() error {
		select {
		case <-e.Started():
			started(ctx, fmt.Sprintf("%s://%s", scheme, listener.Addr()), w.port.url())
		case <-ctx.Done():
		}
		return nil
	})
	return group.Wait()
}
