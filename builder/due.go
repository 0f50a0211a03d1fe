package builder

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/season"
)

// Actor is the name under which a builder writes to the ledger.
const Actor = "builder"

// Policy says what a builder decides without being asked.
type Policy struct {
	// Model makes the picks.
	Model predict.Model
	// AutoVerifyAfter is how long a classification must have stood unchanged, since the later of
	// the end of the race and its arrival, to count as verified by itself. Zero, the default: only
	// an operator verifies.
	AutoVerifyAfter time.Duration
	// AutoReviseAfter is the same for another classification of a race that has a verified one: it
	// becomes the next revision. Zero, the default: only an operator corrects.
	AutoReviseAfter time.Duration
	// Stood says since when the archive has a result as it is. It may be nil: since the end of the
	// race.
	Stood func(year int, gp season.GrandPrixID) Stood
}

// Stood is how long a result has been in the archive as it is, and who says otherwise.
type Stood struct {
	Since     time.Time // when it came; zero if nothing is known of that
	From      string    // where from, for people
	Contested bool      // a change of it waits for a person, or another source disagrees
}

// Settle appends to the ledger what has fallen due by t: keys for rounds seen for the first
// time, picks whose grid is known or whose start is near, and, if the policy has the rule,
// results. It returns the events it added. Two builders that settle at once add each event
// once.
func (p Policy) Settle(ctx context.Context, l *ledger.Ledger, facts Facts, t time.Time) ([]ledger.Event, error) {
	v := facts.Archive.AsOf(t)
	var added []ledger.Event
	for {
		events, err := l.Append(ctx, t, Actor, func(s *ledger.State) ([]ledger.Event, error) { return p.due(v, s, facts.SHA256) })
		if err != nil {
			return added, err
		}
		if len(events) == 0 {
			break
		}
		added = append(added, events...)
	}
	for _, by := range []struct {
		actor   string
		results func(*season.View, *ledger.State) []ledger.Event
	}{{ledger.ArchiveActor, lateResults}, {ledger.RuleActor, p.resultsDue}} {
		events, err := l.Append(ctx, t, by.actor, func(s *ledger.State) ([]ledger.Event, error) { return by.results(v, s), nil })
		added = append(added, events...)
		if err != nil {
			return added, err
		}
	}
	return added, nil
}

// lateResults verifies, in the name of the archive, the results that a new store should have
// started with: of races that had ended ledger.ArchiveDelay before the ledger was opened, but
// that the archive of that moment did not have yet. Older seasons, and news, wait for somebody
// who verifies them.
func lateResults(v *season.View, s *ledger.State) []ledger.Event {
	v = almanac.Held(v, s)
	var events []ledger.Event
	opened := s.OpenedAt()
	for _, r := range almanac.Rounds(v, s, opened.UTC().Year()-1) {
		if r.Facts.Finished() && r.Result == nil && !r.Off() && !opened.Before(r.End().Add(ledger.ArchiveDelay)) {
			events = append(events, r.Record.Verify(almanac.Rows(r.Facts.Results), r.Start, ""))
		}
	}
	return events
}

// due returns the events that v and s call for now. Keys come alone: what else is due of their
// rounds is found in the state that has them.
func (p Policy) due(v *season.View, s *ledger.State, archive string) ([]ledger.Event, error) {
	keys, err := ledger.AssignKeys(s, v.Seasons)
	if err != nil {
		return nil, err
	}
	if len(keys) > 0 {
		return []ledger.Event{{Type: ledger.KeysAssigned, Keys: keys}}, nil
	}
	return p.picksDue(v, s, archive)
}

// picksDue freezes a pick for every round to be held that has none, from the moment its grid
// is known, or almanac.LastFreeze before the start now valid, until that start.
func (p Policy) picksDue(v *season.View, s *ledger.State, archive string) ([]ledger.Event, error) {
	v = almanac.Held(v, s)
	var events []ledger.Event
	for _, r := range almanac.Rounds(v, s, v.At.UTC().Year()-1) {
		gridKnown := len(r.Facts.Grid) > 0
		switch {
		case r.Pick != nil, r.Off(), r.Facts.Finished(), r.Result != nil:
			continue
		case !v.At.Before(r.Start):
			continue // it missed its moment and stays without a pick
		case !gridKnown && v.At.Before(r.FreezeBy()):
			continue
		}
		forecast, err := p.Model.Predict(v, r.Year, r.Facts.GrandPrix)
		if errors.Is(err, predict.ErrNobody) || err == nil && slices.Contains(forecast.Podium[:], "") {
			continue // too few are known to take part: perhaps at the next look
		}
		if err != nil {
			return nil, fmt.Errorf("predict %s of %d: %w", r.Facts.Name, r.Year, err)
		}
		events = append(events, freeze(r, p.Model.Name(), archive, forecast))
	}
	return events, nil
}

// freeze returns the event that keeps a forecast for ever: the pick, every starter's chances, and
// what they were made from.
func freeze(r *almanac.Round, model, archive string, f predict.Forecast) ledger.Event {
	pick := ledger.Pick{P1: f.Podium[0], P2: f.Podium[1], P3: f.Podium[2], WinProbability: f.Winner().Win, Model: model}
	e := ledger.Freeze(r.Session, pick, r.Start, f.Basis.Order == predict.FromGrid)
	e.Archive, e.Basis = archive, ledger.Basis(f.Basis.Order)
	for _, c := range f.Candidates {
		e.Chances = append(e.Chances, ledger.Chance{
			Driver: c.Driver, Win: int(math.Round(c.Win * ledger.Certain)), Podium: int(math.Round(c.Podium * ledger.Certain)),
		})
	}
	return e
}

// resultsDue verifies the archive's result of every race that nobody has verified by the time the
// rule allows, and revises those that the archive has otherwise by now.
func (p Policy) resultsDue(v *season.View, s *ledger.State) []ledger.Event {
	v = almanac.Held(v, s)
	var events []ledger.Event
	for _, r := range almanac.Rounds(v, s, s.OpenedAt().UTC().Year()-1) {
		if !r.Facts.Finished() || r.Off() {
			continue
		}
		after, reason := p.AutoVerifyAfter, ""
		if r.Result != nil {
			if !r.Differs() {
				continue
			}
			after = p.AutoReviseAfter
		}
		if after == 0 {
			continue
		}
		since := r.End()
		if p.Stood != nil {
			stood := p.Stood(r.Year, r.Facts.GrandPrix)
			if stood.Contested {
				continue
			}
			if stood.Since.After(since) {
				since = stood.Since
			}
			reason = stood.From
		}
		if v.At.Before(since.Add(after)) {
			continue
		}
		if r.Result == nil {
			reason = ""
		} else {
			reason = strings.TrimSpace("the source has another classification " + reason)
		}
		events = append(events, r.Record.Verify(almanac.Rows(r.Facts.Results), r.Start, reason))
	}
	return events
}
