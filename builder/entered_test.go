package builder_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// enteredSeason is a service in which eight rounds of 2024 are verified, each two hours after its start. Either the
// source has their results, or a person has entered all of them. A person enters a sprint with its race, so that before a
// race the model knows it from a source alone: sprints tells whether the source has them.
func enteredSeason(t *testing.T, byHand, sprints bool) (*builder.Builder, archive.Stored, time.Time) {
	t.Helper()
	facts := archivetest.Seasons(t, 2022, 2024)
	present := &facts.Seasons[len(facts.Seasons)-1]
	present.Rounds = slices.Clone(present.Rounds[:11])
	source := slices.Clone(present.Rounds)
	for i := range present.Rounds {
		r := &present.Rounds[i]
		r.FastestLaps, r.PitStops = nil, nil // nobody can enter them
		if byHand || i >= 8 {
			r.Results, r.DriverStandings, r.TeamStandings = nil, nil, nil
		}
		if !sprints || i >= 8 {
			r.SprintResults = nil
		}
	}
	opened := season.BeginsAt(2024)
	b := serviceOf(t, archivetest.Stored(t, facts), opened, builder.Policy{Model: predict.NewV2(predict.DefaultParams())})
	stored := must.Get(b.Facts(t.Context()))(t)
	build(t, b, opened)
	var at time.Time
	for i := range present.Rounds[:8] {
		at = present.Rounds[i].StartsAt().Add(2 * time.Hour)
		v := stored.Archive.AsOf(at)
		must.Get(almanac.Decider{Ledger: testseason.Fresh(t, b.Ledger), View: v, Actor: "operator:anna", Publishable: builder.Publishable}.Decide(t.Context(), 2024001+int64(i), func(r *almanac.Round) ([]ledger.Event, error) {
			e := r.Record.Verify(r.WithDetails(almanac.Rows(source[i].Results), source[i].Results), r.Start, "seen")
			if source[i].SprintResults != nil {
				e.Result.Sprint = r.WithDetails(almanac.Rows(source[i].SprintResults), source[i].SprintResults)
			}
			return []ledger.Event{e}, nil
		}))(t)
	}
	return b, stored, at
}

// TestEnteredSeasonCountsAsTheSourcesOwn: forecasts, odds and records of a season whose results a person entered are
// those of the season whose results came from the source.
func TestEnteredSeasonCountsAsTheSourcesOwn(t *testing.T) {
	must.Long(t, "derives two seasons")
	documents := func(byHand bool) map[string]any {
		b, _, at := enteredSeason(t, byHand, true)
		testseason.Derive(t, b, at, true)
		build(t, b, at)
		all := map[string]any{}
		add := func(name string, data any, ok bool) {
			if all[name] = data; !ok {
				t.Errorf("by hand %t: there is no %s", byHand, name)
			}
		}
		forecast, ok := testseason.Served[[]wire.ForecastRecord](t, b.Store, catalog.Variant{Endpoint: catalog.Forecast})
		add("forecast", forecast, ok && len(forecast) == 3)
		odds, ok := testseason.Served[wire.TitleOdds](t, b.Store, catalog.Variant{Endpoint: catalog.TitleOdds, Year: 2024})
		add("title odds", odds, ok && odds.RacesCounted == 8 && len(odds.AfterRounds) == 8)
		record, ok := testseason.Served[wire.TrackRecord](t, b.Store, catalog.Variant{Endpoint: catalog.TrackRecord, Year: 2024})
		add("track record", record, ok && record.Hindsight.Races == 8)
		careers, ok := testseason.Served[[]wire.Career](t, b.Store, catalog.Variant{Endpoint: catalog.Careers, Type: catalog.DriversType})
		add("careers", careers, ok)
		pairs, ok := testseason.Served[[]wire.HeadToHead](t, b.Store, catalog.Variant{Endpoint: catalog.HeadToHead, Year: 2024})
		add("head-to-head", pairs, ok)
		drivers, ok := testseason.Served[[]wire.DriverProgress](t, b.Store, catalog.Variant{Endpoint: catalog.StandingsProgress, Type: catalog.DriversType, Year: 2024})
		add("drivers", drivers, ok)
		teams, ok := testseason.Served[[]wire.ConstructorProgress](t, b.Store, catalog.Variant{Endpoint: catalog.StandingsProgress, Type: catalog.ConstructorsType, Year: 2024})
		add("constructors", teams, ok && len(teams) == 10)
		return all
	}
	must.Equal(t, "documents of the source's season and of the entered one", documents(false), documents(true), cmp.Comparer(func(a, b wire.Instant) bool { return a == b }))
}

// TestEnteredResultIsNotSeenBeforeItIsKnown: a view of an instant before the verification has no such result, and one
// before the correction has the first.
func TestEnteredResultIsNotSeenBeforeItIsKnown(t *testing.T) {
	b, stored, at := enteredSeason(t, true, false)
	corrected := at.Add(24 * time.Hour)
	must.Get(almanac.Decider{Ledger: testseason.Fresh(t, b.Ledger), View: stored.Archive.AsOf(corrected), Actor: "operator:anna"}.Decide(t.Context(), 2024008, func(r *almanac.Round) ([]ledger.Event, error) {
		rows := slices.Clone(r.Valid())
		rows[0].Position, rows[1].Position = 2, 1
		rows[0].TimeMS, rows[1].GapMS = 0, 0
		return r.Correct(rows, nil, "swapped")
	}))(t)
	if miami, _ := almanac.Entered(stored.Archive.AsOf(at), b.Ledger.Fold()).Round(2024, "miami"); len(miami.SprintResults) != 20 || miami.SprintResults[0].Driver != "max-verstappen" {
		t.Errorf("the sprint of Miami has %d rows, want those that were entered with the race", len(miami.SprintResults))
	}
	for name, tt := range map[string]struct {
		at   time.Time
		want season.DriverID
	}{
		"before":     {at.Add(-time.Second), ""},
		"verified":   {at, "charles-leclerc"},
		"not before": {corrected.Add(-time.Second), "charles-leclerc"},
		"corrected":  {corrected, "oscar-piastri"},
	} {
		monaco, _ := almanac.Entered(stored.Archive.AsOf(tt.at), b.Ledger.Fold()).Round(2024, "monaco")
		winner := season.DriverID("")
		if won := monaco.Winner(); won != nil {
			winner = won.Driver
		}
		must.Hold(t, winner == tt.want, "%s: %q won, want %q", name, winner, tt.want)
	}
}
