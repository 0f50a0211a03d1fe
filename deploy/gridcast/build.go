package main

import (
	"context"

	"gridcast/builder"
	"gridcast/builder/auditlog"
)

type buildCmd struct {
	builderFlags `embed:""`
	Release      bool   `help:"End a hold that a rollback has put on publishing."`
	Reason       string `help:"Why, for people." placeholder:"TEXT"`
}

func (c *buildCmd) Run(ctx context.Context, s *streams) error {
	b, clock, err := c.builder(ctx, s)
	if err != nil {
		return err
	}
	bar := newProgress(s.err, "building")
	var outcome builder.Outcome
	build := func() (err error) {
		outcome, err = b.Build(ctx, builder.Request{At: c.instant(clock), Reason: c.Reason, Release: c.Release, Progress: bar.phase})
		return err
	}
	if c.Release {
		err = audited(ctx, b.Store, auditlog.Change{Action: auditlog.Release, Reason: c.Reason}, build)
	} else {
		err = build()
	}
	bar.finish()
	if err != nil {
		return err
	}
	return s.printOutcome(outcome)
}

func (s *streams) printOutcome(o builder.Outcome) error {
	if s.json {
		return s.printJSON(o.Receipt)
	}
	for _, e := range o.Events {
		if err := s.printf("settled    %s %s %s\n", e.Type, sessionCell(e.Session), describe(e)); err != nil {
			return err
		}
	}
	if o.Unchanged {
		return s.printf("version %d is up to date: nothing was published\n", o.Version)
	}
	return s.printf("version    %d\nvariants   %d\nobjects    %d written (%d bytes), %d reused\nseconds    %.2f\n",
		o.Version, o.Variants, o.ObjectsWritten, o.BytesWritten, o.ObjectsReused, o.Seconds)
}
