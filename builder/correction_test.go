package builder_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/proof"
	"gridcast/builder/season"
	"gridcast/builder/stewards"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// builder returns a new builder on the weekend, whose archive it puts in the store.
func (w *weekend) builder() *builder.Builder {
	w.t.Helper()
	w.Use(archivetest.Stored(w.t, w.Stored.Archive.Facts()))
	return &builder.Builder{Store: w.Store, Ledger: w.Ledger, Facts: w.Archives.Load, Policy: w.Policy, Name: "test", Log: w.Log}
}

// shown holds the documents that clients get of the Austrian Grand Prix and its season.
type shown struct {
	Calendar  wire.CalendarEntry
	Pick      wire.PredictionRecord
	Standings map[string]float64 // points by driver
	Teams     map[string]float64
	Year, All wire.Accuracy
}

// open returns the published version.
func (w *weekend) open() *snapshots.Version {
	w.t.Helper()
	return must.Get(snapshots.Open(w.t.Context(), w.Store, nil))(w.t)
}

func (w *weekend) shown() shown {
	w.t.Helper()
	v := w.open()
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
	must.Require(t, ok, "%s is not published", path)
	success := must.JSON[wire.Success[T]](t, body.Identity)
	return success.Data
}

var sameInstant = cmp.Comparer(func(a, b wire.Instant) bool { return time.Time(a).Equal(time.Time(b)) })

// disqualified decides that drivers are out of a race.
func disqualified(drivers ...season.DriverID) func(*almanac.Round) ([]ledger.Event, error) {
	return func(r *almanac.Round) ([]ledger.Event, error) {
		rows, err := stewards.Ruling{Disqualified: drivers}.Apply(stewards.Session{Round: r})
		if err != nil {
			return nil, err
		}
		return r.Correct(rows, nil, "fuel samples")
	}
}

