package predict

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gridcast/builder/season"
)

// race is a round of a view with its year.
type race struct {
	year  int
	round *season.Round
}

// upTo returns the rounds of the view in calendar order, up to and including the given one.
func upTo(v *season.View, year int, round season.GrandPrixID) ([]race, error) {
	var races []race
	for i := range v.Seasons {
		s := &v.Seasons[i]
		if s.Year > year {
			break
		}
		for j := range s.Rounds {
			races = append(races, race{s.Year, &s.Rounds[j]})
			if s.Year == year && s.Rounds[j].GrandPrix == round {
				return races, nil
			}
		}
	}
	return nil, fmt.Errorf("predict %d %s: %w", year, round, ErrNoRound)
}

// runner is an expected starter and his team.
type runner struct {
	driver season.DriverID
	team   season.TeamID
}

// field returns the starters of the last race in the best known order: the grid, else qualifying, else
// the championship. A driver with two rows counts once.
func field(races []race) ([]runner, Order) {
	now := races[len(races)-1].round
	runners := make([]runner, 0, max(len(now.Grid), len(now.Qualifying)))
	add := func(r runner) {
		if !slices.ContainsFunc(runners, func(o runner) bool { return o.driver == r.driver }) {
			runners = append(runners, r)
		}
	}
	switch {
	case len(now.Grid) > 0:
		for _, g := range now.Grid {
			add(runner{g.Driver, g.Team})
		}
		return runners, FromGrid
	case len(now.Qualifying) > 0:
		for _, q := range now.Qualifying {
			add(runner{q.Driver, q.Team})
		}
		return runners, FromQualifying
	}
	for _, r := range entered(races) {
		add(r)
	}
	return byChampionship(runners, races), FromForm
}

// entered returns the entries of the last race, or the starters of the race before if it has none.
func entered(races []race) []runner {
	last := races[len(races)-1].round
	if len(last.Entries) > 0 {
		runners := make([]runner, len(last.Entries))
		for i, e := range last.Entries {
			runners[i] = runner{e.Driver, e.Team}
		}
		return runners
	}
	for i := len(races) - 2; i >= 0; i-- {
		if len(races[i].round.Results) == 0 {
			continue
		}
		runners := make([]runner, len(races[i].round.Results))
		for k, r := range races[i].round.Results {
			runners[k] = runner{r.Driver, r.Team}
		}
		return runners
	}
	return nil
}

// standings returns the drivers' championship before the last race: after the latest race of its
// season, else the final standings of the season before.
func standings(races []race) []season.DriverStanding {
	year := races[len(races)-1].year
	for i := len(races) - 2; i >= 0 && races[i].year >= year-1; i-- {
		if rows := races[i].round.DriverStandings; len(rows) > 0 {
			return rows
		}
	}
	return nil
}

// byChampionship sorts the runners by their place in the championship before the last race.
func byChampionship(runners []runner, races []race) []runner {
	rows := standings(races)
	place := make(map[season.DriverID]int, len(rows))
	for i, row := range rows {
		place[row.Driver] = i + 1
	}
	return byPlace(runners, place)
}

// byLastRace sorts the runners by their finish in the race before the last one.
func byLastRace(runners []runner, races []race) []runner {
	place := map[season.DriverID]int{}
	for i := len(races) - 2; i >= 0 && len(place) == 0; i-- {
		for _, r := range races[i].round.Results {
			if r.Position > 0 && place[r.Driver] == 0 {
				place[r.Driver] = r.Position
			}
		}
	}
	return byPlace(runners, place)
}

// byPlace sorts the runners by their place, from 1. Runners without a place keep their order behind the others.
func byPlace(runners []runner, place map[season.DriverID]int) []runner {
	type placed struct {
		runner
		place uint
	}
	rows := make([]placed, len(runners))
	for i, r := range runners {
		rows[i] = placed{r, uint(place[r.driver] - 1)} // 0 becomes the largest
	}
	slices.SortStableFunc(rows, func(a, b placed) int { return cmp.Compare(a.place, b.place) })
	sorted := make([]runner, len(rows))
	for i, r := range rows {
		sorted[i] = r.runner
	}
	return sorted
}

// championshipLeader returns the leader of the championship before the last race. At the first race of
// a season it is the champion of the season before.
func championshipLeader(races []race) season.DriverID {
	for _, row := range standings(races) {
		if row.Position == 1 {
			return row.Driver
		}
	}
	return ""
}

// teamPoints returns the square root of every team's share of wins, by the first team of the lineage.
// The share is the points of this season in wins per race. The share of last season has the weight of
// prior races.
func teamPoints(races []race, v *season.View, prior float64) map[season.TeamID]float64 {
	year := races[len(races)-1].year
	this, rounds := teamWins(races, year, v)
	last, lastRounds := teamWins(races, year-1, v)
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

// teamWins returns the teams' points in the year's races before the last one, in wins, and the number
// of those races.
func teamWins(races []race, year int, v *season.View) (map[season.TeamID]float64, float64) {
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
		wins[v.Root(row.Team, year)] += row.Points / season.Scale(year, false)[0]
	}
	return wins, rounds
}
