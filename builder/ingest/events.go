package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// lostAfter is the shortest absence of a round, in two revisions of its source, that postpones the
// round. Sources correct a deletion by mistake sooner.
const lostAfter = 24 * time.Hour

// appendEvents decides on events with the current state of the ledger and appends them.
type appendEvents func(actor string, decide func(*ledger.Fold) ([]ledger.Event, error)) error

// decide appends the events that follow from an assembly: renamed drivers, moved starts, rounds that
// a source has dropped, and rounds that are back. It returns the appended events.
func (g *Ingest) decide(ctx context.Context, now time.Time, out *assemble.Output, states []PollState) ([]ledger.Event, error) {
	decided := g.Ledger.Fold()
	var appended []ledger.Event
	add := func(actor string, decide func(*ledger.Fold) ([]ledger.Event, error)) error {
		events, err := g.fresh.Append(ctx, now, actor, decide)
		appended = append(appended, events...)
		return err
	}
	if err := renameDrivers(out.Renames, add); err != nil {
		return appended, err
	}
	if err := g.recode(out, add); err != nil {
		return appended, err
	}
	if err := g.moveStarts(out, decided, add); err != nil {
		return appended, err
	}
	if err := postponeMissing(now, out, states, decided, add); err != nil {
		return appended, err
	}
	return appended, reinstate(now, out, decided, add)
}

func renameDrivers(renames []assemble.Rename, add appendEvents) error {
	for _, r := range renames {
		err := add(ledger.SourceActor(r.Source, short(r.Revision)), func(s *ledger.Fold) ([]ledger.Event, error) {
			if s.Aliases()[r.From] == r.To {
				return nil, nil
			}
			return []ledger.Event{ledger.Rename(r.From, r.To)}, nil
		})
		if err != nil {
			return fmt.Errorf("ingest: rename driver %s to %s: %w", r.From, r.To, err)
		}
	}
	return nil
}

// recode records the codes that change because a person accepted a driver's new name.
func (g *Ingest) recode(out *assemble.Output, add appendEvents) error {
	for _, c := range out.Recoded {
		actor, reason := "ingest", ""
		for i := range g.log.Entries {
			if e := &g.log.Entries[i]; e.Accept == c.Proposal {
				actor, reason = e.Actor, e.Reason
			}
		}
		err := add(actor, func(s *ledger.Fold) ([]ledger.Event, error) {
			if s.Recoded(c.Year, c.Driver) == c.To {
				return nil, nil // a run that crashed before it replaced the archive
			}
			return []ledger.Event{{Type: ledger.CodeChanged, Year: c.Year, Driver: c.Driver, From: c.From, To: c.To, Reason: reason}}, nil
		})
		if err != nil {
			return fmt.Errorf("ingest: change the code %s of %s: %w", c.From, c.Driver, err)
		}
	}
	return nil
}

// moveStarts moves the rounds with an applied start that is not the valid one. A released start is left
// out: the ledger has its own event for the release.
func (g *Ingest) moveStarts(out *assemble.Output, decided *ledger.Fold, add appendEvents) error {
	for _, c := range out.Applied {
		key, ok := decided.Key(c.Year, c.GrandPrix)
		if c.Block != assemble.Start || c.New || c.Released || !ok {
			continue
		}
		start, reason := startOf(&out.Facts, c.Year, c.GrandPrix), "the source has another start"
		if entry := g.manual.EntryOf(Origin{Source: c.Source, Revision: c.Revision}); entry != nil {
			reason = entry.Reason
		}
		err := add(g.actor(c), func(s *ledger.Fold) ([]ledger.Event, error) {
			record, _ := s.Record(key)
			valid := record.Start(c.Was)
			// Nobody was told the hour of a provisional start, so that a first hour moves nothing.
			firstHour := c.Provisional && record.Override.Start.IsZero()
			if valid.Equal(start) || record.Override.Status != ledger.AsPlanned || firstHour {
				return nil, nil
			}
			return []ledger.Event{record.Move(valid, start, reason)}, nil
		})
		if refused := (*ledger.RefusedError)(nil); errors.As(err, &refused) && c.Source == assemble.ManualSource {
			g.Log.Warn("the ledger refuses a start that a person entered", "session_key", key, "err", err)
			continue
		}
		if err != nil {
			return fmt.Errorf("ingest: move %d: %w", key, err)
		}
	}
	return nil
}

// postponeMissing postpones the rounds that a source has dropped for long enough, past ones too, unless a
// person or a verified result holds them.
func postponeMissing(now time.Time, out *assemble.Output, states []PollState, decided *ledger.Fold, add appendEvents) error {
	for i := range states {
		state := &states[i]
		for _, m := range missingRounds(state, out, now) {
			key, ok := decided.Key(m.Year, m.GrandPrix)
			if !ok || m.Revision == state.Revision || now.Sub(m.Since) < lostAfter {
				continue
			}
			start := startOf(&out.Facts, m.Year, m.GrandPrix)
			err := add(ledger.SourceActor(state.Source, short(state.Revision)), func(s *ledger.Fold) ([]ledger.Event, error) {
				record, _ := s.Record(key)
				facts, _ := out.Facts.Round(m.Year, m.GrandPrix)
				verified := record.Result() != nil || facts.Finished() && s.Vouches(m.Year, m.GrandPrix, facts.ResultKnownAt())
				if verified || record.Override.Status != ledger.AsPlanned || record.Override.ByPerson {
					return nil, nil
				}
				return record.Postpone(record.Start(start), "the source no longer has the round"), nil
			})
			if err != nil {
				return fmt.Errorf("ingest: postpone %d: %w", key, err)
			}
		}
	}
	return nil
}

// reinstate schedules the rounds again that a source had dropped and has again.
func reinstate(now time.Time, out *assemble.Output, decided *ledger.Fold, add appendEvents) error {
	type round struct {
		year int
		gp   season.GrandPrixID
	}
	missing := make(map[round]bool)
	for _, m := range out.Missing {
		missing[round{m.Year, m.GrandPrix}] = true
	}
	for record := range decided.Records() {
		changes := record.Override.Changes
		postponed := record.Override.Status == ledger.Postponed && !record.Override.ByPerson && len(changes) > 0
		if !postponed || missing[round{record.Year, record.GrandPrix}] {
			continue
		}
		last := changes[len(changes)-1]
		start := startOf(&out.Facts, record.Year, record.GrandPrix)
		if !ledger.IsSource(last.Actor) || start.Sub(now) < time.Hour {
			continue
		}
		err := add(last.Actor, func(s *ledger.Fold) ([]ledger.Event, error) {
			latest, _ := s.Record(record.Key)
			if latest.Override.Status != ledger.Postponed || latest.Override.ByPerson {
				return nil, nil
			}
			return []ledger.Event{latest.Reinstate(start, "the source has the round again")}, nil
		})
		if err != nil {
			return fmt.Errorf("ingest: reinstate %d: %w", record.Key, err)
		}
	}
	return nil
}

// startOf returns the start of a round, zero for an unknown round.
func startOf(f *season.Facts, year int, gp season.GrandPrixID) time.Time {
	if r, ok := f.Round(year, gp); ok {
		return r.StartsAt()
	}
	return time.Time{}
}
