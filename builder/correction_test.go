package builder_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/stewards"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// builder returns a builder on the weekend.
func (w *weekend) builder() *builder.Builder {
	w.t.Helper()
	facts := builder.NewArchiveStore(w.store)
	var file bytes.Buffer
	if err := archive.Encode(&file, w.archive); err != nil {
		w.t.Fatal(err)
	}
	if _, err := facts.Put(w.t.Context(), file.Bytes()); err != nil {
		w.t.Fatal(err)
	}
	return &builder.Builder{Store: w.store, Ledger: w.ledger, Facts: facts.Load, Policy: w.policy, Name: "test", Log: slog.New(slog.DiscardHandler)}
}

// shown is what clients see of the Austrian Grand Prix and the seasons it counts for.
type shown struct {
	Calendar  wire.CalendarEntry
	Pick      wire.PredictionRecord
	Standings map[string]float64 // points by driver
	Teams     map[string]float64
	Year, All wire.Accuracy
}

func (w *weekend) shown() shown {
	w.t.Helper()
	v, err := snapshots.Open(w.t.Context(), w.store, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	s := shown{Standings: map[string]float64{}, Teams: map[string]float64{}}
	for _, e := range decode[[]wire.CalendarEntry](w.t, v, "calendar/2024") {
		if e.SessionKey == austriaKey {
			s.Calendar = e
		}
	}
	for _, p := range decode[[]wire.PredictionRecord](w.t, v, "predictions/2024") {
		if p.SessionKey == austriaKey {
			s.Pick = p
		}
	}
	for _, row := range decode[[]wire.DriverStanding](w.t, v, "standings/drivers/2024") {
		s.Standings[row.Driver] = row.Points
	}
	for _, row := range decode[[]wire.ConstructorStanding](w.t, v, "standings/constructors/2024") {
		s.Teams[row.Team] = row.Points
	}
	s.Year, s.All = decode[wire.Accuracy](w.t, v, "accuracy/2024"), decode[wire.Accuracy](w.t, v, "accuracy/all")
	return s
}

func decode[T any](t *testing.T, v *snapshots.Version, path string) T {
	t.Helper()
	body, ok := v.Body(path)
	if !ok {
		t.Fatalf("%s is not published", path)
	}
	var success wire.Success[T]
	if err := json.Unmarshal(body.Identity, &success); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return success.Data
}

var sameInstant = cmp.Comparer(func(a, b wire.Instant) bool { return time.Time(a).Equal(time.Time(b)) })

// Russell won in Austria, Verstappen had been picked from pole. Weeks later Russell is
// disqualified, and after an appeal he is back.
func TestCorrectionsWeeksLater(t *testing.T) {
	w := newWeekend(t, asItWas)
	b := w.builder()
	build(t, b, austriaQualified)
	frozen := w.shown().Pick.Prediction
	if frozen.Winner != "VER" {
		t.Fatalf("picked %s, want the driver on pole", frozen.Winner)
	}
	before := w.shown()
	if before.Pick.Result != nil || before.Pick.WinnerHit != nil {
		t.Error("there is a result before the race")
	}

	over := austriaStart.Add(3 * time.Hour)
	build(t, b, over)
	if got := w.shown(); got.Pick.Result != nil || got.Calendar.Winner != "" || !cmp.Equal(got.Standings, before.Standings) {
		t.Error("an unverified result is shown")
	}
	w.decide(over, (*almanac.Round).Verify)
	build(t, b, over)
	asRun := w.shown()
	w.wantShown("verified", asRun, frozen, wire.Result{Winner: "RUS", Podium: wire.Podium{P1: "RUS", P2: "PIA", P3: "SAI"}}, false)
	if gained := asRun.Standings["RUS"] - before.Standings["RUS"]; gained != 25+5 { // the sprint, in which he was fourth, joins with the race
		t.Errorf("Russell gained %v points, want 30", gained)
	}

	// Without the first four Verstappen, fifth on the road, has won: the pick was right.
	out := []season.DriverID{"george-russell", "oscar-piastri", "carlos-sainz-jr", "lewis-hamilton"}
	weeks := over.AddDate(0, 0, 24)
	w.decide(weeks, func(r *almanac.Round) ([]ledger.Event, error) {
		rows, err := stewards.Ruling{Disqualified: out}.Apply(r)
		if err != nil {
			return nil, err
		}
		return r.Correct(rows, "fuel samples")
	})
	build(t, b, weeks)
	corrected := w.shown()
	w.wantShown("corrected", corrected, frozen, wire.Result{Winner: "VER", Podium: wire.Podium{P1: "VER", P2: "HUL", P3: "PER"}}, true)
	for code, want := range map[string]float64{"RUS": -25, "PIA": -18, "SAI": -15, "HAM": -12, "VER": 25 - 10, "HUL": 18 - 8, "BOT": 0} {
		if got := corrected.Standings[code] - asRun.Standings[code]; got != want {
			t.Errorf("the correction moves the points of %s by %v, want %v", code, got, want)
		}
	}
	for team, want := range map[string]float64{"Mercedes": -25 - 12, "Red Bull": 15 + 9, "Haas": 10 + 8} {
		if got := corrected.Teams[team] - asRun.Teams[team]; got != want {
			t.Errorf("the correction moves the points of %s by %v, want %v", team, got, want)
		}
	}

	// The appeal restores the source's classification: everything is as it was.
	later := weeks.AddDate(0, 0, 30)
	w.decide(later, func(r *almanac.Round) ([]ledger.Event, error) { return r.Correct(r.Source(), "appeal upheld") })
	build(t, b, later)
	restored := w.shown()
	if diff := cmp.Diff(asRun, restored, sameInstant); diff != "" {
		t.Errorf("after the appeal (-as run +got)\n%s", diff)
	}
	if got := len(w.round().Revisions); got != 3 {
		t.Errorf("the ledger keeps %d revisions, want all 3", got)
	}
	audit, err := builder.AuditStore(t.Context(), w.store)
	if err != nil || audit.Err() != nil {
		t.Errorf("audit: %v, %v", err, audit.Err())
	}
	if len(audit.Corrections) != 2 || audit.Corrections[1].Reason != "appeal upheld" || audit.Served == 0 {
		t.Errorf("the audit lists the corrections %+v and compared %d picks", audit.Corrections, audit.Served)
	}
}

func (w *weekend) wantShown(what string, got shown, pick wire.Prediction, result wire.Result, hit bool) {
	w.t.Helper()
	if diff := cmp.Diff(pick, got.Pick.Prediction); diff != "" {
		w.t.Errorf("%s: the pick changed (-frozen +got)\n%s", what, diff)
	}
	if diff := cmp.Diff(&result, got.Pick.Result); diff != "" {
		w.t.Errorf("%s: result (-want +got)\n%s", what, diff)
	}
	if got.Pick.WinnerHit == nil || *got.Pick.WinnerHit != hit {
		w.t.Errorf("%s: winner_hit is %v, want %v", what, got.Pick.WinnerHit, hit)
	}
	if got.Calendar.Winner != result.Winner || got.Calendar.Status != wire.Finished {
		w.t.Errorf("%s: the calendar says %s, won by %q; want finished, %s", what, got.Calendar.Status, got.Calendar.Winner, result.Winner)
	}
	var rate wire.Percent
	if hit {
		rate = wire.PercentOf(1, 1)
	}
	if got.Year.RacesEvaluated != 1 || got.Year.PreRace.WinnerHitRatePct != rate || got.All != got.Year {
		w.t.Errorf("%s: accuracy is %+v and %+v over all, want one race and a hit rate of %v", what, got.Year, got.All, rate)
	}
}
