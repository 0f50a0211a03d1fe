package servers

import (
	"context"
	"net"

	"golang.org/x/sync/errgroup"

	"gridcast/builder"
	"gridcast/deploy/flags"
	"gridcast/deploy/terminal"
	"gridcast/edge/adminport"
)

// Scheduler builds when something falls due, and shows operators the console.
type Scheduler struct {
	flags.Builder
	flags.Console
	flags.Sources
	flags.Webhooks
	flags.KeyTiers
	AdminListen string `help:"Where metrics and profiles are served; default: nowhere." placeholder:"HOST:PORT"`
	Sandbox     bool   `help:"Replay race weekends in a simulated world too, one an hour; edges answer keys of the tier sandbox from it."`
}

// Run builds until ctx ends.
func (c *Scheduler) Run(ctx context.Context, s *terminal.Streams) error {
	clock, err := c.Race()
	if err != nil {
		return err
	}
	tiers, err := c.All()
	if err != nil {
		return err
	}
	c.Storage.Log = s.Log
	store, err := c.Open(ctx)
	if err != nil {
		return err
	}
	var admin net.Listener
	if c.AdminListen != "" {
		if admin, err = adminport.Open(ctx, c.AdminListen); err != nil {
			return err
		}
	}
	w := &worker{clock: clock, tiers: tiers, registry: adminport.NewRegistry(s.Version, s.Commit), streams: s, sources: &c.Sources, webhooks: &c.Webhooks, edges: c.Edges}
	if c.Sandbox {
		w.sandbox = newSandbox(c.Builder, s)
	}
	if w.port, err = listen(ctx, &c.Console, w); err != nil {
		return err
	}
	open := func(ctx context.Context) (*builder.Builder, error) {
		return c.On(ctx, s, store, flags.LedgerKind(clock), c.Instant(clock))
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return returnMemory(ctx) })
	group.Go(func() error { return w.run(ctx, store, open) })
	group.Go(func() error { return w.port.serve(ctx) })
	if admin != nil {
		group.Go(func() error { return adminport.Serve(ctx, admin, adminport.Mux(w.registry)) })
	}
	notifyReady(ctx, s.Log)
	s.Log.Info("scheduler runs", "store", store.String(), "console", w.port.url(), "token_file", c.OperatorTokenFile)
	return group.Wait()
}
