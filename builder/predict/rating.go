package predict

import (
	"maps"
	"slices"

	"gridcast/builder/season"
)

// rating is an online Plackett-Luce rating: a starter's strength is the sum of his own and his
// team's part, and after each race both step along the gradient of the finishing order's
// log-likelihood. Unknown ones are 0.
type rating struct {
	p      RatingParams
	driver map[season.DriverID]float64
	team   map[season.TeamID]float64 // by the first team of the lineage
}

func newRating(p RatingParams) *rating {
	return &rating{p, map[season.DriverID]float64{}, map[season.TeamID]float64{}}
}

func (r *rating) clone() *rating {
	return &rating{r.p, maps.Clone(r.driver), maps.Clone(r.team)}
}

// winter shrinks all ratings between two seasons.
func (r *rating) winter() {
	for d := range r.driver {
		r.driver[d] *= r.p.DriverKeeps
	}
	for t := range r.team {
		r.team[t] *= r.p.TeamKeeps
	}
}

// learn takes the finishing order of a race: finish holds places of starters, winner first.
func (r *rating) learn(drivers []season.DriverID, teams []season.TeamID, finish []int) {
	strength := make([]float64, len(drivers))
	for i := range drivers {
		strength[i] = r.driver[drivers[i]] + r.team[teams[i]]
	}
	step := make([]float64, len(drivers))
	gone := make([]bool, len(drivers)) // those ahead, and those who were not classified
	for i := range gone {
		gone[i] = !slices.Contains(finish, i)
	}
	for _, chosen := range finish[:min(r.p.Places, len(finish))] {
		left := make([]float64, 0, len(drivers))
		for i, u := range strength {
			if !gone[i] {
				left = append(left, u)
			}
		}
		p := softmax(left)
		for i, k := 0, 0; i < len(strength); i++ {
			if !gone[i] {
				step[i] -= p[k]
				k++
			}
		}
		step[chosen]++
		gone[chosen] = true
	}
	for i := range drivers {
		r.driver[drivers[i]] += r.p.DriverStep * step[i]
		r.team[teams[i]] += r.p.TeamStep * step[i]
	}
}
