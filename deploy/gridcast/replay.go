package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/deploy/flags"
	"gridcast/deploy/servers"
	"gridcast/deploy/terminal"
	"gridcast/deploy/view"
	"gridcast/snapshots/blob"
)

type replayCmd struct {
	flags.Storage
	flags.Signing
	Archive string `help:"An archive file to build from; it is put into the store. Default: the one in the store, else the embedded seasons." placeholder:"PATH" type:"path"`
	Model   string `help:"The model that makes the picks: ${enum}." enum:"v2,r2,grid-frequency" default:"v2"`
	From    int    `required:"" help:"First season to replay." placeholder:"YEAR" env:"-"`
	To      int    `required:"" help:"Last season to replay." placeholder:"YEAR" env:"-"`
}

// facts returns the archive to replay. It refuses seasons that the archive lacks, before the store becomes a simulated one.
func (c *replayCmd) facts(ctx context.Context, rules *flags.Builder, store blob.Store) (archive.Stored, error) {
	archives := archive.NewStore(store)
	if err := rules.PutArchive(ctx, archives); err != nil {
		return archive.Stored{}, err
	}
	facts, err := archives.Load(ctx)
	if err != nil {
		return facts, err
	}
	seasons := facts.Archive.Facts().Seasons
	if len(seasons) == 0 {
		return facts, errors.New("replay: the archive has no seasons")
	}
	if first, last := seasons[0].Year, seasons[len(seasons)-1].Year; c.To < first || c.From > last {
		return facts, terminal.Usagef("--from %d --to %d: the archive has the seasons %d to %d", c.From, c.To, first, last)
	}
	return facts, nil
}

func (c *replayCmd) Run(ctx context.Context, s *terminal.Streams) error {
	if c.From > c.To {
		return terminal.Usagef("--from %d: must not be after --to %d", c.From, c.To)
	}
	store, err := c.Open(ctx)
	if err != nil {
		return err
	}
	rules := flags.Builder{Signing: c.Signing, Archive: c.Archive, Model: c.Model, AutoVerifyAfter: servers.ReplayVerifiesAfter}
	facts, err := c.facts(ctx, &rules, store)
	if err != nil {
		return err
	}
	b, err := rules.WithoutSettings(ctx, s, store, ledger.Simulated, season.BeginsAt(c.From))
	if err != nil {
		return err
	}
	until := season.BeginsAt(c.To + 1)
	if err := b.Policy.Replay(ctx, b.Ledger, facts, until, s.Progress); err != nil {
		return err
	}
	outcome, err := b.Build(ctx, builder.Request{At: until, Reason: fmt.Sprintf("replay %d to %d", c.From, c.To), Progress: s.Progress})
	if err != nil {
		return err
	}
	if !s.JSON {
		printRecord(s, b.Ledger.Fold())
	}
	printOutcome(s, outcome)
	return nil
}

func printRecord(s *terminal.Streams, state *ledger.Fold) {
	picks, results, hits := map[int]int{}, map[int]int{}, map[int]int{}
	for session := range state.Records() {
		if session.Pick == nil {
			continue
		}
		picks[session.Year]++
		result := session.Result()
		if result == nil {
			continue
		}
		results[session.Year]++
		if hit, _ := almanac.Podium(result.Rows).Score(almanac.Picked(session.Pick)); hit {
			hits[session.Year]++
		}
	}
	s.PrintTable([]any{"season", "picks", "results", "winner hits"}, view.Each(slices.Sorted(maps.Keys(picks)), func(year int) []any {
		return []any{year, picks[year], results[year], hits[year]}
	}))
}
