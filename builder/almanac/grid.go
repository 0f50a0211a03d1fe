package almanac

import (
	"cmp"
	"slices"

	"gridcast/builder/season"
)

// Grid is who drives now: the entries of the latest round whose qualifying has ended.
type Grid struct {
	Year    int // of that round; 0 if no round has come that far
	Entries []GridEntry
}

// GridEntry is one driver of the grid.
type GridEntry struct {
	Driver season.Driver
	Code   string
	Team   season.Team
	Colour string
	Number int
}

// latestGrid returns the grid of the latest round with entries, by team and number.
func latestGrid(v *season.View, years []Year) Grid {
	facts, round := v.LatestEntries()
	if round == nil {
		return Grid{}
	}
	i := slices.IndexFunc(years, func(y Year) bool { return y.Year == facts.Year })
	return gridOf(v, facts, round, years[i].Codes)
}

func gridOf(v *season.View, facts *season.Season, round *season.Round, codes map[season.DriverID]string) Grid {
	g := Grid{Year: facts.Year}
	seen := map[season.DriverID]bool{} // who took over a second car is still one driver
	for _, e := range round.Entries {
		if seen[e.Driver] {
			continue
		}
		seen[e.Driver] = true
		g.Entries = append(g.Entries, GridEntry{
			Driver: v.Drivers[e.Driver],
			Code:   codes[e.Driver],
			Team:   v.Teams[e.Team],
			Colour: facts.Colours[e.Team],
			Number: e.Number,
		})
	}
	slices.SortStableFunc(g.Entries, func(a, b GridEntry) int {
		return cmp.Or(cmp.Compare(a.Team.Name, b.Team.Name), cmp.Compare(a.Number, b.Number))
	})
	return g
}
