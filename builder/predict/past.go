package predict

import (
	"fmt"

	"gridcast/builder/season"
)

// race is a round of a view with its year.
type race struct {
	year  int
	round *season.Round
}

// upTo returns the rounds of the view in calendar order up to and including the asked one.
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

// winner returns the winner of a race; where two drivers shared the car, the one the source
// shows first.
func (r race) winner() (season.DriverID, bool) {
	for i := range r.round.Results {
		if r.round.Results[i].Position == 1 {
			return r.round.Results[i].Driver, true
		}
	}
	return "", false
}

// runner is a driver who is expected to start, and his team.
type runner struct {
	driver season.DriverID
	team   season.TeamID
}

// field returns who starts the last of the races, in the best known order: the grid, else
// qualifying, else the championship.
func field(races []race) ([]runner, Order) {
	now := races[len(races)-1].round
	switch {
	case len(now.Grid) > 0:
		runners := make([]runner, len(now.Grid))
		for i, g := range now.Grid {
			runners[i] = runner{g.Driver, g.Team}
		}
		return runners, FromGrid
	case len(now.Qualifying) > 0:
		runners := make([]runner, len(now.Qualifying))
		for i, q := range now.Qualifying {
			runners[i] = runner{q.Driver, q.Team}
		}
		return runners, FromQualifying
	}
	return byChampionship(entered(races), races), FromForm
}

// entered returns who is entered in the last of the races: its entries, else the starters of
// the race before.
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
		var runners []runner
		seen := map[season.DriverID]bool{}
		for _, r := range races[i].round.Results {
			if !seen[r.Driver] {
				seen[r.Driver] = true
				runners = append(runners, runner{r.Driver, r.Team})
			}
		}
		return runners
	}
	return nil
}
