package predict

import (
	"math"
	"slices"

	"gridcast/builder/season"
)

// standings returns the drivers' championship before the last of the races: after the latest
// race of its season, else the final one of the season before.
func standings(races []race) []season.DriverStanding {
	year := races[len(races)-1].year
	for i := len(races) - 2; i >= 0 && races[i].year >= year-1; i-- {
		if rows := races[i].round.DriverStandings; len(rows) > 0 {
			return rows
		}
	}
	return nil
}

// byChampionship sorts the runners by their place in the championship before the last of the
// races; those without a place keep their order behind the others.
func byChampionship(runners []runner, races []race) []runner {
	rows := standings(races)
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

// championshipLeader is who leads the championship before the last of the races; at the first
// race of a season it is the champion of the one before.
func championshipLeader(races []race) season.DriverID {
	rows := standings(races)
	for _, row := range rows {
		if row.Position == 1 {
			return row.Driver
		}
	}
	return ""
}

// teamPoints returns for every team, by the first of its lineage, the square root of its
// share of wins: its points this season counted in wins per race, with its share of last
// season weighing as much as prior races.
func teamPoints(races []race, cars lineages, prior float64) map[season.TeamID]float64 {
	year := races[len(races)-1].year
	this, rounds := teamWins(races, year, cars)
	last, lastRounds := teamWins(races, year-1, cars)
	share := make(map[season.TeamID]float64)
	for team, wins := range this {
		share[team] += wins / (rounds + prior)
	}
	for team, wins := range last {
		share[team] += prior * wins / lastRounds / (rounds + prior)
	}
	for team := range share {
		share[team] = math.Sqrt(max(0, share[team]))
	}
	return share
}

// teamWins returns the points of the teams in the year's races before the last of the races,
// counted in wins, and the number of those races.
func teamWins(races []race, year int, cars lineages) (map[season.TeamID]float64, float64) {
	wins := make(map[season.TeamID]float64)
	rounds := 0.0
	var rows []season.TeamStanding
	for _, r := range races[:len(races)-1] {
		if r.year == year && len(r.round.Results) > 0 {
			rounds++
			if len(r.round.TeamStandings) > 0 {
				rows = r.round.TeamStandings
			}
		}
	}
	for _, row := range rows {
		wins[cars.root(row.Team, year)] += row.Points / winPoints(year)
	}
	return wins, rounds
}

// winPoints is what a win counted in the drivers' championship of a year.
func winPoints(year int) float64 {
	switch {
	case year >= 2010:
		return 25
	case year >= 1991:
		return 10
	case year >= 1961:
		return 9
	}
	return 8
}
