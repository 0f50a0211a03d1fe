package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/source"
)

// lostAfter is the shortest absence of a round, in two revisions of its source, that postpones the
// round. Sources correct a deletion by mistake sooner.
const lostAfter = 24 * time.Hour

// decision are the events of one driver or round that follow from an assembly.
type decision struct {
	what   string            // in errors: the event and its subject
	about  assemble.Proposal // is held if the ledger refuses the events; of the change of a block it has the ID alone
	actor  string
	events func(*ledger.Fold) []ledger.Event // by the current state of the ledger; none if it has them
}

// refusal returns the reason why the ledger refuses the events, nil if it takes them.
func (d *decision) refusal(decided *ledger.Fold, now time.Time) (refused *ledger.RefusedError) {
	events := d.events(decided)
	for i := range events {
		events[i].Actor = d.actor
	}
	_, err := decided.Trial(now, events)
	_ = errors.As(err, &refused)
	return refused
}

// ofRound returns a decision about a whole round.
func ofRound(what string, year int, gp season.GrandPrixID, src, revision string) decision {
	return decision{what: what, about: assemble.Proposal{
		ID: source.Sum([]byte(what))[:12], Year: year, GrandPrix: gp, Block: assemble.Calendar, Source: src, Revision: revision,
		Lines: []assemble.Line{{About: "round", Is: what}},
	}}
}

// decide appends the events that follow from an assembly: renamed drivers, moved starts, rounds that
// a source has dropped, and rounds that are back. It returns the appended events.
//
// The ledger may refuse each of them. An event of a round is then left out, and held in out. The block of another event is
// applied in out, which is stale: the ledger or the clock has moved on since the assembly. The next one holds the block.
func (g *Ingest) decide(ctx context.Context, now time.Time, out *assemble.Output, states []PollState) (appended []ledger.Event, stale bool, err error) {
	decided := g.Ledger.Fold()
	blocks := slices.Concat(renamedDrivers(out), g.recoded(out), movedStarts(out, g.manual, decided))
	for i, d := range slices.Concat(blocks, postponedRounds(now, out, states, decided), reinstated(now, out, decided)) {
		events, err := g.fresh.Append(ctx, now, d.actor, func(s *ledger.Fold) ([]ledger.Event, error) { return d.events(s), nil })
		appended = append(appended, events...)
		switch refused := (*ledger.RefusedError)(nil); {
		case errors.As(err, &refused) && i < len(blocks):
			g.assembled.inputs = inputs{}
			return appended, true, nil
		case errors.As(err, &refused):
			d.about.Refused = []assemble.Refusal{{Gate: assemble.LedgerGate, Reason: refused.Err.Error()}}
			out.Held = append(slices.Clip(out.Held), d.about)
		case err != nil:
			return appended, false, fmt.Errorf("ingest: %s: %w", d.what, err)
		}
	}
	return appended, false, nil
}

func renamedDrivers(out *assemble.Output) (all []decision) {
	for _, r := range out.Renames {
		all = append(all, decision{
			what: fmt.Sprintf("rename driver %s to %s", r.From, r.To), about: assemble.Proposal{ID: r.ID()}, actor: ledger.SourceActor(r.Source, short(r.Revision)),
			events: func(s *ledger.Fold) []ledger.Event {
				if s.Aliases()[r.From] == r.To {
					return nil
				}
				return []ledger.Event{ledger.Rename(r.From, r.To)}
			},
		})
	}
	return all
}

// recoded records the codes that change because a person accepted a driver's new name.
func (g *Ingest) recoded(out *assemble.Output) (all []decision) {
	for _, c := range out.Recoded {
		actor, reason := "ingest", ""
		for i := range g.log.Entries {
			if e := &g.log.Entries[i]; e.Accept == c.Proposal {
				actor, reason = e.Actor, e.Reason
			}
		}
		all = append(all, decision{
			what: fmt.Sprintf("change the code %s of %s", c.From, c.Driver), about: assemble.Proposal{ID: c.Proposal}, actor: actor,
			events: func(s *ledger.Fold) []ledger.Event {
				if s.Recoded(c.Year, c.Driver) == c.To {
					return nil // a run that crashed before it replaced the archive
				}
				return []ledger.Event{{Type: ledger.CodeChanged, Year: c.Year, Driver: c.Driver, From: c.From, To: c.To, Reason: reason}}
			},
		})
	}
	return all
}

