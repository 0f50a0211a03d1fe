package predict_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/deploy/must"
)

// oneRace is a round with a grid and a finishing order, both by driver.
func oneRace(gp season.GrandPrixID, grid, finish []season.DriverID) season.Round {
	r := season.Round{GrandPrix: gp}
	for i, d := range grid {
		r.Grid = append(r.Grid, season.GridSlot{Driver: d, Team: "team-" + season.TeamID(d), Position: i + 1})
	}
	for i, d := range finish {
		r.Results = append(r.Results, season.Result{Driver: d, Team: "team-" + season.TeamID(d), Position: i + 1})
		r.DriverStandings = append(r.DriverStandings, season.DriverStanding{Driver: d, Position: i + 1})
	}
	return r
}

func viewOf(seasons ...season.Season) *season.View {
	return &season.View{Facts: season.Facts{Seasons: seasons}}
}

func ids(names ...season.DriverID) []season.DriverID { return names }

func smallView(next season.Round) *season.View {
	return viewOf([]season.Season{
		{Year: 2019, Rounds: []season.Round{
			oneRace("one", ids("ann", "bob", "cat", "dan"), ids("ann", "cat", "bob", "dan")),
			oneRace("two", ids("bob", "ann", "cat", "dan"), ids("ann", "bob", "cat", "dan")),
		}},
		{Year: 2020, Rounds: []season.Round{
			oneRace("one", ids("cat", "bob", "ann", "dan"), ids("cat", "bob", "ann", "dan")),
			next,
		}},
	}...)
}

func TestPickFollowsTheBestKnownOrder(t *testing.T) {
	grid := oneRace("two", ids("dan", "cat", "bob", "ann"), nil)
	qualifying := season.Round{GrandPrix: "two", Qualifying: []season.QualifyingRow{
		{Driver: "bob"}, {Driver: "dan"}, {Driver: "ann"}, {Driver: "cat"},
	}}
	both := grid
	both.Qualifying = qualifying.Qualifying
	neither := season.Round{GrandPrix: "two"}
	entered := season.Round{GrandPrix: "two", Entries: []season.Entry{{Driver: "new"}, {Driver: "dan"}, {Driver: "bob"}, {Driver: "cat"}}}

	for _, tc := range []struct {
		name  string
		model predict.Model
		round season.Round
		want  [3]season.DriverID
		order predict.Order
	}{
		{"grid", predict.GridFrequency(), grid, [3]season.DriverID{"dan", "cat", "bob"}, predict.FromGrid},
		{"grid before qualifying", predict.GridFrequency(), both, [3]season.DriverID{"dan", "cat", "bob"}, predict.FromGrid},
		{"qualifying", predict.GridFrequency(), qualifying, [3]season.DriverID{"bob", "dan", "ann"}, predict.FromQualifying},
		{"form", predict.GridFrequency(), neither, [3]season.DriverID{"cat", "ann", "bob"}, predict.FromForm},
		{"form of those entered", predict.GridFrequency(), entered, [3]season.DriverID{"cat", "dan", "bob"}, predict.FromForm},
		{"pole", predict.Pole(), grid, [3]season.DriverID{"dan", "cat", "bob"}, predict.FromGrid},
		{"leader", predict.Leader(), grid, [3]season.DriverID{"cat", "bob", "ann"}, predict.FromGrid},
		{"previous winner", predict.PreviousWinner(), grid, [3]season.DriverID{"cat", "bob", "ann"}, predict.FromGrid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := must.Get(tc.model.Predict(smallView(tc.round), 2020, "two"))(t)
			must.Hold(t, got.Podium == tc.want, "podium: got %v, want %v", got.Podium, tc.want)
			if got.Basis.Order != tc.order || got.Basis.Races != 3 || got.Basis.From != 2019 || got.Basis.To != 2020 {
				t.Errorf("basis: got %+v, want %s and the three races of 2019 to 2020", got.Basis, tc.order)
			}
			checkChances(t, got, 4)
		})
	}
}

