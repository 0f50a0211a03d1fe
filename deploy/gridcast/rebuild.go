package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"gridcast/deploy/console"
	"gridcast/deploy/operator"
)

// rebuildCmd asks the running scheduler for a build.
type rebuildCmd struct {
	builderFlags      `embed:""`
	actionFlags       `embed:""`
	OperatorListen    string `help:"The operator's port of the scheduler." default:"127.0.0.1:8090" placeholder:"HOST:PORT"`
	OperatorTokenFile string `help:"A file with the operator's token." default:".var/operator-token" placeholder:"FILE" type:"path"`
	Wait              bool   `help:"Show the progress, and wait until the edges serve the version."`
	Reason            string `help:"Why, for the record." default:"asked for by hand" placeholder:"TEXT" env:"-"`
}

func (c *rebuildCmd) Run(ctx context.Context, s *streams) error {
	token, err := os.ReadFile(c.OperatorTokenFile)
	if errors.Is(err, fs.ErrNotExist) {
		return c.buildHere(ctx, s, fmt.Sprintf("there is no operator's token in %s", c.OperatorTokenFile))
	}
	if err != nil {
		return fmt.Errorf("read the operator's token: %w", err)
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	client := &console.Client{
		Address: c.OperatorListen, Token: strings.TrimSpace(string(token)),
		Operator: strings.TrimPrefix(c.actor(), operator.Claimed),
	}
	run, err := client.Rebuild(ctx, store.String(), c.Reason)
	if errors.Is(err, console.ErrNobody) {
		return c.buildHere(ctx, s, err.Error())
	}
	if err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	if c.Wait {
		return c.follow(ctx, s, client, run)
	}
	if s.json {
		s.printJSON(map[string]string{"run": run})
		return nil
	}
	s.printf("the scheduler at %s rebuilds; --wait shows how far it is\n", c.OperatorListen)
	return nil
}

// buildHere builds in this process, since no scheduler runs.
func (c *rebuildCmd) buildHere(ctx context.Context, s *streams, why string) error {
	if _, err := fmt.Fprintf(s.err, "%s: building here\n", why); err != nil {
		return err
	}
	b, clock, err := c.builder(ctx, s)
	if err != nil {
		return err
	}
	o, err := c.operateOn(ctx, b, clock)
	if err != nil {
		return err
	}
	bar := newBar(s.err)
	done, err := c.apply(ctx, s, o, operator.Rebuild{}, operator.Request{Reason: c.Reason, Progress: bar.show})
	bar.finish()
	if err != nil {
		return err
	}
	s.printOutcome(done.Outcome())
	return nil
}

// follow shows the progress of a run and what came of it.
func (c *rebuildCmd) follow(ctx context.Context, s *streams, client *console.Client, run string) error {
	bar := newBar(s.err)
	last, err := client.Follow(ctx, run, func(e console.Event) { bar.show(string(e.Phase), e.Done, e.Total) })
	bar.finish()
	switch {
	case err != nil:
		return fmt.Errorf("rebuild: %w", err)
	case last.Phase == console.Failed:
		return fmt.Errorf("rebuild: %s", last.Error)
	case s.json:
		s.printJSON(last.Result)
		return nil
	}
	s.printResultOf(last)
	return nil
}

// printResultOf prints what a run did: the version, what changed, and when edges served it.
func (s *streams) printResultOf(e console.Event) {
	r := e.Result
	s.printf("%s\n", e.Text)
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
		if edge.Problem != "" {
			rows = append(rows, []any{edge.Name, edge.Problem})
			continue
		}
		rows = append(rows, []any{edge.Name, fmt.Sprintf("serves it after %.2f s", edge.Seconds)})
	}
	s.printTable([]any{"", ""}, rows)
}
