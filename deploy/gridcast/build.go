package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"gridcast/builder"
	"gridcast/deploy/console"
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
	Release bool `help:"End the hold of publishing after a rollback; needs --reason." env:"-"`
	All     bool `help:"Make title odds and track record too. For a timer, where no scheduler runs." env:"-"`
}

func (c *buildCmd) Run(ctx context.Context, s *terminal.Streams) error {
	if c.Release {
		o, err := c.Operator(ctx, s)
		if err != nil {
			return err
		}
		return c.ApplyAndPrint(ctx, s, o, operator.ReleasePublishing{}, operator.Request{Progress: s.Progress}, printBuilt)
	}
	b, clock, err := c.New(ctx, s)
	if err != nil {
		return err
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

type rebuildCmd struct {
	flags.Builder
	flags.Action
	OperatorListen    string `help:"The operator's port of the scheduler." default:"127.0.0.1:8090"`
	OperatorTokenFile string `help:"A file with the operator's token." default:".var/operator-token" type:"path"`
	Wait              bool   `help:"Show the progress, and wait until the edges serve the version."`
}

// byHand is the reason of a rebuild without one.
const byHand = "asked for by hand"

func (c *rebuildCmd) Run(ctx context.Context, s *terminal.Streams) error {
	token, err := os.ReadFile(c.OperatorTokenFile)
	if errors.Is(err, fs.ErrNotExist) {
		return c.buildHere(ctx, s, fmt.Sprintf("there is no operator's token in %s", c.OperatorTokenFile))
	}
	if err != nil {
		return fmt.Errorf("read the operator's token: %w", err)
	}
	store, err := c.OpenToRead(ctx) // for its name
	if err != nil {
		return err
	}
	client := &console.Client{
		Address: c.OperatorListen, Token: strings.TrimSpace(string(token)),
		Operator: strings.TrimPrefix(c.Actor(), operator.Claimed),
	}
	run, err := client.Rebuild(ctx, store.String(), cmp.Or(c.Reason, byHand))
	if errors.Is(err, console.ErrNobody) {
		return c.buildHere(ctx, s, err.Error())
	}
	if err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	if c.Wait {
		return c.follow(ctx, s, client, run)
	}
	s.Print(map[string]string{"run": run}, "the scheduler at %s rebuilds; --wait shows how far it is\n", c.OperatorListen)
	return nil
}

func (c *rebuildCmd) buildHere(ctx context.Context, s *terminal.Streams, why string) error {
	if _, err := fmt.Fprintf(s.Err, "%s: building here\n", why); err != nil {
		return err
	}
	o, err := c.Operator(ctx, s)
	if err != nil {
		return err
	}
	return c.ApplyAndPrint(ctx, s, o, operator.Rebuild{}, operator.Request{Reason: byHand, Progress: s.Progress}, printBuilt)
}

func (c *rebuildCmd) follow(ctx context.Context, s *terminal.Streams, client *console.Client, run string) error {
	last, err := client.Follow(ctx, run, func(e console.Event) { s.Progress(string(e.Phase), e.Done, e.Total) })
	switch {
	case err != nil:
		return fmt.Errorf("rebuild: %w", err)
	case last.Phase == console.Failed:
		return fmt.Errorf("rebuild: %s", last.Error)
	case !s.PrintedJSON(last.Result):
		printResultOf(s, last)
	}
	return nil
}

func printResultOf(s *terminal.Streams, e console.Event) {
	r := e.Result
	s.Printf("%s\n", e.Text)
	if r.Unchanged {
		return
	}
	rows := [][]any{
		{"version", r.Version},
		{"changed", strings.Join(r.Changed, " ")},
		{"objects", fmt.Sprintf("%d written, %d reused", r.ObjectsWritten, r.ObjectsReused)},
		{"built in", fmt.Sprintf("%.2f s", r.BuildSeconds)},
	}
	for _, edge := range r.Edges {
		rows = append(rows, []any{edge.Name, cmp.Or(edge.Problem, fmt.Sprintf("serves it after %.2f s", edge.Seconds))})
	}
	s.PrintTable([]any{"", ""}, rows)
}
