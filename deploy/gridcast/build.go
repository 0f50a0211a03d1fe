package main

import (
	"context"
	"time"

	"gridcast/builder"
	"gridcast/deploy/clock"
	"gridcast/deploy/operator"
)

type buildCmd struct {
	builderFlags `embed:""`
	actionFlags  `embed:""`
	reasonFlag   `embed:""`
	Release      bool `help:"End a hold that a rollback has put on publishing; needs --reason." env:"-"`
}

func (c *buildCmd) Run(ctx context.Context, s *streams) error {
	b, clock, err := c.builder(ctx, s)
	if err != nil {
		return err
	}
	if c.Release {
		return c.release(ctx, s, b, clock)
	}
	bar := newBar(s.err)
	outcome, err := b.Build(ctx, builder.Request{At: c.instant(clock), Reason: c.Reason, Progress: bar.show})
	bar.finish()
	if err != nil {
		return err
	}
	s.printOutcome(outcome)
	return nil
}

func (c *buildCmd) release(ctx context.Context, s *streams, b *builder.Builder, clock clock.Clock) error {
	o, err := c.operateOn(ctx, b, clock)
	if err != nil {
		return err
	}
	bar := newBar(s.err)
	done, err := c.apply(ctx, s, o, operator.ReleasePublishing{}, operator.Request{Reason: c.Reason, Progress: bar.show})
	bar.finish()
	if err != nil {
		return err
	}
	s.printOutcome(done.Outcome())
	return nil
}

// operateOn opens the store of a builder for actions that build.
func (f *builderFlags) operateOn(ctx context.Context, b *builder.Builder, clock clock.Clock) (*operator.Operator, error) {
	o, err := operate(ctx, b.Store)
	if err != nil {
		return nil, err
	}
	o.Ledger, o.Facts, o.Build = b.Ledger, b.Facts, b.Build
	o.Now = func() time.Time { return f.instant(clock) }
	return o, nil
}

func (s *streams) printOutcome(o builder.Outcome) {
	if s.json {
		s.printJSON(o.Receipt)
		return
	}
	for _, e := range o.Events {
		s.printf("settled    %s %s %s\n", e.Type, sessionCell(e.Session), e.String())
	}
	for _, d := range o.Refused {
		s.printf("refused    %s stays as it was: %v\n", d.Path, d.Err)
	}
	if o.Unchanged {
		s.printf("version %d is up to date: nothing was published\n", o.Version)
		return
	}
	s.printf("version    %d\nvariants   %d\nobjects    %d written (%d bytes), %d reused\nseconds    %.2f\n",
		o.Version, o.Variants, o.ObjectsWritten, o.BytesWritten, o.ObjectsReused, o.Seconds)
}
