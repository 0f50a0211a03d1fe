package derive_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// newForecaster returns a season with a ledger of a kind over the seasons 2023 and 2024.
func newForecaster(t *testing.T, kind ledger.Kind, opened time.Time, change func(*season.Facts)) *testseason.Season {
	t.Helper()
	changed := testseason.ShortFacts(t, testseason.Austria)
	if change != nil {
		change(&changed)
	}
	return testseason.New(t, testseason.Config{
		Archive: must.Get(season.New(changed))(t), Kind: kind, Opened: opened,
		Policy: builder.Policy{Model: predict.NewV2(predict.DefaultParams()), AutoVerifyAfter: time.Hour},
	})
}

var (
	allForecasts = catalog.Variant{Endpoint: catalog.Forecast}
	ofAustria    = int64(2024011)
	austriaAlone = catalog.Variant{Endpoint: catalog.Forecast, SessionKey: ofAustria}
)

// TestForecastImprovesThroughTheWeek walks over a weekend with a sprint. Each step has its basis and its next session,
// and the ledger notes it once. After the race the track record scores every step.
func TestForecastImprovesThroughTheWeek(t *testing.T) {
	must.Long(t, "learns a model and builds a week")
	june := func(day, hour, minute int) time.Time { return time.Date(2024, 6, day, hour, minute, 0, 0, time.UTC) }
	b := newForecaster(t, ledger.Simulated, june(24, 8, 0), nil)
	b.Publish(june(24, 9, 0))
	type step struct{ Basis, Next string }
	var last wire.ForecastRecord
	for _, tc := range []struct {
		at      time.Time
		want    step
		noted   []season.SessionKind
		changes bool
	}{
		{june(24, 10, 0), step{"form", "practice_1"}, nil, true},
		{june(27, 14, 0), step{"form", "practice_1"}, []season.SessionKind{"form"}, false},
		{june(28, 12, 0), step{"practice", "sprint_qualifying"}, []season.SessionKind{"form", "practice-1"}, true},
		{june(28, 16, 0), step{"sprint", "sprint"}, []season.SessionKind{"form", "practice-1", "sprint-qualifying"}, true},
		{june(29, 12, 0), step{"sprint", "qualifying"}, []season.SessionKind{"form", "practice-1", "sprint-qualifying", "sprint"}, true},
		{june(29, 16, 0), step{"grid", ""}, []season.SessionKind{"form", "practice-1", "sprint-qualifying", "sprint", "grid"}, true},
	} {
		testseason.Derive(t, b.Builder, tc.at, tc.changes)
		b.Publish(tc.at)
		all, _ := testseason.Served[[]wire.ForecastRecord](t, b.Store, allForecasts)
		must.Require(t, len(all) == 2 && all[0].SessionKey == ofAustria, "%s: got %d forecasts, want 2, Austria first", tc.at, len(all))
		last = all[0]
		got := step{Basis: last.Basis}
		if last.LearnsNext != nil {
			got.Next = last.LearnsNext.Session
		}
		must.Hold(t, got == tc.want, "%s: got %+v, want %+v", tc.at, got, tc.want)
		if own := last.Basis == "grid"; own != (last.EntriesFrom == 0) || !own && last.EntriesFrom != 2024010 {
			t.Errorf("%s: the starters are those of %d", tc.at, last.EntriesFrom)
		}
		alone, _ := testseason.Served[[]wire.ForecastRecord](t, b.Store, austriaAlone)
		must.Hold(t, len(alone) == 1 && reflect.DeepEqual(alone[0], last), "%s: with the session key: got %+v", tc.at, alone)
		var noted []season.SessionKind
		record, _ := b.Ledger.Fold().Record(ofAustria)
		for _, f := range record.Forecasts {
			noted = append(noted, f.Step)
		}
		must.Equal(t, fmt.Sprintf("%s: noted", tc.at), tc.noted, noted)
	}
	picked, _ := testseason.Served[[]wire.PredictionRecord](t, b.Store, catalog.Variant{Endpoint: catalog.Predictions, SessionKey: ofAustria})
	if len(picked) != 1 || picked[0].Prediction.Podium != last.Podium || picked[0].Prediction.ConfidencePct != last.Drivers[0].WinPct {
		t.Errorf("on the grid the forecast is %+v, the pick %+v", last, picked)
	}

	lap36 := testseason.Austria.Start.Add(36 * 70 * time.Second)
	half := live.Observation{Session: ofAustria, At: lap36, Received: lap36.Add(time.Second), Source: "operator:anna", Hand: true, Lap: 36}
	frozen, _ := b.Ledger.Fold().Record(ofAustria)
	for _, c := range frozen.Pick.Chances {
		half.Cars = append(half.Cars, live.Car{Driver: c.Driver})
	}
	must.Get2(b.Observed().Append(t.Context(), live.Fixture{}, half))(t)
	b.Publish(half.Received.Add(time.Second))
	if frozen, _ = b.Ledger.Fold().Record(ofAustria); frozen.LivePick(50) == nil || frozen.LivePick(50).Model != predict.OrderName {
		t.Fatalf("an order by hand gave the live picks %+v, want one of the model without gaps", frozen.Live)
	}

	verified := june(30, 17, 0)
	b.Publish(verified)
	testseason.Derive(t, b.Builder, verified, true)
	b.Publish(verified)
	started, ok := testseason.Served[[]wire.ForecastRecord](t, b.Store, austriaAlone)
	must.Hold(t, !ok, "a race that has started is forecast: %+v", started)
	record, _ := testseason.Served[wire.TrackRecord](t, b.Store, catalog.Variant{Endpoint: catalog.TrackRecord, Year: 2024})
	var bases []string
	for _, r := range record.Real.Forecasts {
		bases = append(bases, r.Basis)
		must.Hold(t, r.Races == 1 && r.Picks.LogLoss != nil, "forecasts from %s: got %+v", r.Basis, r)
	}
	must.Equal(t, "bases of the noted forecasts", []string{"form", "practice", "sprint", "grid"}, bases)
	if frozen := record.Real.AsFrozen; len(frozen) != 1 || frozen[0].Basis != "grid" || *frozen[0].Picks.LogLoss != *record.Real.Picks.LogLoss {
		t.Errorf("as frozen: got %+v, want the pick on the grid", frozen)
	}
	if of := record.Real.Live; len(of) != 1 || !of[0].ByHand || of[0].Races != 1 || of[0].Picks.LogLoss == nil {
		t.Errorf("live picks: got %+v, want the one by hand", of)
	}
	must.Hold(t, record.Real.Races == 1, "%d picks, want 1: a forecast counts as none", record.Real.Races)
}

