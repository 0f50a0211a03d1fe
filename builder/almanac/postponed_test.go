package almanac_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
)

// The archive has the second round on its date; the ledger says that it was held
// after the third. Its points count from then on, and only then.
func TestPostponedRoundCountsWhenItIsHeld(t *testing.T) {
	first, second, third := order{"ann", "bob", "cay", "dan"}, order{"cay", "dan", "ann", "bob"}, order{"bob", "ann", "dan", "cay"}
	w := newWorld(t, preseason, first, second, third)
	points := func(at time.Time) map[string]float64 {
		y, _ := w.Almanac(at).Year(2025)
		got := map[string]float64{}
		for _, s := range y.Drivers() {
			got[string(s.Driver.ID)] = s.Points
		}
		for _, s := range y.Constructors() {
			got[string(s.Team.ID)] = s.Points
		}
		return got
	}
	w.verify(startOf(1).Add(raceTime), 1, first, "")
	w.on(startOf(2).Add(-time.Hour), 2, func(s ledger.RoundRecord) []ledger.Event { return s.Postpone(startOf(2), "fog") })
	w.verify(startOf(3).Add(raceTime), 3, third, "")

	without := map[string]float64{"ann": 43, "bob": 43, "cay": 27, "dan": 27, "alpha": 86, "beta": 54}
	if diff := cmp.Diff(without, points(startOf(3).Add(raceTime))); diff != "" {
		t.Errorf("while it is postponed (-want +got)\n%s", diff)
	}
	w.on(startOf(3).Add(2*raceTime), 2, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Reinstate(startOf(5), "new date")}
	})
	if diff := cmp.Diff(without, points(startOf(5).Add(raceTime))); diff != "" {
		t.Errorf("while it is not verified (-want +got)\n%s", diff)
	}
	w.on(startOf(5).Add(2*raceTime), 2, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Verify(almanac.Rows(second.results()), startOf(5), "")}
	})
	with := map[string]float64{"ann": 58, "bob": 55, "cay": 52, "dan": 45, "alpha": 113, "beta": 97}
	if diff := cmp.Diff(with, points(startOf(5).Add(2*raceTime))); diff != "" {
		t.Errorf("when it was held (-want +got)\n%s", diff)
	}
}
