package predict

import (
	"fmt"
	"math"
	"slices"

	"gridcast/builder/season"
)

// Outlook is the estimate of a race by form, before its weekend, with its uncertainty. Simulations of
// future races draw from it. The chances of a win of cars that do not retire are proportional to exp(Strength). Slices are in the
// order of Drivers.
type Outlook struct {
	Drivers  []season.DriverID
	Teams    []season.TeamID // as entered, not the first of the lineage
	Strength []float64       // 0 for the strongest
	Cov      []float64       // covariance of the error of Strength, row by row

	// Standard deviations of the change from one race to the next: of the part common to a team's cars,
	// and of the driver's part.
	TeamStep, DriverStep float64
}

// Outlook returns the form of the expected starters of a round, from the races before it. Of the round
// itself it uses only the entries. The error wraps ErrNoRound, ErrNobody, or ErrNoForm if there are too
// few races to learn from.
func (m *Ranked) Outlook(v *season.View, year int, round season.GrandPrixID) (Outlook, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := m.open(v, year, round)
	if err != nil {
		return Outlook{}, err
	}
	smp, w := now.sample, now.weekend
	before := now.state.pace.open(smp.teams, smp.drivers, year) // w has seen the sessions
	fits, err := m.fitsFor(year, &sample{order: FromForm, missing: []season.SessionKind{season.Practice1}})
	if err != nil {
		return Outlook{}, fmt.Errorf("outlook of %d %s: %w", year, round, err)
	}
	for i := range smp.x {
		smp.x[i][Retirements] = 0 // a simulation draws retirements itself
	}
	n := len(smp.drivers)
	o := Outlook{Drivers: smp.drivers, Strength: pool(fits.r2, smp.x), Cov: make([]float64, n*n)}
	runners, _ := field(now.races)
	for _, r := range runners {
		o.Teams = append(o.Teams, r.team)
	}
	best := slices.Max(o.Strength)
	for i := range o.Strength {
		o.Strength[i] -= best
	}
	// A starter's strength falls by perQ and perR for each percent of lost pace. The covariance of the
	// strengths follows from that of the paces by the same two factors.
	perQ, perR := 0.0, 0.0
	for _, f := range fits.r2 {
		for j, feature := range f.Features {
			by := f.Sharpness * f.Weights[j] / float64(len(fits.r2))
			switch feature {
			case FormQualifyingPace:
				perQ += by
			case FormRacePace:
				perR += by
			}
		}
	}
	d := len(before.mean)
	for i := range n {
		for j := range n {
			for _, a := range w.paceTerms(i, perQ, perR) {
				for _, b := range w.paceTerms(j, perQ, perR) {
					o.Cov[i*n+j] += float64(a.by * b.by * before.cov[a.at*d+b.at])
				}
			}
		}
	}
	walk := math.Sqrt(float64(perQ*perQ) + float64(perR*perR) + float64(2*m.p.Pace.Correlation*perQ*perR))
	o.TeamStep, o.DriverStep = walk*m.p.Pace.CarWeek, walk*m.p.Pace.DriverWeek
	return o, nil
}

// paceTerms are the paces of starter k's car and driver in the state.
func (w *weekend) paceTerms(k int, q, r float64) [4]term {
	at := w.rows[k]
	return [4]term{{2 * at.car, q}, {2*at.car + 1, r}, {2 * at.driver, q}, {2*at.driver + 1, r}}
}
