package main

import (
	"context"

	"golang.org/x/sync/errgroup"

	"gridcast/builder"
	"gridcast/edge/adminport"
)

// schedulerCmd builds when something falls due, and shows operators the console.
type schedulerCmd struct {
	builderFlags `embed:""`
	consoleFlags `embed:""`
	sourceFlags  `embed:""`
	webhookFlags `embed:""`
	tierFlags    `embed:""`
	AdminListen  string `help:"Where metrics and profiles are served; default: nowhere." placeholder:"HOST:PORT"`
}

func (c *schedulerCmd) Run(ctx context.Context, s *streams) error {
	clock, err := c.clock()
	if err != nil {
		return err
	}
	tiers, err := c.tiers()
	if err != nil {
		return err
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	b := &backstage{clock: clock, tiers: tiers, registry: adminport.NewRegistry(), log: s.log, sources: &c.sourceFlags, webhooks: &c.webhookFlags}
	if b.port, err = c.consoleFlags.listen(ctx, b); err != nil {
		return err
	}
	open := func(ctx context.Context) (*builder.Builder, error) {
		return c.builderOn(ctx, s, store, kindOf(clock), c.instant(clock))
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return b.run(ctx, newBar(s.err), open, func(ctx context.Context) bool { return published(ctx, store) })
	})
	group.Go(func() error { return b.port.serve(ctx) })
	if c.AdminListen != "" {
		group.Go(func() error { return adminport.Serve(ctx, c.AdminListen, adminport.Mux(b.registry)) })
	}
	notifyReady(ctx, s.log)
	s.log.Info("scheduler runs", "store", store.String(), "console", b.port.url(), "token_file", c.OperatorTokenFile)
	return group.Wait()
}
