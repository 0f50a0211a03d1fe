package predict_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/deploy/must"
)

// embedded returns the seasons in the binary.
func embedded(t testing.TB) *season.Archive {
	t.Helper()
	a := archivetest.Embedded(t)
	return a
}

// ofEmbedded is shared by tests of the embedded seasons. TestSameViewSamePick shows that its forecasts do not depend on
// earlier ones.
var ofEmbedded = predict.NewV2(predict.DefaultParams())

// atGrid returns the view at the instant at which the grid of a round was known.
func atGrid(t testing.TB, a *season.Archive, year int, gp season.GrandPrixID) *season.View {
	t.Helper()
	full := a.AsOf(time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC))
	r, ok := full.Round(year, gp)
	must.Require(t, ok, "no %d %s", year, gp)
	return a.AsOf(r.GridKnownAt())
}

// changed returns the view with a changed copy of the round.
func changed(v *season.View, year int, gp season.GrandPrixID, change func(*season.Round)) *season.View {
	w := *v
	w.Seasons = slices.Clone(v.Seasons)
	s, _ := w.Season(year)
	s.Rounds = slices.Clone(s.Rounds)
	r, _ := s.Round(gp)
	r.Grid, r.Qualifying, r.Entries = slices.Clone(r.Grid), slices.Clone(r.Qualifying), slices.Clone(r.Entries)
	change(r)
	return &w
}

func forecast(t testing.TB, m predict.Model, v *season.View, year int, gp season.GrandPrixID) predict.Forecast {
	t.Helper()
	return must.Get(m.Predict(v, year, gp))(t)
}

func TestSameViewSamePick(t *testing.T) {
	must.Long(t, "learns many times")
	a := embedded(t)
	v := atGrid(t, a, 2016, "spain")
	want := forecast(t, predict.NewV2(predict.DefaultParams()), v, 2016, "spain")

	m := predict.NewV2(predict.DefaultParams())
	forecast(t, m, atGrid(t, a, 2018, "monaco"), 2018, "monaco") // a later race, which the model must not use below
	forecast(t, m, atGrid(t, a, 2016, "australia"), 2016, "australia")
	forecast(t, m, atGrid(t, a, 2012, "brazil"), 2012, "brazil")
	// The history differs up to the race before, as after a correction of a result.
	corrected := changed(v, 2016, "russia", func(r *season.Round) {
		r.Results = slices.Clone(r.Results)
		r.Results[0].Driver, r.Results[5].Driver = r.Results[5].Driver, r.Results[0].Driver
	})
	must.Hold(t, !cmp.Equal(want, forecast(t, m, corrected, 2016, "spain")), "a corrected result changes nothing")
	must.Equal(t, "the pick after other questions", want, forecast(t, m, v, 2016, "spain"))
}

// TestModelForgetsChangedFacts changes the result of an earlier race in the rows that the model has read. The forecast is
// then the one of a model without a memory.
func TestModelForgetsChangedFacts(t *testing.T) {
	facts := archivetest.Seasons(t, 2018, 2020)
	won := facts.Seasons[2].Rounds[0].Results
	facts.Seasons[2].Rounds[0].Results = slices.Clone(won)
	won = facts.Seasons[2].Rounds[0].Results
	v := &season.View{Facts: facts}
	m := predict.NewV2(predict.DefaultParams())
	before := forecast(t, m, v, 2020, "spain")
	for i := range won[:5] {
		won[i].Driver, won[9-i].Driver = won[9-i].Driver, won[i].Driver
	}
	after := forecast(t, m, v, 2020, "spain")
	must.Equal(t, "with memory (+) and without", forecast(t, predict.NewV2(predict.DefaultParams()), v, 2020, "spain"), after)
	must.Hold(t, !cmp.Equal(before, after), "the forecast is the same, so this test shows nothing")
}

func TestModelIsSafeForConcurrentUse(t *testing.T) {
	a := embedded(t)
	m := predict.NewV2(predict.DefaultParams())
	rounds := []season.GrandPrixID{"australia", "monaco", "italy"}
	views := make([]*season.View, len(rounds))
	for i, gp := range rounds {
		views[i] = atGrid(t, a, 2009, gp)
	}
	got := make([]predict.Forecast, 3*len(rounds))
	done := make(chan error)
	for i := range got {
		go func() {
			var err error
			got[i], err = m.Predict(views[i%3], 2009, rounds[i%3])
			done <- err
		}()
	}
	for range got {
		must.Do(t, <-done)
	}
	for i := range got {
		if diff := cmp.Diff(got[i%3], got[i]); diff != "" {
			t.Errorf("two forecasts of %s differ:\n%s", rounds[i%3], diff)
		}
	}
}

func TestShortHistoryPredictsByTheGrid(t *testing.T) {
	a := embedded(t)
	year := a.Facts().Seasons[0].Year
	first := a.Facts().Seasons[0].Rounds[0].GrandPrix
	v := atGrid(t, a, year, first)
	m := predict.NewV2(predict.DefaultParams())
	must.Equal(t, "the first round by v2, as by the grid", forecast(t, predict.GridFrequency(), v, year, first), forecast(t, m, v, year, first))
	next := forecast(t, m, atGrid(t, a, year+1, "australia"), year+1, "australia")
	if next.Basis.From != year || next.Basis.To != year || next.Basis.Races != len(a.Facts().Seasons[0].Rounds) {
		t.Errorf("second season: learnt from %+v, want all races of the first", next.Basis)
	}
}

// logLosses returns the mean of -ln of the winners' chances in a season, for each change of every round before its
// prediction. The rounds go by once, because a model that goes back in a season learns it again.
func logLosses(t *testing.T, m predict.Model, year int, changes []func(*season.Round)) []float64 {
	t.Helper()
	a := embedded(t)
	s, _ := a.AsOf(time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC)).Season(year)
	losses := make([]float64, len(changes))
	for i := range s.Rounds {
		r := &s.Rounds[i]
		for k, change := range changes {
			f := forecast(t, m, changed(a.AsOf(r.GridKnownAt()), year, r.GrandPrix, change), year, r.GrandPrix)
			chance := 1e-6
			for _, c := range f.Candidates {
				if c.Driver == r.Winner().Driver {
					chance = c.Win
				}
			}
			losses[k] -= math.Log(chance) / float64(len(s.Rounds))
		}
	}
	return losses
}

// TestInputsAreThoseOfTheView: a digest is the same whichever view the Inputs know, and follows a changed row.
func TestInputsAreThoseOfTheView(t *testing.T) {
	a := embedded(t)
	m := predict.NewV2(predict.DefaultParams())
	now, then := atGrid(t, a, 2024, "italy"), atGrid(t, a, 2024, "spain")
	corrected := changed(now, 2023, "sao-paulo", func(r *season.Round) { r.Results = slices.Clone(r.Results); r.Results[0].Laps++ })
	sum := func(in *predict.Digester, v *season.View) [32]byte {
		t.Helper()
		return must.Get(in.Sum(m, v, 2024, "spain"))(t)
	}
	in := predict.NewDigester(now)
	sum(in, now)
	for name, v := range map[string]*season.View{"now": now, "then": then, "corrected": corrected} {
		got, want := sum(in, v), sum(predict.NewDigester(v), v)
		must.Hold(t, got == want, "%s: got %x, want %x", name, got, want)
	}
	must.Hold(t, sum(in, now) != sum(in, corrected) && sum(in, now) != sum(in, then), "different facts have one digest")
}
