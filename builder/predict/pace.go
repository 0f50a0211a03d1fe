package predict

import (
	"slices"

	"gridcast/builder/season"
)

// entity is a car, by the first team of its lineage, or a driver.
type entity struct {
	car    season.TeamID
	driver season.DriverID
}

// pace is what is believed of the pace of cars and drivers: for entity i the means of q and r
// are mean[2i] and mean[2i+1], cov is their covariance, row by row.
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

// winter moves the state from one season to the next: who is long gone is dropped, everybody
// moves towards the mean and becomes less certain, cars most of all under new rules.
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
				s.mean[j] = m + keeps[j]*(s.mean[j]-m)
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
	v := sd * sd
	s.cov[(2*i)*n+2*i] += v
	s.cov[(2*i+1)*n+2*i+1] += v
	s.cov[(2*i)*n+2*i+1] += v * s.p.Correlation
	s.cov[(2*i+1)*n+2*i] += v * s.p.Correlation
}

// newCar is the mean pace of the cars held, moved by the penalty of a new car.
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