// movedStarts moves the rounds with an applied start that is not the valid one. A released start is left
// out: the ledger has its own event for the release.
func movedStarts(out *assemble.Output, manual *ManualLog, decided *ledger.Fold) (all []decision) {
	for _, c := range out.Applied {
		key, ok := decided.Key(c.Year, c.GrandPrix)
		if c.Block != assemble.Start || c.New || c.Released || !ok {
			continue
		}
		start, reason := startOf(&out.Facts, c.Year, c.GrandPrix), "the source has another start"
		assumed := !hourKnown(&out.Facts, c.Year, c.GrandPrix)
		if entry := manual.EntryOf(Origin{Source: c.Source, Revision: c.Revision}); entry != nil {
			reason = cmp.Or(entry.Reason, "a person entered another start") // the entry of a trial has no reason yet
		}
		all = append(all, decision{
			what: fmt.Sprintf("move %d", key), about: assemble.Proposal{ID: c.ID}, actor: manual.actor(c),
			events: func(s *ledger.Fold) []ledger.Event {
				record, _ := s.Record(key)
				valid := record.Start(c.Was)
				// Nobody was told the hour of a provisional start, so that a first hour moves nothing.
				firstHour := c.Provisional && record.Override.Start.IsZero()
				if valid.Equal(start) || record.Override.Status != ledger.AsPlanned || firstHour || assumed && record.Override.Start.IsZero() {
					return nil
				}
				return []ledger.Event{record.Move(valid, start, reason)}
			},
		})
	}
	return all
}

// postponedRounds postpones the rounds that a source has dropped for long enough, past ones too, unless a
// person or a verified result holds them.
func postponedRounds(now time.Time, out *assemble.Output, states []PollState, decided *ledger.Fold) (all []decision) {
	for i := range states {
		state := &states[i]
		for _, m := range missingRounds(state, out, now) {
			key, ok := decided.Key(m.Year, m.GrandPrix)
			if !ok || m.Revision == state.Revision || now.Sub(m.Since) < lostAfter {
				continue
			}
			d := ofRound(fmt.Sprintf("postpone %d", key), m.Year, m.GrandPrix, state.Source, state.Revision)
			d.actor = ledger.SourceActor(state.Source, short(state.Revision))
			d.events = func(s *ledger.Fold) []ledger.Event {
				record, _ := s.Record(key)
				facts, _ := out.Facts.Round(m.Year, m.GrandPrix)
				verified := record.Result() != nil || facts.Finished() && s.Vouches(m.Year, m.GrandPrix, facts.ResultKnownAt())
				if verified || record.Override.Status != ledger.AsPlanned || record.Override.ByPerson {
					return nil
				}
				return record.Postpone(record.Start(startOf(&out.Facts, m.Year, m.GrandPrix)), "the source no longer has the round")
			}
			all = append(all, d)
		}
	}
	return all
}

// reinstated schedules the rounds again that a source had dropped and has again.
func reinstated(now time.Time, out *assemble.Output, decided *ledger.Fold) (all []decision) {
	for record := range decided.Records() {
		start := startOf(&out.Facts, record.Year, record.GrandPrix)
		missing := slices.ContainsFunc(out.Missing, func(m assemble.Missing) bool { return m.Year == record.Year && m.GrandPrix == record.GrandPrix })
		changes := record.Override.Changes
		dropped := func(r *ledger.RoundRecord) bool { return r.Override.Status == ledger.Postponed && !r.Override.ByPerson }
		if !dropped(&record) || len(changes) == 0 || missing || start.Sub(now) < time.Hour {
			continue
		}
		last := changes[len(changes)-1]
		src, revision, ok := ledger.SourceOf(last.Actor)
		if !ok {
			continue
		}
		d := ofRound(fmt.Sprintf("reinstate %d", record.Key), record.Year, record.GrandPrix, src, revision)
		d.actor = last.Actor
		d.events = func(s *ledger.Fold) []ledger.Event {
			latest, _ := s.Record(record.Key)
			if !dropped(&latest) {
				return nil
			}
			if !hourKnown(&out.Facts, record.Year, record.GrandPrix) {
				start = time.Time{} // the calendar's, which is provisional
			}
			return []ledger.Event{latest.Reinstate(start, "the source has the round again")}
		}
		all = append(all, d)
	}
	return all
}

// hourKnown reports whether a source names the hour of a round's start.
func hourKnown(f *season.Facts, year int, gp season.GrandPrixID) bool {
	r, ok := f.Round(year, gp)
	return ok && !r.Provisional()
}

// startOf returns the start of a round, zero for an unknown round.
func startOf(f *season.Facts, year int, gp season.GrandPrixID) time.Time {
	if r, ok := f.Round(year, gp); ok {
		return r.StartsAt()
	}
	return time.Time{}
}
