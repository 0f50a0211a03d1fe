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

// ReplayFrom is the instant at which a ledger has to be opened to replay the seasons from a
// year on: all races before are vouched for by the archive.
func ReplayFrom(year int) time.Time { return season.BeginsAt(year) }

// Replay fills a simulated ledger with what would have been settled from its head until an
// instant, had the service run then: it calls Settle at every instant at which something falls
// due, in order, so that each pick is made from what was known when it is frozen. A ledger of
// the other kind is refused by its own rules. progress is told the instants; it may be nil.
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
		progress.Tell("replaying", i+1, len(instants))
	}
	return nil
}

// instants lists when something can fall due after the ledger's last event and up to an instant,
// ascending: a calendar becomes known, a grid is known, a start is near, a result is to be
// verified.
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
	note(after.Add(time.Second)) // the keys of what is known when the ledger is opened
	for _, r := range almanac.Rounds(v, s, after.Year()) {
		note(r.Facts.GridKnownAt())
		note(r.StoodBy(p.arrived(r)))
		note(r.FreezeBy())
		note(r.End().Add(p.AutoVerifyAfter))
	}
	slices.SortFunc(all, time.Time.Compare)
	return slices.CompactFunc(all, time.Time.Equal)
}
