package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// lostAfter is the shortest absence of a round, in two revisions of its source, that postpones the
// round. Sources correct a deletion by mistake sooner.
const lostAfter = 24 * time.Hour

// decision are the events of one driver or round that follow from an assembly.
type decision struct {
	what   string // in errors: the event and its subject
	actor  string
	events func(*ledger.Fold) []ledger.Event // by the current state of the ledger; none if it has them
	// entered marks a start that a person entered. The ledger may refuse it.
	entered bool
}

// decide appends the events that follow from an assembly: renamed drivers, moved starts, rounds that
// a source has dropped, and rounds that are back. It returns the appended events.
func (g *Ingest) decide(ctx context.Context, now time.Time, out *assemble.Output, states []PollState) ([]ledger.Event, error) {
	decided := g.Ledger.Fold()
	var appended []ledger.Event
	for _, d := range slices.Concat(renamedDrivers(out), g.recoded(out), g.movedStarts(out, decided), postponedRounds(now, out, states, decided), reinstated(now, out, decided)) {
		events, err := g.fresh.Append(ctx, now, d.actor, func(s *ledger.Fold) ([]ledger.Event, error) { return d.events(s), nil })
		appended = append(appended, events...)
		if refused := (*ledger.RefusedError)(nil); errors.As(err, &refused) && d.entered {
			g.Log.Warn("the ledger refuses a start that a person entered", "event", d.what, "err", err)
			continue
		}
		if err != nil {
			return appended, fmt.Errorf("ingest: %s: %w", d.what, err)
		}
	}
	return appended, nil
}

func renamedDrivers(out *assemble.Output) (all []decision) {
	for _, r := range out.Renames {
		all = append(all, decision{
			what: fmt.Sprintf("rename driver %s to %s", r.From, r.To), actor: ledger.SourceActor(r.Source, short(r.Revision)),
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
			what: fmt.Sprintf("change the code %s of %s", c.From, c.Driver), actor: actor,
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
func (g *Ingest) movedStarts(out *assemble.Output, decided *ledger.Fold) (all []decision) {
	for _, c := range out.Applied {
		key, ok := decided.Key(c.Year, c.GrandPrix)
		if c.Block != assemble.Start || c.New || c.Released || !ok {
			continue
		}
		start, reason := startOf(&out.Facts, c.Year, c.GrandPrix), "the source has another start"
		if entry := g.manual.EntryOf(Origin{Source: c.Source, Revision: c.Revision}); entry != nil {
			reason = entry.Reason
		}
		all = append(all, decision{
			what: fmt.Sprintf("move %d", key), actor: g.actor(c), entered: c.Source == assemble.ManualSource,
			events: func(s *ledger.Fold) []ledger.Event {
				record, _ := s.Record(key)
				valid := record.Start(c.Was)
				// Nobody was told the hour of a provisional start, so that a first hour moves nothing.
				firstHour := c.Provisional && record.Override.Start.IsZero()
				if valid.Equal(start) || record.Override.Status != ledger.AsPlanned || firstHour {
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
			all = append(all, decision{
				what: fmt.Sprintf("postpone %d", key), actor: ledger.SourceActor(state.Source, short(state.Revision)),
				events: func(s *ledger.Fold) []ledger.Event {
					record, _ := s.Record(key)
					facts, _ := out.Facts.Round(m.Year, m.GrandPrix)
					verified := record.Result() != nil || facts.Finished() && s.Vouches(m.Year, m.GrandPrix, facts.ResultKnownAt())
					if verified || record.Override.Status != ledger.AsPlanned || record.Override.ByPerson {
						return nil
					}
					return record.Postpone(record.Start(startOf(&out.Facts, m.Year, m.GrandPrix)), "the source no longer has the round")
				},
			})
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
		if !ledger.IsSource(last.Actor) {
			continue
		}
		all = append(all, decision{
			what: fmt.Sprintf("reinstate %d", record.Key), actor: last.Actor,
			events: func(s *ledger.Fold) []ledger.Event {
				latest, _ := s.Record(record.Key)
				if !dropped(&latest) {
					return nil
				}
				return []ledger.Event{latest.Reinstate(start, "the source has the round again")}
			},
		})
	}
	return all
}

// startOf returns the start of a round, zero for an unknown round.
func startOf(f *season.Facts, year int, gp season.GrandPrixID) time.Time {
	if r, ok := f.Round(year, gp); ok {
		return r.StartsAt()
	}
	return time.Time{}
}
