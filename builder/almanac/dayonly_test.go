package almanac_test

import (
	"testing"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// TestDayWithoutAnHour: a round of which only the day is known has the local hour of its last edition. It is scheduled until that
// day ends at the circuit, never live, and its pick is due as the day begins there. A round before the first known hours
// stays at 13:00 UTC.
func TestDayWithoutAnHour(t *testing.T) {
	facts := archivetest.Seasons(t, 2023, 2025)
	rounds := facts.Seasons[2].Rounds
	for i := range rounds {
		rounds[i] = archivetest.Scheduled(&rounds[i])
		rounds[i].Start = time.Time{}
	}
	a, err := season.New(facts)
	if err != nil {
		t.Fatal(err)
	}
	for gp, want := range map[season.GrandPrixID]string{
		"australia": "2025-03-16 04:00", // 15:00 in Melbourne
		"las-vegas": "2025-11-23 06:00", // 22:00 on the evening before, as in 2024
		"monaco":    "2025-05-25 13:00",
	} {
		at := func(now time.Time) *almanac.Round {
			for _, r := range almanac.Rounds(a.AsOf(now), new(ledger.Fold), 2025) {
				if r.Facts.GrandPrix == gp {
					return r
				}
			}
			t.Fatalf("no round %s", gp)
			return nil
		}
		start, _ := time.Parse("2006-01-02 15:04", want)
		zone := season.LocationOf(at(start).Facts.Circuit)
		y, m, d := start.In(zone).Date()
		begins, ends := time.Date(y, m, d, 0, 0, 0, 0, zone), time.Date(y, m, d+1, 0, 0, 0, 0, zone)
		if r := at(begins); !r.Start.Equal(start) || !r.Provisional || !r.FreezeBy().Equal(begins) {
			t.Errorf("%s: starts at %s, provisional %t, frozen by %s; want %s, frozen by %s", gp, r.Start, r.Provisional, r.FreezeBy(), start, begins)
		}
		for instant, state := range map[time.Time]almanac.State{
			begins: almanac.Scheduled, start.Add(time.Minute): almanac.Scheduled, ends.Add(-time.Second): almanac.Scheduled, ends: almanac.AwaitingResult,
		} {
			if got := at(instant).State; got != state {
				t.Errorf("%s at %s: state %d, want %d", gp, instant, got, state)
			}
		}
		for instant, due := range map[time.Time]bool{begins.Add(-time.Second): false, begins: true, begins.Add(7 * time.Hour): false} {
			if got := at(instant).PickDue(time.Time{}); got != due {
				t.Errorf("%s at %s: the pick is due: %t, want %t", gp, instant, got, due)
			}
		}
	}
	if r, _ := facts.Round(2025, "las-vegas"); true {
		evening := r.Date.AddDate(0, 0, -1)
		known, _ := a.AsOf(r.Date).Round(2025, "las-vegas")
		if got := facts.UTCDay(r, evening); !got.Equal(r.Date) || !known.LocalDay().Equal(evening) {
			t.Errorf("Las Vegas on the evening of %s: the day in UTC is %s, and at the circuit %s", evening, got, known.LocalDay())
		}
	}
	if r, _ := facts.Round(2023, "monaco"); r.AssumedHour != 0 || r.StartsAt().Hour() != 13 {
		t.Errorf("history: %s starts at %s", r.Name, r.StartsAt())
	}
}
