package predict

import (
	"math"
	"slices"

	"gridcast/builder/predict/matrix"
	"gridcast/builder/season"
)

// entity is a driver or a car. The first team of its lineage identifies a car.
type entity struct {
	car    season.TeamID
	driver season.DriverID
}

// pace is the estimate of the pace of cars and drivers. For entity i the means of q and r are mean[2i]
// and mean[2i+1]. cov is their covariance, row by row.
type pace struct {
	p        PaceParams
	entities []entity
	seen     []int // year of the last start
	mean     []float64
	cov      []float64
}

func (s *pace) clone() *pace {
	return &pace{s.p, slices.Clone(s.entities), slices.Clone(s.seen), slices.Clone(s.mean), slices.Clone(s.cov)}
}

// winter moves the state from one season to the next. It drops entities that have been away for long.
// All others move towards the mean and become less certain, cars most of all under new rules.
func (s *pace) winter(year int) {
	s.forget(year)
	var mean [2]float64
	cars := 0.0
	for i, e := range s.entities {
		if e.car != "" && s.seen[i] == year-1 {
			mean[0] += s.mean[2*i]
			mean[1] += s.mean[2*i+1]
			cars++
		}
	}
	n := len(s.mean)
	keeps := make([]float64, n)
	for i, e := range s.entities {
		for t := range 2 {
			j := 2*i + t
			if e.car == "" {
				keeps[j] = s.p.DriverKeeps
				s.mean[j] *= keeps[j]
				continue
			}
			keeps[j] = s.p.CarKeeps
			if cars > 0 {
				m := mean[t] / cars
				s.mean[j] = m + float64(keeps[j]*(s.mean[j]-m))
			}
		}
	}
	for i := range n {
		for j := range n {
			s.cov[i*n+j] *= keeps[i] * keeps[j]
		}
	}
	sd := s.p.CarWinter
	if slices.Contains(s.p.RuleYears, year) {
		sd = s.p.CarRulesWinter
	}
	for i, e := range s.entities {
		if e.car != "" {
			s.loosen(i, sd)
		} else {
			s.loosen(i, s.p.DriverWinter)
		}
	}
}

// forget drops the entities that have not been seen for longer than ForgetAfter seasons.
func (s *pace) forget(year int) {
	var kept []int
	for i := range s.entities {
		if s.seen[i] >= year-s.p.ForgetAfter {
			kept = append(kept, i)
		}
	}
	n, m := len(s.mean), 2*len(kept)
	next := &pace{p: s.p, mean: make([]float64, m), cov: make([]float64, m*m)}
	for a, i := range kept {
		next.entities = append(next.entities, s.entities[i])
		next.seen = append(next.seen, s.seen[i])
		copy(next.mean[2*a:2*a+2], s.mean[2*i:2*i+2])
		for t := range 2 {
			for b, j := range kept {
				copy(next.cov[(2*a+t)*m+2*b:][:2], s.cov[(2*i+t)*n+2*j:][:2])
			}
		}
	}
	*s = *next
}

// loosen adds the variance sd² to both parts of entity i, correlated.
func (s *pace) loosen(i int, sd float64) {
	n := len(s.mean)
	v := float64(sd * sd)
	s.cov[(2*i)*n+2*i] += v
	s.cov[(2*i+1)*n+2*i+1] += v
	s.cov[(2*i)*n+2*i+1] += float64(v * s.p.Correlation)
	s.cov[(2*i+1)*n+2*i] += float64(v * s.p.Correlation)
}

// newCar returns the mean pace of the known cars plus the penalty of a new car.
func (s *pace) newCar() [2]float64 {
	var sum [2]float64
	cars := 0.0
	for i, e := range s.entities {
		if e.car != "" {
			sum[0] += s.mean[2*i]
			sum[1] += s.mean[2*i+1]
			cars++
		}
	}
	if cars == 0 {
		return [2]float64{s.p.FirstCar, s.p.FirstCar}
	}
	return [2]float64{sum[0]/cars + s.p.NewCarPenalty, sum[1]/cars + s.p.NewCarPenalty}
}

// weekend is the state during one race weekend. It has an additional effect for every car and driver,
// which holds for this weekend only.
type weekend struct {
	pace
	rows []paceRow // one per starter
	base int       // length of the state without the weekend's effects
}

// paceRow holds the indices of a starter's car, driver and weekend effects in the state.
type paceRow struct {
	car, driver, carEffect, driverEffect int
}

// open begins a weekend with the given starters; cars is parallel to drivers. It does not change s.
func (s *pace) open(cars []season.TeamID, drivers []season.DriverID, year int) *weekend {
	newCar := s.newCar()
	entities, seen := slices.Clone(s.entities), slices.Clone(s.seen)
	held := len(entities)
	index := func(e entity) int {
		i := slices.Index(entities, e)
		if i < 0 {
			i = len(entities)
			entities, seen = append(entities, e), append(seen, year)
		}
		seen[i] = year
		return i
	}
	rows := make([]paceRow, len(drivers))
	var present []int // entities that take part, each once
	for k := range drivers {
		rows[k].car, rows[k].driver = index(entity{car: cars[k]}), index(entity{driver: drivers[k]})
		for _, i := range []int{rows[k].car, rows[k].driver} {
			if !slices.Contains(present, i) {
				present = append(present, i)
			}
		}
	}
	base := 2 * len(entities)
	n := base + len(present)
	w := &weekend{pace: pace{s.p, entities, seen, make([]float64, n), make([]float64, n*n)}, rows: rows, base: base}
	copy(w.mean, s.mean)
	for i := range s.mean {
		copy(w.cov[i*n:], s.cov[i*len(s.mean):(i+1)*len(s.mean)])
	}
	effect := map[int]int{}
	for k, i := range present {
		w.enter(i, i >= held, newCar)
		sd := s.p.DriverWeekend
		if entities[i].car != "" {
			sd = s.p.CarWeekend
		}
		effect[i] = base + k
		w.cov[(base+k)*n+base+k] = sd * sd
	}
	for k := range rows {
		rows[k].carEffect, rows[k].driverEffect = effect[rows[k].car], effect[rows[k].driver]
	}
	return w
}

