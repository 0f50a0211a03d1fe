package title_test

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/predict"
	"gridcast/builder/predict/title"
	"gridcast/builder/season"
	"gridcast/deploy/must"
)

// model is shared because learning is slow; sharing does not change its forecasts.
var model = predict.NewV2(predict.DefaultParams())

func embedded(t testing.TB) *season.Archive {
	t.Helper()
	a := archivetest.Embedded(t)
	return a
}

// after returns the view at the end of the n-th race of a season.
func after(t testing.TB, a *season.Archive, year, n int) *season.View {
	t.Helper()
	s, ok := a.AsOf(time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC)).Season(year)
	must.Require(t, ok, "no season %d", year)
	if n == 0 {
		return a.AsOf(s.Rounds[0].QualifyingStartsAt().Add(-24 * time.Hour))
	}
	return a.AsOf(s.Rounds[n-1].ResultKnownAt())
}

func quick() title.Config {
	c := title.DefaultConfig()
	c.Runs = 1000
	return c
}

func simulate(t testing.TB, v *season.View, year int, c title.Config) title.Odds {
	t.Helper()
	return must.Get(title.Simulate(v, year, model, c))(t)
}

func TestChancesAddUpAndFall(t *testing.T) {
	a := embedded(t)
	for _, tc := range []struct{ year, races int }{{2010, 0}, {2012, 10}, {2014, 18}, {2021, 21}, {2024, 12}} {
		o := simulate(t, after(t, a, tc.year, tc.races), tc.year, quick())
		must.Hold(t, o.Races == tc.races && o.Remaining != 0, "%d: got %d races and %d remaining, want %d", tc.year, o.Races, o.Remaining, tc.races)
		checkTitle(t, tc.year, o.Drivers)
		checkTitle(t, tc.year, o.Teams)
	}
}

func checkTitle[ID season.DriverID | season.TeamID](t *testing.T, year int, list []title.Chance[ID]) {
	t.Helper()
	sum := 0.0
	for i, c := range list {
		sum += c.Title
		if c.Low < c.Points || c.High < c.Low || i > 0 && c.Title > list[i-1].Title {
			t.Errorf("%d: %+v", year, c)
		}
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("%d: the chances of %d contenders add up to %v", year, len(list), sum)
	}
}

// TestOnlyContendersHaveOdds looks at two decided titles and one that was open until the last lap.
func TestOnlyContendersHaveOdds(t *testing.T) {
	a := embedded(t)
	o := simulate(t, after(t, a, 2023, 17), 2023, quick()) // after Qatar
	must.Hold(t, len(o.Drivers) == 1 && o.Drivers[0].ID == "max-verstappen" && o.Drivers[0].Title == 1, "2023 was decided: got %+v", o.Drivers)
	o = simulate(t, after(t, a, 2021, 21), 2021, quick()) // level on points before the last race
	if len(o.Drivers) != 2 || o.Drivers[0].Title < .3 || o.Drivers[1].Title < .3 {
		t.Errorf("2021 was open between two: got %+v", o.Drivers)
	}
	if o, err := title.Simulate(a.AsOf(time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC)), 2021, model, quick()); err == nil {
		t.Errorf("2021 is over: got %+v, want an error", o)
	}
}

// TestAbsentDriverHasOdds: Sainz missed the second race of 2024, and Bearman drove his car.
func TestAbsentDriverHasOdds(t *testing.T) {
	o := simulate(t, after(t, embedded(t), 2024, 2), 2024, quick())
	odds := map[season.DriverID]title.Chance[season.DriverID]{}
	for _, c := range o.Drivers {
		odds[c.ID] = c
	}
	sainz, bearman := odds["carlos-sainz-jr"], odds["oliver-bearman"]
	if sainz.Title == 0 || sainz.High < 100 || bearman.Title > 0 || bearman.High != bearman.Points {
		t.Errorf("got Sainz %+v, Bearman %+v, want Sainz in the Ferrari", sainz, bearman)
	}
}

func TestSameViewSameOdds(t *testing.T) {
	a := embedded(t)
	v := after(t, a, 2016, 12)
	want := simulate(t, v, 2016, quick())
	simulate(t, after(t, a, 2022, 4), 2022, quick())
	must.Equal(t, "the same simulation again", want, simulate(t, v, 2016, quick()))
	other := quick()
	other.Seed++
	must.Hold(t, !cmp.Equal(want, simulate(t, v, 2016, other)), "another seed gives the same odds")
}

// TestOddsDoNotSeeTheFuture cuts the archive after the race: nothing may change.
func TestOddsDoNotSeeTheFuture(t *testing.T) {
	a := embedded(t)
	facts := a.Facts()
	facts.Seasons = slices.Clone(facts.Seasons)
	i := slices.IndexFunc(facts.Seasons, func(s season.Season) bool { return s.Year == 2016 })
	facts.Seasons = facts.Seasons[:i+1]
	rounds := slices.Clone(facts.Seasons[i].Rounds)
	for k := 12; k < len(rounds); k++ {
		r := rounds[k]
		rounds[k] = season.Round{Number: r.Number, GrandPrix: r.GrandPrix, Name: r.Name, Circuit: r.Circuit, Date: r.Date, Start: r.Start, Sprint: r.Sprint, Sessions: r.Sessions}
	}
	facts.Seasons[i].Rounds = rounds
	cut := must.Get(season.New(facts))(t)
	must.Equal(t, "the odds of an archive that ends there", simulate(t, after(t, a, 2016, 12), 2016, quick()), simulate(t, after(t, cut, 2016, 12), 2016, quick()))
}

func TestSimulateRefuses(t *testing.T) {
	a := embedded(t)
	first := a.Facts().Seasons[0].Year
	must.Fail(t, "two races to learn from", must.Err(title.Simulate(after(t, a, first, 2), first, model, quick())), predict.ErrNoForm)
	for _, year := range []int{1988, 2100} {
		must.Fail(t, strconv.Itoa(year), must.Err(title.Simulate(after(t, a, 2016, 2), year, model, quick())))
	}
}

// An excluded competitor has no chance and stands in nobody's way, and points of a decision count at the end.
func TestDecisionsCountInTheOdds(t *testing.T) {
	v := after(t, embedded(t), 2021, 21) // Verstappen and Hamilton are level on points before the last race
	c := quick()
	c.Drivers = map[season.DriverID]title.Decided{"max-verstappen": {Excluded: true}}
	if o := simulate(t, v, 2021, c); len(o.Drivers) != 1 || o.Drivers[0].ID != "lewis-hamilton" || o.Drivers[0].Title != 1 {
		t.Errorf("the rival is excluded: got %+v", o.Drivers)
	}
	c.Drivers = map[season.DriverID]title.Decided{"max-verstappen": {Points: -27}}
	if o := simulate(t, v, 2021, c); len(o.Drivers) != 1 || o.Drivers[0].ID != "lewis-hamilton" {
		t.Errorf("the rival has lost more points than a race gives: got %+v", o.Drivers)
	}
	c.Drivers = map[season.DriverID]title.Decided{"max-verstappen": {Points: -20}}
	o := simulate(t, v, 2021, c)
	if len(o.Drivers) != 2 || o.Drivers[1].ID != "max-verstappen" || o.Drivers[1].Title > .2 || o.Drivers[1].Most != o.Drivers[0].Most-20 {
		t.Errorf("the rival has lost 20 points: got %+v", o.Drivers)
	}
}
