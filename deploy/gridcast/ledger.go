package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/proof"
	"gridcast/builder/season"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/servers"
	"gridcast/deploy/terminal"
	"gridcast/deploy/view"
	"gridcast/snapshots/blob"
)

type ledgerCmds struct {
	List   ledgerListCmd   `cmd:"" help:"List the events."`
	Audit  ledgerAuditCmd  `cmd:"" help:"Prove from the store alone that no pick was made late or changed."`
	Prove  ledgerProveCmd  `cmd:"" help:"Print a proof that the public log has the frozen pick of a round."`
	Verify ledgerVerifyCmd `cmd:"" help:"Check such a proof by the publisher's key, without the store."`
}

type ledgerListCmd struct {
	flags.Storage
	Session int64 `help:"Only events of this session key."`
	Last    int   `help:"Only the last N events." placeholder:"N"`
}

func (c *ledgerListCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	l, err := ledger.Load(ctx, store, ledger.AnyKind)
	if err != nil {
		return err
	}
	type listed struct {
		Seq int64 `json:"seq"`
		ledger.Event
	}
	var events []listed
	for _, file := range l.Files() {
		for _, e := range file.Events {
			if c.Session == 0 || e.Session == c.Session {
				events = append(events, listed{file.Seq, e})
			}
		}
	}
	if c.Last > 0 && len(events) > c.Last {
		events = events[len(events)-c.Last:]
	}
	terminal.PrintRows(s, events, "", []any{"file", "at", "event", "session", "what", "actor"}, func(e listed) []any {
		return []any{e.Seq, terminal.Time(e.When()), e.Type, terminal.Number(e.Session), e.Event.String(), operator.Who(e.Actor)}
	})
	return nil
}

type ledgerAuditCmd struct {
	flags.Storage
	operator.AuditLedger
}

func (c *ledgerAuditCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	for _, head := range c.Heads {
		if sum, err := hex.DecodeString(head); err != nil || len(sum) != sha256.Size {
			return terminal.Usagef("--since-head %q: must be all 64 digits of a head", head)
		}
	}
	answer, err := (&operator.Operator{Store: store}).Do(ctx, c.AuditLedger, operator.Request{})
	if audit, ok := answer.Record.(proof.Audit); ok && !s.PrintedJSON(audit) {
		printAudit(s, audit)
	}
	return err
}

func printAudit(s *terminal.Streams, r proof.Audit) {
	closest, live, observed := time.Duration(-1), 0, ledger.Observation{}
	for _, p := range r.Picks {
		if p.Live {
			live++
		}
		if p.Observation != nil && p.Observation.At.After(observed.At) {
			observed = *p.Observation
		}
		if margin := p.Margin(); !p.Live && (closest < 0 || margin < closest) {
			closest = margin
		}
	}
	s.Printf("ledger   %s, opened %s\nhead     file %d, %s\nevents   %d\npicks    %d frozen\n",
		r.Kind, terminal.Time(r.Opened), r.Head.Seq, r.Head.Hash, r.Events, len(r.Picks))
	if closest >= 0 {
		s.Printf("closest  %s before lights out\n", closest)
	}
	if live > 0 {
		s.Printf("live     %d of the picks", live)
		if observed.Lap > 0 {
			s.Printf(", the last from lap %d as observed at %s", observed.Lap, terminal.Time(observed.At))
		}
		s.Printf("\n")
	}
	s.Printf("versions %d, with their heads in the ledger\nserved   version %d, with %d picks compared\n", r.Versions, r.Current, r.Served)
	for _, h := range r.Noted {
		s.Printf("noted    %s is file %d\n", h.Hash, h.Seq)
	}
	rows := make([][]any, 0, len(r.Corrections)+len(r.Decisions))
	for _, c := range r.Corrections {
		rows = append(rows, []any{terminal.Time(c.At), c.Session, c.GrandPrix, fmt.Sprintf("revision %d: %s", c.Revision, c.Reason), operator.Who(c.Actor)})
	}
	for _, d := range r.Decisions {
		rows = append(rows, []any{terminal.Time(d.At), d.Session, d.GrandPrix, fmt.Sprintf("%s %s: %s", d.Type, terminal.Time(d.Start), d.Reason), operator.Who(d.Actor)})
	}
	if len(rows) > 0 {
		s.Printf("\n")
		s.PrintTable([]any{"at", "session", "round", "what", "actor"}, rows)
	}
	if r.Green() {
		s.Printf("\nThe record is whole: every pick served was frozen before lights out and never changed.\n")
		return
	}
	s.Printf("\n")
	s.PrintTable([]any{"file", "expected", "found"}, view.Each(r.Faults, func(f ledger.Fault) []any { return []any{f.Key, f.Want, f.Got} }))
}

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