// Russell won in Austria, Verstappen had been picked from pole. Weeks later Russell is
// disqualified, and after an appeal he is back.
func TestCorrectionsWeeksLater(t *testing.T) {
	w := newWeekend(t, asItWas)
	b := w.builder()
	build(t, b, austriaQualified)
	frozen := w.shown().Pick.Prediction
	must.Require(t, frozen.Winner == "VER", "picked %s, want the driver on pole", frozen.Winner)
	before := w.shown()
	must.Hold(t, before.Pick.Result == nil && before.Pick.WinnerHit == nil, "there is a result before the race")

	build(t, b, over)
	got := w.shown()
	must.Hold(t, got.Pick.Result == nil && got.Calendar.Winner == "" && cmp.Equal(got.Standings, before.Standings), "an unverified result is shown")
	w.decide(over, (*almanac.Round).Verify)
	build(t, b, over)
	asRun := w.shown()
	w.wantShown("verified", asRun, frozen, wire.Result{Winner: "RUS", Podium: wire.Podium{P1: "RUS", P2: "PIA", P3: "SAI"}}, false)
	if gained := asRun.Standings["RUS"] - before.Standings["RUS"]; gained != 25+5 { // the sprint, in which he was fourth, joins with the race
		t.Errorf("Russell gained %v points, want 30", gained)
	}

	// Without the first four Verstappen, fifth on the road, has won: the pick was right.
	weeks := over.AddDate(0, 0, 24)
	w.decide(weeks, disqualified("george-russell", "oscar-piastri", "carlos-sainz-jr", "lewis-hamilton"))
	build(t, b, weeks)
	corrected := w.shown()
	w.wantShown("corrected", corrected, frozen, wire.Result{Winner: "VER", Podium: wire.Podium{P1: "VER", P2: "HUL", P3: "PER"}}, true)
	var after []wire.ResultRow
	for _, record := range decode[[]wire.ResultRecord](t, w.open(), "results/2024") {
		if record.SessionKey == austriaKey {
			after = record.Race
		}
	}
	rows := map[string]string{}
	for _, row := range after {
		rows[row.Driver] = fmt.Sprintf("P%d %s %d+%d+%d", row.Position, row.Status, row.TimeMS, row.GapMS, row.GapLaps)
	}
	for driver, want := range map[string]string{ // Russell won in 5062798 ms
		"VER": "P1 classified 5100051+0+0", "HUL": "P2 classified 0+16835+0", "RUS": "P0 disqualified 0+0+0", "BOT": "P12 classified 0+0+1",
	} {
		if rows[driver] != want {
			t.Errorf("/results after the correction: %s is %q, want %q", driver, rows[driver], want)
		}
	}
	for code, want := range map[string]float64{"RUS": -25, "PIA": -18, "SAI": -15, "HAM": -12, "VER": 25 - 10, "HUL": 18 - 8, "BOT": 0} {
		got := corrected.Standings[code] - asRun.Standings[code]
		must.Hold(t, got == want, "the correction moves the points of %s by %v, want %v", code, got, want)
	}
	for team, want := range map[string]float64{"Mercedes": -25 - 12, "Red Bull": 15 + 9, "Haas": 10 + 8} {
		got := corrected.Teams[team] - asRun.Teams[team]
		must.Hold(t, got == want, "the correction moves the points of %s by %v, want %v", team, got, want)
	}

	// The appeal restores the source's classification: everything is as it was.
	later := weeks.AddDate(0, 0, 30)
	w.decide(later, func(r *almanac.Round) ([]ledger.Event, error) {
		return r.Correct(r.Source(), r.SourceSprint(), "appeal upheld")
	})
	build(t, b, later)
	restored := w.shown()
	diff := cmp.Diff(asRun, restored, sameInstant)
	must.Hold(t, diff == "", "after the appeal (-as run +got)\n%s", diff)
	if got := len(w.round().Revisions); got != 3 {
		t.Errorf("the ledger keeps %d revisions, want all 3", got)
	}
	audit, err := proof.AuditStore(t.Context(), w.Store)
	if err != nil || audit.Err() != nil {
		t.Errorf("audit: %v, %v", err, audit.Err())
	}
	if len(audit.Corrections) != 2 || audit.Corrections[1].Reason != "appeal upheld" || audit.Served == 0 {
		t.Errorf("the audit lists the corrections %+v and compared %d picks", audit.Corrections, audit.Served)
	}
}

