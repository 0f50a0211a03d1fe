package main

import (
	"context"

	"golang.org/x/sync/errgroup"

	"gridcast/deploy/operator"
)

// schedulerCmd builds when something falls due, and shows operators the console.
type schedulerCmd struct {
	builderFlags `embed:""`
	consoleFlags `embed:""`
	sourceFlags  `embed:""`
	tierFlags    `embed:""`
	AdminListen  string `help:"Where metrics and profiles are served; default: nowhere." placeholder:"HOST:PORT"`
}

func (c *schedulerCmd) Run(ctx context.Context, s *streams) error {
	b, clock, err := c.builder(ctx, s)
	if err != nil {
		return err
	}
	tiers, err := c.tiers()
	if err != nil {
		return err
	}
	registry := operator.NewRegistry()
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
	operators, err := c.openConsole(ctx, service, tiers, s.log)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return service.Run(ctx) })
	group.Go(func() error { return operators.serve(ctx) })
	if c.AdminListen != "" {
		group.Go(func() error { return operator.ServeAdmin(ctx, c.AdminListen, operator.AdminMux(registry)) })
	}
	if operators != nil {
		s.log.Info("scheduler runs", "store", b.Store.String(), "console", operators.url(), "token_file", c.OperatorTokenFile)
	}
	return group.Wait()
}