// TestForecastKnowsTheEntriesThatAreEntered replaces a driver in the entry list of a coming race. A real service
// knows the list. A replay does not, because its archive has lists of the future.
func TestForecastKnowsTheEntriesThatAreEntered(t *testing.T) {
	must.Long(t, "builds some versions, one after the other")
	at := time.Date(2024, 6, 26, 10, 0, 0, 0, time.UTC)
	replace := func(facts *season.Facts) {
		year := &facts.Seasons[len(facts.Seasons)-1]
		year.Rounds = slices.Clone(year.Rounds)
		r := &year.Rounds[10]
		r.Entries = slices.DeleteFunc(slices.Clone(r.Entries), func(e season.Entry) bool { return e.Driver == "max-verstappen" })
		r.Qualifying, r.Grid, r.Results, r.SprintQualifying, r.SprintGrid, r.SprintResults = nil, nil, nil, nil, nil, nil
		r.Practice, r.FastestLaps, r.PitStops = [4][]season.TimedLap{}, nil, nil
	}
	for kind, want := range map[ledger.Kind]bool{ledger.Real: false, ledger.Simulated: true} {
		b := newForecaster(t, kind, at.Add(-time.Hour), replace)
		b.Publish(at)
		testseason.Derive(t, b.Builder, at, true)
		b.Publish(at)
		alone, _ := testseason.Served[[]wire.ForecastRecord](t, b.Store, austriaAlone)
		must.Require(t, len(alone) == 1, "%s: got %+v", kind, alone)
		has := slices.ContainsFunc(alone[0].Drivers, func(d wire.ForecastChance) bool { return d.Driver == "VER" })
		if known := alone[0].EntriesFrom == 0; has != want || known == want {
			t.Errorf("%s: the absent driver has chances: %t, starters from %d", kind, has, alone[0].EntriesFrom)
		}
	}
}
