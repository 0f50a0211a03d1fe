package predict

import (
	"math"
	"slices"

	"gridcast/builder/season"
)

// state is all that a history of races leaves behind for the next one.
type state struct {
	p      Params
	year   int // season of the last race
	pace   *pace
	rating *rating
	form   *form
}

func newState(p Params) *state {
	return &state{p: p, pace: &pace{p: p.Pace}, rating: newRating(p.Rating), form: newForm(p.Form)}
}

func (s *state) clone() *state {
	return &state{s.p, s.year, s.pace.clone(), s.rating.clone(), s.form.clone()}
}

// enter moves to the season of the next race, over the winter if it is another one.
func (s *state) enter(year int) {
	if s.year != 0 && s.year != year {
		s.pace.winter(year)
		s.rating.winter()
		s.form.winter()
	}
	s.year = year
}

// sample is a race as the fits see it: the features of every starter, and who came first.
type sample struct {
	year    int
	order   Order
	drivers []season.DriverID
	teams   []season.TeamID // by the first team of the lineage
	x       []row
	finish  []int // places in drivers of the first three; fewer if they are not among them
	missing []season.SessionKind
}

// before returns the features of the last of the races, from the state after all others and
// the sessions before the race, and the weekend as the pace filter sees it then. The state
// must have entered the season.
func (s *state) before(races []race, cars lineages) (*sample, *weekend) {
	r := races[len(races)-1]
	runners, order := field(races)
	smp := &sample{year: r.year, order: order}
	at := starters{}
	for k, run := range runners {
		smp.drivers = append(smp.drivers, run.driver)
		smp.teams = append(smp.teams, cars.root(run.team, r.year))
		at[run.driver] = k
	}
	smp.x = make([]row, len(runners))
	w := s.pace.open(smp.teams, smp.drivers, r.year)
	s.sessions(smp, w, at, r.round)
	s.grid(smp, r.round)
	s.record(smp, races, cars)
	return smp, w
}

// sessions shows the pace filter the sessions of a weekend in their usual order, and takes
// the features that come from them.
func (s *state) sessions(smp *sample, w *weekend, at starters, r *season.Round) {
	p := s.p.Pace
	practised := false
	for _, laps := range r.Practice {
		if gaps, n := at.practice(laps); n >= p.MinTimes {
			w.update(gaps, w.qualifying, p.Practice, p.CapQualifying)
			practised = true
		}
	}
	if !practised {
		smp.missing = append(smp.missing, season.Practice1)
	}
	if gaps, n := at.qualifying(r.SprintQualifying); n > 0 {
		w.update(gaps, w.qualifying, p.SprintQualifying, p.CapQualifying)
	}
	paces(smp, w, PriorQualifyingPace, PriorRacePace)
	if gaps, n := at.qualifying(r.Qualifying); n > 0 {
		w.update(gaps, w.qualifying, p.Qualifying, p.CapQualifying)
	} else {
		smp.missing = append(smp.missing, season.Qualifying)
	}
	if gaps, n := at.sprint(r.SprintResults); n >= p.MinTimes {
		w.update(gaps, w.race, p.Sprint, p.CapRace)
	}
	paces(smp, w, QualifyingPace, RacePace)
	s.gaps(smp, at, r)
}

// paces sets the two features to how far every starter is expected behind the fastest.
func paces(smp *sample, w *weekend, q, r Feature) {
	for k := range smp.x {
		smp.x[k][q] = -w.expected(w.qualifying(k))
		smp.x[k][r] = -w.expected(w.race(k))
	}
	for _, f := range []Feature{q, r} {
		best := math.Inf(-1)
		for k := range smp.x {
			best = max(best, smp.x[k][f])
		}
		for k := range smp.x {
			smp.x[k][f] -= best
		}
	}
}

// grid sets the features of the starting order.
func (s *state) grid(smp *sample, r *season.Round) {
	if smp.order == FromForm {
		return
	}
	for k, slot := range slots(len(smp.x), r) {
		smp.x[k][GridSlot] = -math.Log(slot)
		if slot == 1 {
			smp.x[k][OnPole] = 1
		}
	}
}

// slots returns the grid slot of every starter; the pit lane counts as the last one. Without
// a grid the starters are in the order of qualifying.
func slots(n int, r *season.Round) []float64 {
	slot := make([]float64, n)
	for k := range slot {
		slot[k] = float64(k + 1)
		if len(r.Grid) > 0 && r.Grid[k].Position > 0 {
			slot[k] = float64(r.Grid[k].Position)
		}
	}
	return slot
}

// record sets the features that come from earlier races.
func (s *state) record(smp *sample, races []race, cars lineages) {
	leader := championshipLeader(races)
	points := teamPoints(races, cars, s.p.Form.ChampionshipPriorRaces)
	f := s.p.Form
	for k, d := range smp.drivers {
		x := &smp.x[k]
		x[DriverRating] = s.rating.driver[d]
		x[TeamRating] = s.rating.team[smp.teams[k]]
		x[FinishForm] = s.form.finish[d].mean(f.FinishPrior, f.FinishPriorRaces)
		x[TeamMateForm] = s.form.teamMate[d].mean(f.TeamMatePrior, f.TeamMatePriorRaces)
		x[Crashes] = -s.form.crash[d].mean(f.CrashPrior, f.CrashPriorRaces)
		x[TeamPoints] = points[smp.teams[k]]
		if d == leader {
			x[Leads] = 1
		}
	}
}

// after learns from the result of a race whose weekend before returned.
func (s *state) after(smp *sample, w *weekend, r *season.Round) {
	at := starters{}
	for k, d := range smp.drivers {
		at[d] = k
	}
	p := s.p.Pace
	if gaps, n := at.race(r.Results, slots(len(smp.x), r), p); n > 0 {
		w.update(gaps, w.race, p.Race, p.CapRace)
	}
	if gaps, n := at.fastestLaps(r.FastestLaps, r.Results); n >= p.MinLaps {
		w.update(gaps, w.race, p.FastestLap, p.CapRace)
	}
	s.pace = w.close()
	finish := finishers(at, r.Results)
	smp.finish = finish[:min(len(finish), len(s.p.Fit.StageWeights))]
	s.rating.learn(smp.drivers, smp.teams, finish)
	s.form.learn(r.Results)
}

// finishers returns the places of the classified starters in finishing order.
func finishers(at starters, results []season.Result) []int {
	classified := make([]season.Result, 0, len(results))
	for _, r := range results {
		if _, ok := at[r.Driver]; ok && r.Position > 0 {
			classified = append(classified, r)
		}
	}
	slices.SortStableFunc(classified, func(a, b season.Result) int { return a.Position - b.Position })
	finish := make([]int, len(classified))
	for i, r := range classified {
		finish[i] = at[r.Driver]
	}
	return finish
}