// enter gives a new entity its initial pace, and a known one the change since its last race.
func (w *weekend) enter(i int, isNew bool, newCar [2]float64) {
	isCar := w.entities[i].car != ""
	switch {
	case isNew && isCar:
		w.mean[2*i], w.mean[2*i+1] = newCar[0], newCar[1]
		w.loosen(i, w.p.CarStart)
	case isNew:
		w.mean[2*i], w.mean[2*i+1] = w.p.NewDriver, w.p.NewDriver
		w.loosen(i, w.p.DriverStart)
	case isCar:
		w.loosen(i, w.p.CarWeek)
	default:
		w.loosen(i, w.p.DriverWeek)
	}
}

// close ends the weekend and returns the state without its effects.
func (w *weekend) close() *pace {
	n, m := len(w.mean), w.base
	s := &pace{w.p, w.entities, w.seen, slices.Clone(w.mean[:m]), make([]float64, m*m)}
	for i := range m {
		copy(s.cov[i*m:(i+1)*m], w.cov[i*n:])
	}
	return s
}

// term is one coefficient of a row of the observation matrix.
type term struct {
	at int
	by float64
}

// qualifying and race are the two types of observation of starter k.
func (w *weekend) qualifying(k int) [4]term {
	r := w.rows[k]
	return [4]term{{2 * r.car, 1}, {2 * r.driver, 1}, {r.carEffect, 1}, {r.driverEffect, 1}}
}

func (w *weekend) race(k int) [4]term {
	r := w.rows[k]
	return [4]term{{2*r.car + 1, 1}, {2*r.driver + 1, 1}, {r.carEffect, w.p.WeekendInRace}, {r.driverEffect, w.p.WeekendInRace}}
}

// expected is the gap expected of an observation.
func (w *weekend) expected(h [4]term) float64 {
	sum := 0.0
	for _, t := range h {
		sum += float64(t.by * w.mean[t.at])
	}
	return sum
}

// update learns from the gaps of one session, by starter; a missing gap is NaN. Outliers count less,
// and so does a wild session as a whole. A gap common to all starters does not count.
func (w *weekend) update(gaps []float64, row func(k int) [4]term, sd, largest float64) {
	var h [][4]term
	var resid []float64
	for k, y := range gaps {
		if !math.IsNaN(y) {
			h = append(h, row(k))
			resid = append(resid, min(y, largest)-w.expected(h[len(h)-1]))
		}
	}
	if len(h) < w.p.MinUpdated {
		return
	}
	n, k := len(w.mean), len(h)
	hp := make([]float64, k*n) // of the observations and the state
	for i, terms := range h {
		for _, t := range terms {
			matrix.AddScaled(hp[i*n:(i+1)*n], t.by, w.cov[t.at*n:(t.at+1)*n])
		}
	}
	s := make([]float64, k*k) // of the observations
	for i := range k {
		for j := range k {
			s[i*k+j] = w.p.SessionOffset
			for _, t := range h[max(i, j)] {
				s[i*k+j] += float64(t.by * hp[min(i, j)*n+t.at])
			}
		}
	}
	for i, noise := range w.noise(resid, s, sd) {
		s[i*k+i] += noise
	}
	// With S = LL' and W = L⁻¹HP the mean gains W'L⁻¹e and the covariance loses W'W, which keeps
	// it symmetric.
	root, ok := matrix.Cholesky(s, k)
	if !ok {
		return // only after an overflow, because S has positive noise on its diagonal
	}
	root.Solve(hp, n)
	root.Solve(resid, 1)
	for i, e := range resid {
		matrix.AddScaled(w.mean, e, hp[i*n:(i+1)*n])
	}
	matrix.SubtractGram(w.cov, hp, n)
}

// noise returns the variance of each observation: sd², more in a wild session, more for an outlier. s
// holds the covariance of the expected gaps and the session's offset.
func (w *weekend) noise(resid []float64, s []float64, sd float64) []float64 {
	mid := median(resid)
	z := make([]float64, len(resid))
	for i, e := range resid {
		z[i] = math.Abs((e - mid) / math.Sqrt(s[i*len(resid)+i]-w.p.SessionOffset+float64(sd*sd)))
	}
	wild := max(1, 1.4826*median(z))
	r := make([]float64, len(resid))
	for i := range r {
		by := sd * wild * max(1, z[i]/(wild*w.p.Outlier))
		r[i] = float64(by * by)
	}
	return r
}

// median returns the median of x, which must not be empty. For an even number of values it is the mean
// of the middle two.
func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	m := len(s) / 2
	if len(s)%2 == 1 {
		return s[m]
	}
	return (s[m-1] + s[m]) / 2
}
