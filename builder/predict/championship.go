package predict

import (
	"slices"

	"gridcast/builder/season"
)

// standings returns the drivers' championship before the last of the races: after the latest
// race of its season, else the final one of the season before. ofSeason says which.
func standings(races []race) (rows []season.DriverStanding, ofSeason bool) {
	year := races[len(races)-1].year
	for i := len(races) - 2; i >= 0 && races[i].year >= year-1; i-- {
		if rows := races[i].round.DriverStandings; len(rows) > 0 {
			return rows, races[i].year == year
		}
	}
	return nil, false
}

// byChampionship sorts the runners by their place in the championship before the last of the
// races; those without a place keep their order behind the others.
func byChampionship(runners []runner, races []race) []runner {
	rows, _ := standings(races)
	place := make(map[season.DriverID]int, len(rows))
	for i, row := range rows {
		place[row.Driver] = i
	}
	rank := func(r runner) int {
		if p, ok := place[r.driver]; ok {
			return p
		}
		return len(rows)
	}
	sorted := slices.Clone(runners)
	slices.SortStableFunc(sorted, func(a, b runner) int { return rank(a) - rank(b) })
	return sorted
}

// byLastRace sorts the runners by their finish in the race before the last of the races;
// those who did not finish it keep their order behind the others.
func byLastRace(runners []runner, races []race) []runner {
	place := map[season.DriverID]int{}
	for i := len(races) - 2; i >= 0 && len(place) == 0; i-- {
		for _, r := range races[i].round.Results {
			if r.Position > 0 && place[r.Driver] == 0 {
				place[r.Driver] = r.Position
			}
		}
	}
	rank := func(r runner) int {
		if p := place[r.driver]; p > 0 {
			return p
		}
		return 1000
	}
	sorted := slices.Clone(runners)
	slices.SortStableFunc(sorted, func(a, b runner) int { return rank(a) - rank(b) })
	return sorted
}
