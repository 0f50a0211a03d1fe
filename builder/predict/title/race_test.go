package title

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/season"
	"gridcast/deploy/must"
)

// TestPointsAreThoseOfTheResults compares the points table with the points in the results.
func TestPointsAreThoseOfTheResults(t *testing.T) {
	a := archivetest.Embedded(t)
	facts := a.Facts()
	for i := range facts.Seasons {
		s := &facts.Seasons[i]
		for j := range s.Rounds {
			r := &s.Rounds[j]
			if !r.Finished() || r.Winner().Points < 10 || s.Year == 2009 && r.GrandPrix == "malaysia" || s.Year == 2021 && r.GrandPrix == "belgium" {
				continue // stopped early: half the points
			}
			want := pointsOf(s.Year, r.Sprint, j == len(s.Rounds)-1)
			if s.Year >= FirstYear && max(len(want.race), len(want.sprint)) > counted {
				t.Fatalf("%d: %+v, but the places after %d are drawn in no order", s.Year, want, counted)
			}
			for _, row := range r.Results {
				if row.Position == 0 || row.Position > len(want.race) {
					continue
				}
				if extra := row.Points - want.race[row.Position-1]; extra != 0 && extra != want.fastest {
					t.Errorf("%d %s: place %d got %v points, the table says %v", s.Year, r.GrandPrix, row.Position, row.Points, want.race[row.Position-1])
				}
			}
			for _, row := range r.SprintResults {
				given := 0.0
				if row.Position > 0 && row.Position <= len(want.sprint) {
					given = want.sprint[row.Position-1]
				}
				if row.Points != given {
					t.Errorf("%d %s, sprint: place %d got %v points, the table says %v", s.Year, r.GrandPrix, row.Position, row.Points, given)
				}
			}
		}
	}
}

// TestSeatsOfAbsentDrivers: a driver keeps his seat when he misses the latest race, and his substitute keeps the seat
// that he left for it. A driver leaves his seat when he races for another team.
func TestSeatsOfAbsentDrivers(t *testing.T) {
	for _, tc := range []struct {
		year, races int
		next        func(*season.Round) // edits the round to come
		want, gone  []season.Entry
	}{
		{2024, 2, nil, []season.Entry{{Driver: "carlos-sainz-jr", Team: "ferrari"}}, []season.Entry{{Driver: "oliver-bearman", Team: "ferrari"}}},
		{
			2020, 16, nil,
			[]season.Entry{{Driver: "lewis-hamilton", Team: "mercedes"}, {Driver: "george-russell", Team: "williams"}, {Driver: "romain-grosjean", Team: "haas"}},
			[]season.Entry{{Driver: "george-russell", Team: "mercedes"}, {Driver: "jack-aitken", Team: "williams"}},
		},
		{
			2019, 13, nil,
			[]season.Entry{{Driver: "alexander-albon", Team: "red-bull"}, {Driver: "pierre-gasly", Team: "toro-rosso"}},
			[]season.Entry{{Driver: "pierre-gasly", Team: "red-bull"}},
		},
		{
			2024, 2, func(r *season.Round) { r.Entries = []season.Entry{{Driver: "oliver-bearman", Team: "ferrari"}} },
			[]season.Entry{{Driver: "oliver-bearman", Team: "ferrari"}},
			[]season.Entry{{Driver: "carlos-sainz-jr", Team: "ferrari"}},
		},
	} {
		facts := archivetest.Embedded(t).Facts()
		v := &season.View{Facts: facts}
		s, _ := v.Season(tc.year)
		now := *s
		now.Rounds = slices.Clone(s.Rounds)
		for i := tc.races; i < len(now.Rounds); i++ {
			r := now.Rounds[i]
			now.Rounds[i] = season.Round{Number: r.Number, GrandPrix: r.GrandPrix}
		}
		next := &now.Rounds[tc.races]
		if tc.next != nil {
			tc.next(next)
		}
		got, _ := withRegulars(&season.View{Facts: season.Facts{Seasons: []season.Season{now}}}, &now, next).Round(tc.year, next.GrandPrix)
		has := func(e season.Entry) bool { return slices.Contains(got.Entries, e) }
		if slices.ContainsFunc(tc.want, func(e season.Entry) bool { return !has(e) }) || slices.ContainsFunc(tc.gone, has) {
			t.Errorf("%d after %d races: got %v, want %v and not %v", tc.year, tc.races, got.Entries, tc.want, tc.gone)
		}
	}
}

// TestContendersByArithmetic: on equal points the better places decide.
func TestContendersByArithmetic(t *testing.T) {
	leader := &tally[season.DriverID]{id: "leader", points: 100, places: [counted]int{4, 2}}
	for _, tc := range []struct {
		name  string
		rival tally[season.DriverID]
		races int
		want  int
	}{
		{"more points", tally[season.DriverID]{points: 75, places: [counted]int{1}}, 2, 2},
		{"as many points, more wins", tally[season.DriverID]{points: 50, places: [counted]int{3}}, 2, 2},
		{"as many points, fewer wins", tally[season.DriverID]{points: 50, places: [counted]int{1, 9}}, 2, 1},
		{"as many points and wins, more second places", tally[season.DriverID]{points: 50, places: [counted]int{2, 3}}, 2, 2},
		{"fewer points", tally[season.DriverID]{points: 49, places: [counted]int{9}}, 2, 1},
	} {
		leader.ends, tc.rival.ends = []float64{100}, []float64{99}
		got := contenders([]*tally[season.DriverID]{leader, &tc.rival}, 50, tc.races, 1, 1)
		must.Hold(t, len(got) == tc.want && got[0].Most == 150, "%s: got %+v, want %d contenders", tc.name, got, tc.want)
	}
}

// TestDrawFollowsTheStrengths counts how often each is first and second.
func TestDrawFollowsTheStrengths(t *testing.T) {
	f := &field{make([]float64, 3), make([]float64, 3), make([]float64, 3)}
	f.set([]float64{math.Log(.6), math.Log(.3), math.Log(.1)})
	rng := rand.NewPCG(1, 1)
	const n = 100_000
	var first, second [3]float64
	var order []int
	for range n {
		order = f.draw(rng, order, make([]float64, 3), 1)
		first[order[0]] += 1. / n
		second[order[1]] += 1. / n
	}
	g := [3]float64{math.Pow(.6, .75), math.Pow(.3, .75), math.Pow(.1, .75)}
	for i, p := range [3]float64{.6, .3, .1} {
		want := 0.0
		for a, pa := range [3]float64{.6, .3, .1} {
			if a != i {
				want += pa * g[i] / (g[0] + g[1] + g[2] - g[a])
			}
		}
		if math.Abs(first[i]-p) > .006 || math.Abs(second[i]-want) > .006 {
			t.Errorf("starter %d: first in %.3f, second in %.3f, want %.3f and %.3f", i, first[i], second[i], p, want)
		}
	}
	out := 0
	for range n {
		out += 3 - len(f.draw(rng, order, []float64{.2, .2, .2}, .5))
	}
	if share := float64(out) / (3 * n); math.Abs(share-.1) > .003 {
		t.Errorf("%.3f retire, want half of .2", share)
	}
}