func (w *weekend) wantShown(what string, got shown, pick wire.Prediction, result wire.Result, hit bool) {
	w.t.Helper()
	diff := cmp.Diff(pick, got.Pick.Prediction)
	must.Hold(w.t, diff == "", "%s: the pick changed (-frozen +got)\n%s", what, diff)
	must.Equal(w.t, what+": result", &result, got.Pick.Result)
	must.Hold(w.t, got.Pick.WinnerHit != nil && *got.Pick.WinnerHit == hit, "%s: winner_hit is %v, want %v", what, got.Pick.WinnerHit, hit)
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

// A correction of the sprint that comes after the race was verified waits like one of the race: nothing
// of it is seen before somebody vouches for it, and a ruling on the race leaves it alone.
func TestSprintCorrection(t *testing.T) {
	must.Long(t, "builds some versions, one after the other")
	w := newWeekend(t, asItWas)
	build(t, w.builder(), austriaQualified)
	w.decide(over, (*almanac.Round).Verify)
	build(t, w.builder(), over)
	seen := func() (standings shown, results []wire.ResultRecord) {
		t.Helper()
		v := must.Get(snapshots.Open(t.Context(), w.Store, nil))(t)
		return w.shown(), decode[[]wire.ResultRecord](t, v, "results/session/2024011")
	}
	verified, results := seen()
	got := results[0].Sprint[0]
	must.Require(t, got.Driver == "VER" && got.Points == 8, "the sprint was won by %s with %v points, want Verstappen with 8", got.Driver, got.Points)

	// Days later the source has him out of the sprint, and everybody behind him a place up.
	w.Stored.Archive = altered(t, func(r *season.Round) {
		r.SprintResults = slices.Clone(r.SprintResults) // the others are of every test
		out := r.SprintResults[0]
		out.Position, out.Points, out.Outcome, out.Laps = 0, 0, season.Disqualified, 1
		for i := 1; i < len(r.SprintResults); i++ {
			row := &r.SprintResults[i]
			row.Points = float64(max(0, 9-i))
			if row.Position > 0 {
				row.Position = i
			}
			r.SprintResults[i-1] = *row
		}
		r.SprintResults[len(r.SprintResults)-1] = out
	})
	days := over.AddDate(0, 0, 2)
	differing := func(at time.Time) int {
		return len(almanac.Join(w.Stored.Archive.AsOf(at), w.Ledger.AsOf(at), 2024).Differing())
	}
	build(t, w.builder(), days)
	standings, waiting := seen()
	diff := cmp.Diff(verified, standings, sameInstant)
	must.Hold(t, diff == "", "standings while the correction waits (-verified +got)\n%s", diff)
	if diff := cmp.Diff(results, waiting, sameInstant); diff != "" {
		t.Errorf("results while the correction waits (-verified +got)\n%s", diff)
	}
	must.Hold(t, differing(days) == 1, "nobody is told that the source has another sprint")

	// The stewards rule on the race alone.
	w.decide(days, disqualified("george-russell"))
	build(t, w.builder(), days)
	if _, ruled := seen(); ruled[0].Race[0].Driver != "PIA" || !cmp.Equal(ruled[0].Sprint, results[0].Sprint) {
		t.Errorf("after the ruling the race was won by %s, the sprint is (-verified +got)\n%s", ruled[0].Race[0].Driver, cmp.Diff(results[0].Sprint, ruled[0].Sprint))
	}

	// Then somebody vouches for all that the source has.
	w.Policy.AutoReviseAfter = time.Hour
	build(t, w.builder(), days.Add(2*time.Hour))
	standings, revised := seen()
	if got := revised[0]; got.Race[0].Driver != "RUS" || got.Sprint[0].Driver != "PIA" || got.Sprint[0].Points != 8 || len(got.Revisions) != 3 {
		t.Errorf("the third of %d revisions has %s as winner and %s with %v points as that of the sprint, want RUS, and PIA with 8",
			len(got.Revisions), got.Race[0].Driver, got.Sprint[0].Driver, got.Sprint[0].Points)
	}
	for code, want := range map[string]float64{"VER": -8, "PIA": 1, "RUS": 1, "GAS": 0} {
		got := standings.Standings[code] - verified.Standings[code]
		must.Hold(t, got == want, "the correction moves the points of %s by %v, want %v", code, got, want)
	}
	must.Hold(t, differing(days.Add(2*time.Hour)) == 0, "the source has what counts, and is said to differ")
}

// TestForgedArchiveChangesNoVerifiedResult gives a builder an archive in which another driver has won a verified race.
func TestForgedArchiveChangesNoVerifiedResult(t *testing.T) {
	facts := testseason.ShortFacts(t, testseason.Austria)
	inUse := must.Get(season.New(facts))(t)
	verified := austriaStart.Add(4 * time.Hour)
	b := onArchive(t, &inUse, austriaQualified.Add(-time.Hour), policy())
	build(t, b, austriaQualified)
	before := build(t, b, verified).Base
	round, _ := facts.Seasons[1].Round(austria)
	round.Results = slices.Clone(round.Results)
	round.Results[0].Driver, round.Results[1].Driver = round.Results[1].Driver, round.Results[0].Driver
	round.Results[0].Team, round.Results[1].Team = round.Results[1].Team, round.Results[0].Team
	inUse = must.Get(season.New(facts))(t)
	after := build(t, b, verified.Add(time.Hour)).Base
	for _, path := range []string{"results/session/2024011", "predictions/session/2024011", "standings/drivers/2024", "accuracy/2024"} {
		was, ok := before.Entry(path)
		is, _ := after.Entry(path)
		must.Hold(t, ok && is.SHA256 == was.SHA256, "%s follows the forged archive", path)
	}
}
