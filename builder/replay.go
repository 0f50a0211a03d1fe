package builder

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/snapshots"
)

// Replay fills a simulated ledger with the events that a running service would have appended, from its
// head until an instant. It calls Settle at each instant at which an event falls due, in order. So every
// pick is made from the facts that were known when it is frozen. Replay refuses a real ledger. It calls
// progress for each instant; progress may be nil.
func (p Policy) Replay(ctx context.Context, l *ledger.Ledger, facts archive.Stored, until time.Time, progress snapshots.Progress) error {
	if kind := l.Fold().Kind(); kind != ledger.Simulated {
		return fmt.Errorf("replay into a %s ledger: %w", kind, ledger.ErrKind)
	}
	instants := p.instants(facts.Archive.AsOf(until), l.Fold(), until)
	fresh, err := l.Refresh(ctx)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	for i, t := range instants {
		if _, err := p.Settle(ctx, fresh, facts, t); err != nil {
			return fmt.Errorf("replay at %s: %w", t.Format(time.RFC3339), err)
		}
		progress.Report("replaying", i+1, len(instants))
	}
	return nil
}

// instants lists the instants after the ledger's last event at which an event can fall due, ascending:
// a calendar or a grid becomes known, a start is near, or a result is to be verified.
func (p Policy) instants(v *season.View, s *ledger.Fold, until time.Time) []time.Time {
	var all []time.Time
	after := s.At()
	note := func(t time.Time) {
		if t.After(after) && !t.After(until) {
			all = append(all, t)
		}
	}
	for i := range v.Seasons {
		note(season.CalendarKnownAt(v.Seasons[i].Year))
	}
	note(after.Add(time.Second)) // keys of the rounds that are known when the ledger is opened
	for _, r := range almanac.Rounds(v, s, after.Year()) {
		note(r.Facts.GridKnownAt())
		note(r.StoodBy(p.arrived(r)))
		note(r.FreezeBy())
		note(r.End().Add(p.AutoVerifyAfter))
	}
	slices.SortFunc(all, time.Time.Compare)
	return slices.CompactFunc(all, time.Time.Equal)
}