// checkChances fails unless the chances of n candidates add up and fall.
func checkChances(t *testing.T, f predict.Forecast, n int) {
	t.Helper()
	must.Require(t, len(f.Candidates) == n, "got %d candidates, want %d", len(f.Candidates), n)
	win, podium := 0.0, 0.0
	for i, c := range f.Candidates {
		win += c.Win
		podium += c.Podium
		if c.Win < 0 || c.Podium < c.Win || c.Podium > 1 {
			t.Errorf("chances of %s out of order: %+v", c.Driver, c)
		}
		if i > 0 && c.Win > f.Candidates[i-1].Win {
			t.Errorf("candidate %d is likelier than the one before", i)
		}
	}
	if math.Abs(win-1) > 1e-9 || math.Abs(podium-min(3, float64(n))) > 1e-9 {
		t.Errorf("chances add up to %v wins and %v podiums", win, podium)
	}
}

func TestGridFrequencyCountsSlotsOfTheLastTenYears(t *testing.T) {
	v := smallView(oneRace("two", ids("dan", "cat", "bob", "ann"), nil))
	old := season.Season{Year: 2009}
	for range 50 {
		old.Rounds = append(old.Rounds, oneRace("old", ids("ann", "bob", "cat", "dan"), ids("dan")))
	}
	v.Seasons = append([]season.Season{old}, v.Seasons...)

	got := must.Get(predict.GridFrequency().Predict(v, 2020, "two"))(t)
	// Slots 1, 2 and 1 won; the prior is 8 races shared as 1, 1/4, 1/9, 1/16 of 205/144.
	prior := 8 / (205.0 / 144)
	want := map[season.DriverID]float64{
		"dan": (2 + prior) / 11, "cat": (1 + prior/4) / 11, "bob": prior / 9 / 11, "ann": prior / 16 / 11,
	}
	for _, c := range got.Candidates {
		if math.Abs(c.Win-want[c.Driver]) > 1e-6 { // they are millionths
			t.Errorf("%s: got %v, want %v", c.Driver, c.Win, want[c.Driver])
		}
	}
}

func TestPoleHoldsTheOthersForEqual(t *testing.T) {
	got := must.Get(predict.Pole().Predict(smallView(oneRace("two", ids("dan", "cat", "bob", "ann"), nil)), 2020, "two"))(t)
	for _, c := range got.Candidates[1:] {
		if math.Abs(c.Win-got.Candidates[1].Win) > 1.5e-6 { // they are millionths
			t.Errorf("%s: got %v, want the %v of the others", c.Driver, c.Win, got.Candidates[1].Win)
		}
	}
}

func TestAResultOfTheRoundItselfIsNotLookedAt(t *testing.T) {
	grid := ids("dan", "cat", "bob", "ann")
	for _, m := range []predict.Model{predict.GridFrequency(), predict.Pole(), predict.Leader(), predict.PreviousWinner()} {
		before := must.Get(m.Predict(smallView(oneRace("two", grid, nil)), 2020, "two"))(t)
		after := must.Get(m.Predict(smallView(oneRace("two", grid, ids("ann", "bob", "cat", "dan"))), 2020, "two"))(t)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s moved with the result (-before +after):\n%s", m.Name(), diff)
		}
	}
}

func TestPredictRefuses(t *testing.T) {
	empty := viewOf(season.Season{Year: 2020, Rounds: []season.Round{{GrandPrix: "one"}}})
	must.Fail(t, "no drivers", must.Err(predict.GridFrequency().Predict(empty, 2020, "one")), predict.ErrNobody)
	must.Fail(t, "no such round", must.Err(predict.GridFrequency().Predict(empty, 2020, "two")), predict.ErrNoRound)
}

func TestTwoStartersMakeAForecast(t *testing.T) {
	v := viewOf(season.Season{Year: 2020, Rounds: []season.Round{oneRace("one", ids("ann", "bob"), nil)}})
	got := must.Get(predict.GridFrequency().Predict(v, 2020, "one"))(t)
	checkChances(t, got, 2)
	want := [3]season.DriverID{"ann", "bob"}
	must.Hold(t, got.Podium == want, "got %v, want %v", got.Podium, want)
}
