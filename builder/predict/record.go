package predict

import (
	"maps"
	"slices"

	"gridcast/builder/predict/portable"
	"gridcast/builder/season"
)

// recent is an exponentially weighted sum of observations.
type recent struct{ weight, sum float64 }

// mean is the weighted mean with a prior of the given weight.
func (r recent) mean(prior, races float64) float64 {
	return (float64(prior*races) + r.sum) / (races + r.weight)
}

func (r recent) with(x, decay float64) recent {
	return recent{float64(r.weight*decay) + 1, float64(r.sum*decay) + x}
}

// means are exponentially weighted means by driver.
type means map[season.DriverID]recent

// form is the recent finishes of drivers.
type form struct {
	p        FormParams
	finish   means // -ln(position) of classified finishes
	teamMate means // difference of it to the team-mate where both were classified
	crash    means // 1 for a retirement by the driver's fault, else 0
	retired  means // 1 for a start that was not classified, else 0
}

func (f *form) clone() *form {
	return &form{f.p, maps.Clone(f.finish), maps.Clone(f.teamMate), maps.Clone(f.crash), maps.Clone(f.retired)}
}

// winter lowers the weight of everything before a new season.
func (f *form) winter() {
	for _, m := range []means{f.finish, f.teamMate, f.crash, f.retired} {
		for d, r := range m {
			m[d] = recent{r.weight * f.p.WinterKeeps, r.sum * f.p.WinterKeeps}
		}
	}
}

func (f *form) learn(results []season.Result) {
	decay := portable.Exp2(-1 / f.p.HalfLife)
	for _, r := range results {
		if !r.Started() {
			continue
		}
		retired, crash := 0.0, 0.0
		if r.Position == 0 {
			retired = 1
			if driverFaults[r.Reason] {
				crash = 1
			}
		}
		f.retired[r.Driver] = f.retired[r.Driver].with(retired, decay)
		f.crash[r.Driver] = f.crash[r.Driver].with(crash, decay)
		if r.Position == 0 {
			continue
		}
		f.finish[r.Driver] = f.finish[r.Driver].with(-portable.Log(float64(r.Position)), decay)
		if mate := bestTeamMate(r, results); mate > 0 {
			gap := portable.Log(float64(mate)) - portable.Log(float64(r.Position))
			gap = min(max(gap, -f.p.TeamMateClip), f.p.TeamMateClip)
			f.teamMate[r.Driver] = f.teamMate[r.Driver].with(gap, decay)
		}
	}
}

// bestTeamMate returns the position of the best classified team-mate, or 0 if there is none.
func bestTeamMate(r season.Result, results []season.Result) int {
	best := 0
	for _, o := range results {
		if o.Team == r.Team && o.Driver != r.Driver && o.Position > 0 && (best == 0 || o.Position < best) {
			best = o.Position
		}
	}
	return best
}

// driverFaults are F1DB's reasons of retirement by the driver's fault. An accident in
// qualifying does not count, because that driver did not take part in the race. A floor, a wheel nut or a pit stop is
// the team's fault.
var driverFaults = map[string]bool{
	"Collision": true, "Collision damage": true, "Accident": true, "Accident damage": true, "Accident on formation lap": true,
	"Fatal accident": true, "Spun off": true, "Spin": true, "Puncture damage": true,
	"Caused collision with Trulli": true, "Broken wing": true, "Front wing": true,
}

// rating is an online Plackett-Luce rating. A starter's strength is the sum of his part and his team's.
// After each race both step along the gradient of the finishing order's log-likelihood. A new driver or
// team has 0.
type rating struct {
	p      RatingParams
	driver map[season.DriverID]float64
	team   map[season.TeamID]float64 // by the first team of the lineage
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

// learn adds the finishing order of a race: finish holds indices of starters, the winner first.
func (r *rating) learn(drivers []season.DriverID, teams []season.TeamID, finish []int) {
	strength := make([]float64, len(drivers))
	for i := range drivers {
		strength[i] = r.driver[drivers[i]] + r.team[teams[i]]
	}
	step := make([]float64, len(drivers))
	gone := make([]bool, len(drivers)) // the starters ahead, and those without a classification
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
		r.driver[drivers[i]] += float64(r.p.DriverStep * step[i])
		r.team[teams[i]] += float64(r.p.TeamStep * step[i])
	}
}
