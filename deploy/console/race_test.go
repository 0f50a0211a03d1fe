package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gridcast/builder/live"
)

// TestRaceByHand enters laps of a running race with the form of the page, releases them and ends the race.
func TestRaceByHand(t *testing.T) {
	w := newWorld(t)
	w.build("before qualifying")
	if page := w.asOperator(http.MethodGet, "/", nil).body; strings.Contains(page, `id="race"`) {
		t.Error("the page has a form for a race that is a day away")
	}
	w.set(w.weekend.GridKnownAt().Add(time.Minute))
	w.build("the grid is known")
	w.set(w.weekend.StartsAt().Add(2 * time.Minute))
	w.build("lights out")
	page := w.asOperator(http.MethodGet, "/", nil).body
	for _, part := range []string{`id="race"`, "No lap observed yet", `action="/race/2024022/order"`, `name="lap" inputmode="numeric" value="1"`} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	w.wait("/race/2024022/order", url.Values{"lap": {"1"}, "order": {"RUS, LEC SAI"}, "out": {"GAS"}})
	page = w.asOperator(http.MethodGet, "/", nil).body
	for _, part := range []string{"Lap 1 of 50", "by hand", "Next live pick: 25 %, at the end of lap 13", `<span class="codes">GAS</span>`, "Release to the source"} {
		if !strings.Contains(page, part) {
			t.Errorf("after lap 1 the page lacks %q", part)
		}
	}
	w.wait("/race/2024022/order", url.Values{"release": {"yes"}})
	w.wait("/race/2024022/order", url.Values{"phase": {"over"}})
	if page = w.asOperator(http.MethodGet, "/", nil).body; !strings.Contains(page, ">over<") || strings.Contains(page, "Release to the source") {
		t.Error("the race is not over, or still by hand")
	}
	if got := strings.Join(w.audit(), "\n"); strings.Count(got, "set_order") != 3 {
		t.Errorf("the audit log has %q, want three orders", got)
	}
}

// runs stores the laps of the weekend's race up to one, in the order of its result with another leader every tenth lap.
func (w *world) runs(laps int) {
	w.t.Helper()
	w.set(w.weekend.StartsAt().Add(time.Duration(laps) * 95 * time.Second))
	log := live.Log{Store: w.store}
	for lap := 1; lap <= laps; lap++ {
		at := w.weekend.StartsAt().Add(time.Duration(lap) * 95 * time.Second)
		o := live.Observation{Session: 2024022, At: at, Received: at, Source: "openf1", Lap: lap, Laps: 50}
		for i, row := range w.weekend.Results {
			gap := i * (300 + 40*lap)
			o.Cars = append(o.Cars, live.Car{Driver: row.Driver, GapMS: &gap})
		}
		if lap/10%2 == 1 {
			o.Cars[0].Driver, o.Cars[2].Driver = o.Cars[2].Driver, o.Cars[0].Driver
		}
		if _, _, err := log.Append(w.t.Context(), live.Fixture{}, o); err != nil {
			w.t.Fatal(err)
		}
	}
}
