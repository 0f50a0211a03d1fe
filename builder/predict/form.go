package predict

import (
	"maps"
	"math"

	"gridcast/builder/season"
)

// recent is an exponentially weighted sum of observations.
type recent struct{ weight, sum float64 }

// mean is the weighted mean with a prior of the given weight.
func (r recent) mean(prior, races float64) float64 {
	return (prior*races + r.sum) / (races + r.weight)
}

// with returns r after one more observation.
func (r recent) with(x, decay float64) recent {
	return recent{r.weight*decay + 1, r.sum*decay + x}
}

// means are exponentially weighted means by driver.
type means map[season.DriverID]recent

// form is how drivers finished lately.
type form struct {
	p        FormParams
	finish   means // -ln(position) of classified finishes
	teamMate means // difference of it to the team-mate where both were classified
	crash    means // 1 for a retirement that was not the car's fault, else 0
}

func newForm(p FormParams) *form { return &form{p, means{}, means{}, means{}} }

func (f *form) clone() *form {
	return &form{f.p, maps.Clone(f.finish), maps.Clone(f.teamMate), maps.Clone(f.crash)}
}

// winter lowers the weight of everything before a new season.
func (f *form) winter() {
	for _, m := range []means{f.finish, f.teamMate, f.crash} {
		for d, r := range m {
			m[d] = recent{r.weight * f.p.WinterKeeps, r.sum * f.p.WinterKeeps}
		}
	}
}

// learn takes the classification of a race.
func (f *form) learn(results []season.Result) {
	decay := math.Exp2(-1 / f.p.HalfLife)
	for _, r := range results {
		if !r.Started() {
			continue
		}
		x := 0.0
		if crashed(r) {
			x = 1
		}
		f.crash[r.Driver] = f.crash[r.Driver].with(x, decay)
		if r.Position == 0 {
			continue
		}
		f.finish[r.Driver] = f.finish[r.Driver].with(-math.Log(float64(r.Position)), decay)
		if mate := bestTeamMate(r, results); mate > 0 {
			gap := math.Log(float64(mate)) - math.Log(float64(r.Position))
			gap = min(max(gap, -f.p.TeamMateClip), f.p.TeamMateClip)
			f.teamMate[r.Driver] = f.teamMate[r.Driver].with(gap, decay)
		}
	}
}

// bestTeamMate is the position of the best classified team-mate, 0 if there is none.
func bestTeamMate(r season.Result, results []season.Result) int {
	best := 0
	for _, o := range results {
		if o.Team == r.Team && o.Driver != r.Driver && o.Position > 0 && (best == 0 || o.Position < best) {
			best = o.Position
		}
	}
	return best
}

// driverFaults are the reasons of retirement, in the words of F1DB, that are not the car's.
var driverFaults = map[string]bool{
	"Collision": true, "Collision damage": true, "Accident": true, "Accident damage": true,
	"Fatal accident": true, "Spun off": true, "Spin": true, "Puncture damage": true,
	"Caused collision with Trulli": true, "Broken wing": true, "Front wing": true,
}

// crashed says whether he retired through no fault of the car.
func crashed(r season.Result) bool { return r.Position == 0 && driverFaults[r.Reason] }
