package backtest_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/deploy/must"
)

// TestNoPickSeesItsRace scrambles every fact from after the grid of a race was known,
// for every race of a season, in make predictions of two, and shows that its forecast stays the same to the last
// bit. The forecast moves when an earlier race is scrambled.
func TestNoPickSeesItsRace(t *testing.T) {
	must.Long(t, "learns again for every race")
	facts := embedded(t).Facts()
	whole := embedded(t)
	models := []predict.Model{
		predict.NewV2(predict.DefaultParams()), predict.GridFrequency(), predict.Pole(), predict.Leader(), predict.PreviousWinner(),
	}
	for _, year := range []int{2014, 2022}[firstSeason(0, 1):] {
		s, _ := whole.AsOf(season.CalendarKnownAt(year + 2)).Season(year)
		for i := range s.Rounds {
			r := &s.Rounds[i]
			after := must.Get(season.New(scramble(facts, year, r.Number)))(t)
			for _, m := range models {
				want := predicted(t, m, whole, year, r)
				if diff := cmp.Diff(want, predicted(t, m, after, year, r)); diff != "" {
					t.Errorf("%s, %d %s: the pick moved with what came later (-before +after):\n%s", m.Name(), year, r.GrandPrix, diff)
				}
			}
		}
		// The forecast may use the race before, so scrambling that one must change it.
		last := &s.Rounds[len(s.Rounds)-1]
		before := must.Get(season.New(scramble(facts, year, last.Number-1)))(t)
		if cmp.Equal(predicted(t, models[0], whole, year, last), predicted(t, models[0], before, year, last)) {
			t.Errorf("%d %s: the forecast does not depend on the race before", year, last.GrandPrix)
		}
	}
}

func predicted(t *testing.T, m predict.Model, a *season.Archive, year int, r *season.Round) predict.Forecast {
	t.Helper()
	return must.Get(m.Predict(a.AsOf(r.GridKnownAt()), year, r.GrandPrix))(t)
}

// scramble returns the facts with the result of a round, and everything of each later round of the
// season and the seasons after it, given to other drivers.
func scramble(facts season.Facts, year, number int) season.Facts {
	rng := rand.New(rand.NewPCG(uint64(year), uint64(number)))
	facts.Seasons = slices.Clone(facts.Seasons)
	for i := range facts.Seasons {
		s := &facts.Seasons[i]
		if s.Year < year {
			continue
		}
		s.Rounds = slices.Clone(s.Rounds)
		for j := range s.Rounds {
			r := &s.Rounds[j]
			if s.Year == year && r.Number < number {
				continue
			}
			scrambleResult(rng, r)
			if s.Year > year || r.Number > number {
				scrambleWeekend(rng, r)
			}
		}
	}
	return facts
}

func scrambleResult(rng *rand.Rand, r *season.Round) {
	deal(rng, &r.Results, func(a, b *season.Result) {
		a.Driver, b.Driver, a.Team, b.Team, a.Engine, b.Engine = b.Driver, a.Driver, b.Team, a.Team, b.Engine, a.Engine
		a.Laps, b.Laps, a.Points, b.Points = b.Laps, a.Laps, b.Points, a.Points
	})
	deal(rng, &r.FastestLaps, func(a, b *season.FastestLap) { a.Driver, b.Driver = b.Driver, a.Driver })
	deal(rng, &r.PitStops, func(a, b *season.PitStop) { a.Time, b.Time = b.Time, a.Time })
	deal(rng, &r.DriverStandings, func(a, b *season.DriverStanding) { a.Driver, b.Driver = b.Driver, a.Driver })
	deal(rng, &r.TeamStandings, func(a, b *season.TeamStanding) { a.Points, b.Points = b.Points, a.Points })
}

func scrambleWeekend(rng *rand.Rand, r *season.Round) {
	for i := range r.Practice {
		deal(rng, &r.Practice[i], func(a, b *season.TimedLap) { a.Time, b.Time = b.Time, a.Time })
	}
	times := func(a, b *season.QualifyingRow) {
		a.Driver, b.Driver, a.Team, b.Team = b.Driver, a.Driver, b.Team, a.Team
	}
	deal(rng, &r.Qualifying, times)
	deal(rng, &r.SprintQualifying, times)
	deal(rng, &r.SprintResults, func(a, b *season.Result) { a.Driver, b.Driver, a.Team, b.Team = b.Driver, a.Driver, b.Team, a.Team })
	deal(rng, &r.Grid, func(a, b *season.GridSlot) { a.Driver, b.Driver, a.Team, b.Team = b.Driver, a.Driver, b.Team, a.Team })
}

// deal shuffles a copy of the rows with the given swap.
func deal[T any](rng *rand.Rand, rows *[]T, swap func(a, b *T)) {
	*rows = slices.Clone(*rows)
	rng.Shuffle(len(*rows), func(i, j int) { swap(&(*rows)[i], &(*rows)[j]) })
}
