package console_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gridcast/builder/live"
	"gridcast/deploy/must"
)

// TestRaceByHand enters laps of a running race with the form of the page, releases them and ends the race.
func TestRaceByHand(t *testing.T) {
	w := newWorld(t)
	w.build("before qualifying")
	race := func(when string) string {
		page := w.asOperator(http.MethodGet, "/", nil).body
		says(t, "a race by hand: "+when, section(page, "race"))
		return page
	}
	race("a day before")
	w.set(w.weekend.GridKnownAt().Add(time.Minute))
	w.build("the grid is known")
	w.set(w.weekend.StartsAt().Add(2 * time.Minute))
	w.build("lights out")
	if page := race("lights out"); strings.Count(page, `action="/race/2024022/order"`) == 0 || strings.Count(page, `name="lap" inputmode="numeric" value="1"`) == 0 {
		t.Error("the page has no form for the first lap")
	}
	w.wait("/race/2024022/order", url.Values{"lap": {"1"}, "order": {"RUS, LEC SAI"}, "out": {"GAS"}})
	race("after lap 1")
	w.wait("/race/2024022/order", url.Values{"release": {"yes"}})
	w.wait("/race/2024022/order", url.Values{"phase": {"over"}})
	race("over")
	if got := strings.Join(w.audit(), "\n"); strings.Count(got, "set_order") != 3 {
		t.Errorf("the audit log has %q, want three orders", got)
	}
}

// TestRaceNamesTheFeed: the page names the age of the last line, and does not ask for orders by hand while a source sends. It
// says which line waits, and that the source waits while an order by hand counts.
func TestRaceNamesTheFeed(t *testing.T) {
	w := newWorld(t)
	w.set(w.weekend.GridKnownAt().Add(time.Minute))
	w.build("the grid is known")
	w.runs(3)
	w.build("lap 3")
	w.set(w.now().Add(14 * time.Second))
	race := func(when string) {
		says(t, "a race with a feed: "+when, section(w.asOperator(http.MethodGet, "/race", nil).body, "race"))
	}
	race("14 s after a line")
	log := live.Log{Store: w.store}
	over := live.Observation{Session: 2024022, At: w.now(), Received: w.now(), Source: "timing", Phase: live.Over}
	if _, _, err := log.Append(t.Context(), live.Fixture{Laps: 50}, over); !errors.Is(err, live.ErrHeld) {
		t.Fatalf("over at lap 3: %v, want it held", err)
	}
	race("a line is held")
	w.wait("/race/2024022/order", url.Values{"lap": {"4"}, "order": {"RUS"}})
	race("by hand")
}

// runs stores the laps of the weekend's race up to one, in the order of its result with another leader every tenth lap.
func (w *world) runs(laps int) {
	w.t.Helper()
	w.set(w.weekend.StartsAt().Add(time.Duration(laps) * 95 * time.Second))
	log := live.Log{Store: w.store}
	for lap := 1; lap <= laps; lap++ {
		at := w.weekend.StartsAt().Add(time.Duration(lap) * 95 * time.Second)
		o := live.Observation{Session: 2024022, At: at, Received: at, Source: "timing", Lap: lap, Laps: 50}
		for i, row := range w.weekend.Results {
			gap := i * (300 + 40*lap)
			o.Cars = append(o.Cars, live.Car{Driver: row.Driver, GapMS: &gap})
		}
		if lap/10%2 == 1 {
			o.Cars[0].Driver, o.Cars[2].Driver = o.Cars[2].Driver, o.Cars[0].Driver
		}
		must.Get2(log.Append(w.t.Context(), live.Fixture{}, o))(w.t)
	}
}
