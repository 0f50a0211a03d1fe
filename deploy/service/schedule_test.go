package service

import (
	"testing"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
	"gridcast/scheduler/cadence"
)

// The schedule gets the rules of the almanac as instants, without postponed and cancelled rounds.
func TestCalendarOfTheSchedule(t *testing.T) {
	const belgium = 2024014
	now := time.Date(2024, 7, 20, 0, 0, 0, 0, time.UTC)
	start := time.Date(2024, 7, 28, 13, 0, 0, 0, time.UTC)
	season2024 := testseason.New(t, testseason.Config{Opened: now, Until: testseason.Scheduled})
	a, l := season2024.Stored.Archive, season2024.Ledger
	var arrived time.Time
	find := func() (found []cadence.Round) {
		for _, r := range calendarOf(a.AsOf(now), l.Fold(), func(int, season.GrandPrixID) time.Time { return arrived }).Rounds {
			if r.Key == belgium {
				found = append(found, r)
			}
		}
		return found
	}
	want := cadence.Round{
		Key: belgium, Start: start, WeekendFrom: start.AddDate(0, 0, -3), WeekendUntil: start.AddDate(0, 0, 1),
		GridKnown: time.Date(2024, 7, 27, 15, 0, 0, 0, time.UTC), StoodBy: time.Date(2024, 7, 27, 17, 0, 0, 0, time.UTC), FreezeBy: start.Add(-5 * time.Minute),
		End: start.Add(2 * time.Hour), WindowEnd: start.Add(4 * time.Hour),
	}
	must.Equal(t, "Belgium as planned", []cadence.Round{want}, find())
	arrived = want.GridKnown.Add(3 * time.Hour) // qualifying came late: it counts as stable from then on
	want.StoodBy = arrived.Add(2 * time.Hour)
	must.Equal(t, "Belgium with qualifying that came late", []cadence.Round{want}, find())
	on := func(decide func(ledger.RoundRecord) []ledger.Event) {
		t.Helper()
		season2024.Append(now, func(s *ledger.Fold) ([]ledger.Event, error) {
			session, _ := s.Record(belgium)
			return decide(session), nil
		})
	}
	on(func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Move(start, start.Add(-3*time.Hour), "storm")}
	})
	want.Start, want.WeekendFrom, want.WeekendUntil = start.Add(-3*time.Hour), want.WeekendFrom.Add(-3*time.Hour), want.WeekendUntil.Add(-3*time.Hour)
	want.FreezeBy, want.End, want.WindowEnd = want.FreezeBy.Add(-3*time.Hour), want.End.Add(-3*time.Hour), want.WindowEnd.Add(-3*time.Hour)
	must.Equal(t, "Belgium, three hours earlier", []cadence.Round{want}, find())
	on(func(s ledger.RoundRecord) []ledger.Event { return s.Postpone(start.Add(-3*time.Hour), "fog") })
	if off := find(); len(off) > 0 {
		t.Errorf("Belgium is postponed, the schedule has %+v", off)
	}
}
