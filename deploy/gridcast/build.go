package main

import (
	"context"

	"gridcast/builder"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/edge/keys"
	"gridcast/schemas/catalog"
	"gridcast/snapshots/notes"
)

type buildCmd struct {
	flags.Builder
	flags.Action
	flags.OptionalReason
	Release bool `help:"End the hold of publishing after a rollback; needs --reason." env:"-"`
	All     bool `help:"Make title odds and track record too. For a timer, where no scheduler runs." env:"-"`
}

func (c *buildCmd) Run(ctx context.Context, s *terminal.Streams) error {
	b, clock, err := c.New(ctx, s)
	if err != nil {
		return err
	}
	if c.Release {
		o, err := c.OperatorOf(ctx, b, clock)
		if err != nil {
			return err
		}
		return c.ApplyAndPrint(ctx, s, o, operator.ReleasePublishing{}, operator.Request{Reason: c.Reason, Progress: s.Progress}, printBuilt)
	}
	request := builder.Request{At: c.Instant(clock), Reason: c.Reason, Progress: s.Progress}
	outcome, err := b.Build(ctx, request)
	if err == nil && c.All {
		err = buildRest(ctx, b, request, &outcome)
	}
	if err == nil {
		err = b.Freshen(ctx, keys.FreshText(b.Store, notes.Trust{})) // for a timer, where no scheduler runs
	}
	if err != nil {
		return err
	}
	printOutcome(s, outcome)
	if base := outcome.Base; base != nil && !s.JSON {
		if _, made := base.Entry(catalog.Variant{Endpoint: catalog.TrackRecord}.Path()); !made {
			s.Printf("/forecast, /title-odds and /track-record answer 503 until a scheduler runs, or gridcast build --all\n")
		}
	}
	return nil
}

// buildRest publishes forecasts, title odds and track record, which a running service makes after each build.
// outcome gets the receipt of the last version.
func buildRest(ctx context.Context, b *builder.Builder, request builder.Request, outcome *builder.Outcome) error {
	made, err := b.Derive(ctx, request.At)
	if err != nil || !made {
		return err
	}
	rest, err := b.Build(ctx, request)
	outcome.Receipt = rest.Receipt
	return err
}

func printBuilt(s *terminal.Streams, answer operator.Answer) {
	printOutcome(s, builder.Outcome{Receipt: *answer.Receipt, Events: answer.Events})
}

func printOutcome(s *terminal.Streams, o builder.Outcome) {
	if s.PrintedJSON(o.Receipt) {
		return
	}
	for _, e := range o.Events {
		s.Printf("settled    %s %s %s\n", e.Type, terminal.Number(e.Session), e.String())
	}
	for _, d := range o.Refused {
		s.Printf("refused    %s keeps its earlier bytes: %v\n", d.Path, d.Err)
	}
	if o.Unchanged {
		s.Printf("version %d is up to date: nothing was published\n", o.Version)
		return
	}
	s.Printf("version    %d\nvariants   %d\nobjects    %d written (%d bytes), %d reused\nseconds    %.2f\n",
		o.Version, o.Variants, o.ObjectsWritten, o.BytesWritten, o.ObjectsReused, o.Seconds)
}
