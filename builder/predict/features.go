package predict

import (
	"math"
	"slices"
	"time"

	"gridcast/builder/predict/portable"
	"gridcast/builder/season"
)

// Feature is a number for the comparison of the starters of a race. More is better. Only differences
// within a race matter, so that a feature that is missing for all starters is 0.
type Feature int

// The features. Gaps are in percent of a lap.
const (
	GridSlot            Feature = iota // -ln of the grid slot; the pit lane counts as the last one
	OnPole                             // 1 for the first slot, which -ln overstates
	QualifyingGap                      // -sqrt of the gap to the best time of the driver's last segment
	RacePace                           // -(expected race gap to the best starter), from the pace filter
	QualifyingPace                     // -(expected qualifying gap to the best starter)
	DriverRating                       // the driver's part of the online rating of finishing orders
	TeamRating                         // the team's part of that rating
	TeamMateForm                       // recent -ln(finish) above the team-mate's
	FinishForm                         // recent -ln(finish)
	PracticeGap                        // -(smallest gap to the best of a practice session)
	TeamPoints                         // sqrt of the team's points, in wins per race, with last season's as prior
	Leads                              // 1 for the championship leader
	Crashes                            // -(recent rate of retirements by the driver's fault)
	SmallestGap                        // -(smallest gap of a qualifying segment)
	PriorRacePace                      // RacePace before qualifying: practice and form alone
	PriorQualifyingPace                // QualifyingPace before qualifying
	FormRacePace                       // RacePace before the weekend
	FormQualifyingPace                 // QualifyingPace before the weekend
	QualifyingPlace                    // -ln of the place in qualifying, which penalties do not move
	FirstInQualifying                  // 1 for the first in qualifying
	Retirements                        // -(recent share of the driver's starts that were not classified)
	features
)

// The sets of features that are fitted.
var (
	// essential is the small set.
	essential = []Feature{GridSlot, QualifyingGap, OnPole, RacePace, QualifyingPace, DriverRating, TeamRating, TeamMateForm}
	// general is the large set: it has more features of earlier races, and less certain weights.
	general = []Feature{
		GridSlot, QualifyingGap, OnPole, FinishForm, PracticeGap, TeamMateForm, TeamPoints, Leads, TeamRating,
		Crashes, SmallestGap, RacePace, QualifyingPace, DriverRating,
	}
	// unrated is the small set without the ratings. It needs the least history, so that it is the best
	// set under new rules. It also orders the second and third place best.
	unrated = []Feature{GridSlot, QualifyingGap, OnPole, RacePace, QualifyingPace, TeamMateForm}
	// qualified is the outcome of qualifying alone.
	qualified = []Feature{GridSlot, QualifyingGap, OnPole}
	// practised is the set for the time between practice and qualifying.
	practised = []Feature{PriorRacePace, PriorQualifyingPace, DriverRating, TeamRating, TeamMateForm, Retirements}
	// unratedPractised and unratedForm are the sets without the ratings for the same times.
	unratedPractised = []Feature{PriorRacePace, PriorQualifyingPace, TeamMateForm}
	unratedForm      = []Feature{FormRacePace, FormQualifyingPace, TeamMateForm}
	// formOnly is the set for the time before the weekend. It and practised know retirements: from form the log-loss of
	// 2010 to 2026 falls by .007 [.001, .013], from practice by .009 [.002, .017].
	formOnly = []Feature{FormRacePace, FormQualifyingPace, DriverRating, TeamRating, TeamMateForm, Retirements}
)

// beforeGrid returns the set with the order of qualifying in place of the grid. A model that predicts
// from qualifying must also learn from qualifying, because penalties move drivers between the two.
func beforeGrid(set []Feature) []Feature {
	set = slices.Clone(set)
	for i, f := range set {
		switch f {
		case GridSlot:
			set[i] = QualifyingPlace
		case OnPole:
			set[i] = FirstInQualifying
		}
	}
	return set
}

// row holds the features of one starter.
type row [features]float64

// state is everything learnt from earlier races.
type state struct {
	p      Params
	year   int // season of the last race
	pace   *pace
	rating *rating
	form   *form
}

func newState(p Params) *state {
	return &state{p: p, pace: &pace{p: p.Pace}, rating: &rating{p.Rating, map[season.DriverID]float64{}, map[season.TeamID]float64{}}, form: &form{p.Form, means{}, means{}, means{}, means{}}}
}

func (s *state) clone() *state {
	return &state{s.p, s.year, s.pace.clone(), s.rating.clone(), s.form.clone()}
}

// enter moves the state to the season of the next race, over the winters in between.
func (s *state) enter(year int) {
	if s.year != 0 && s.year != year {
		s.pace.winter(year)
		s.rating.winter()
		s.form.winter()
	}
	s.year = year
}

// sample is a race for the fits: the features of every starter, and the first places.
type sample struct {
	year    int
	order   Order
	drivers []season.DriverID
	teams   []season.TeamID // by the first team of the lineage
	x       []row
	finish  []int // indices in drivers of the first three; fewer if some are not among the drivers
	winner  int   // index in drivers of the winner; -1 if unknown or not among the drivers
	missing []season.SessionKind
}

// before returns the features of the last race, and the pace filter's weekend with its sessions. They
// come from the state after all earlier races and from the sessions before the race. The state must
// have entered the season.
func (s *state) before(races []race, v *season.View) (*sample, *weekend) {
	r := races[len(races)-1]
	runners, order := field(races)
	smp := &sample{year: r.year, order: order, winner: -1}
	at := starters{}
	for k, run := range runners {
		smp.drivers = append(smp.drivers, run.driver)
		smp.teams = append(smp.teams, v.Root(run.team, r.year))
		at[run.driver] = k
	}
	smp.x = make([]row, len(runners))
	w := s.pace.open(smp.teams, smp.drivers, r.year)
	s.sessions(smp, w, at, r.round)
	s.grid(smp, r.round)
	s.record(smp, races, v)
	return smp, w
}

// sessions updates the pace filter with the sessions of a weekend in their usual order, and sets the
// features that come from them.
func (s *state) sessions(smp *sample, w *weekend, at starters, r *season.Round) {
	p := s.p.Pace
	paces(smp, w, FormQualifyingPace, FormRacePace)
	held := false
	for _, laps := range r.Practice {
		if gaps, n := at.practice(laps); n >= p.MinTimes {
			w.update(gaps, w.qualifying, p.Practice, p.CapQualifying)
			held = true
		}
	}
	if !held {
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
	if gaps, n := at.finish(r.SprintResults, false); n >= p.MinTimes {
		w.update(gaps, w.race, p.Sprint, p.CapRace)
	}
	paces(smp, w, QualifyingPace, RacePace)
	s.gaps(smp, at, r)
}

// paces sets the two features to every starter's expected gap to the fastest.
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

// grid sets the features of the starting order and of the order of qualifying.
func (s *state) grid(smp *sample, r *season.Round) {
	if smp.order == FromForm {
		return
	}
	for place, k := range qualifyingOrder(smp.drivers, r) {
		smp.x[k][QualifyingPlace] = -portable.Log(float64(place + 1))
		if place == 0 {
			smp.x[k][FirstInQualifying] = 1
		}
	}
	for k, slot := range slots(smp.drivers, r) {
		smp.x[k][GridSlot] = -portable.Log(slot)
		if slot == 1 {
			smp.x[k][OnPole] = 1
		}
	}
}

// qualifyingOrder returns the indices of the starters in the order of qualifying. Starters without
// qualifying follow in their order.
func qualifyingOrder(drivers []season.DriverID, r *season.Round) []int {
	rank := make(map[season.DriverID]int, len(r.Qualifying))
	for i, q := range r.Qualifying {
		rank[q.Driver] = i - len(r.Qualifying)
	}
	order := make([]int, len(drivers))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank[drivers[a]] - rank[drivers[b]] })
	return order
}

// slots returns the grid slot of every starter. The pit lane counts as the last slot. Without a grid
// the order of qualifying counts.
func slots(drivers []season.DriverID, r *season.Round) []float64 {
	slot := make([]float64, len(drivers))
	for k, d := range drivers {
		slot[k] = float64(k + 1)
		for _, g := range r.Grid {
			if g.Driver == d {
				if g.Position > 0 {
					slot[k] = float64(g.Position)
				}
				break
			}
		}
	}
	return slot
}

// record sets the features that come from earlier races.
func (s *state) record(smp *sample, races []race, v *season.View) {
	leader := championshipLeader(races)
	points := teamPoints(races, v, s.p.Form.ChampionshipPriorRaces)
	f := s.p.Form
	for k, d := range smp.drivers {
		x := &smp.x[k]
		x[DriverRating] = s.rating.driver[d]
		x[TeamRating] = s.rating.team[smp.teams[k]]
		x[FinishForm] = s.form.finish[d].mean(f.FinishPrior, f.FinishPriorRaces)
		x[TeamMateForm] = s.form.teamMate[d].mean(f.TeamMatePrior, f.TeamMatePriorRaces)
		x[Crashes] = -s.form.crash[d].mean(f.CrashPrior, f.CrashPriorRaces)
		x[Retirements] = -s.form.retired[d].mean(f.RetiredPrior, f.RetiredPriorRaces)
		x[TeamPoints] = points[smp.teams[k]]
		if d == leader {
			x[Leads] = 1
		}
	}
}

// after learns from the result of a race. before returned its weekend.
func (s *state) after(smp *sample, w *weekend, r *season.Round) {
	at := starters{}
	for k, d := range smp.drivers {
		at[d] = k
	}
	p := s.p.Pace
	if gaps, n := at.race(r.Results, slots(smp.drivers, r), p); n > 0 {
		w.update(gaps, w.race, p.Race, p.CapRace)
	}
	if gaps, n := at.fastestLaps(r.FastestLaps, r.Results); n >= p.MinLaps {
		w.update(gaps, w.race, p.FastestLap, p.CapRace)
	}
	s.pace = w.close()
	finish := finishers(at, r.Results)
	smp.finish = finish[:min(len(finish), len(s.p.Fit.StageWeights))]
	if won := r.Winner(); won != nil {
		if k, ok := at[won.Driver]; ok {
			smp.winner = k
		}
	}
	s.rating.learn(smp.drivers, smp.teams, finish)
	s.form.learn(r.Results)
}

// finishers returns the indices of the classified starters in finishing order.
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

// gaps sets the features that are gaps to the best time of a session.
func (s *state) gaps(smp *sample, at starters, r *season.Round) {
	practice := s.practiceGaps(at, r)
	last, least := s.qualifyingGaps(at, r.Qualifying)
	for k := range smp.x {
		smp.x[k][PracticeGap] = -practice[k]
		smp.x[k][QualifyingGap] = -math.Sqrt(last[k])
		smp.x[k][SmallestGap] = -least[k]
	}
}

// practiceGaps returns each starter's smallest gap to the best of a practice session, in %. A starter
// without a time gets the cap. Without any times all gaps are 0.
func (s *state) practiceGaps(at starters, r *season.Round) []float64 {
	gaps := slices.Repeat([]float64{s.p.Form.CapPractice}, len(at))
	timed := false
	for _, laps := range r.Practice {
		var best time.Duration
		for _, l := range laps {
			best = faster(best, l.Time)
		}
		for _, l := range laps {
			if k, ok := at[l.Driver]; ok && l.Time > 0 {
				gaps[k] = min(gaps[k], percent(l.Time, best))
				timed = true
			}
		}
	}
	if !timed {
		return make([]float64, len(at))
	}
	return gaps
}

// qualifyingGaps returns each starter's gap to the best time of his last segment, and his smallest gap
// of a segment, in %. A starter without a time counts as the slowest of the others.
func (s *state) qualifyingGaps(at starters, rows []season.QualifyingRow) (last, least []float64) {
	last, least = at.none(), at.none()
	var best [4]time.Duration // of the three segments, and of a session without segments
	for _, r := range rows {
		for i, t := range segments(r) {
			best[i] = faster(best[i], t)
		}
	}
	for _, r := range rows {
		k, ok := at[r.Driver]
		if !ok {
			continue
		}
		for i, t := range segments(r) {
			if t > 0 {
				last[k] = min(percent(t, best[i]), s.p.Form.CapQualifying)
				if !(least[k] < last[k]) {
					least[k] = last[k]
				}
			}
		}
	}
	fillWithLargest(last)
	fillWithLargest(least)
	return last, least
}

// fillWithLargest replaces missing gaps by the largest gap, or by 0 if all are missing.
func fillWithLargest(gaps []float64) {
	largest := 0.0
	for _, g := range gaps {
		if g > largest {
			largest = g
		}
	}
	for k, g := range gaps {
		if math.IsNaN(g) {
			gaps[k] = largest
		}
	}
}

// segments returns the times of a row: three of the segments, one of a session without segments.
func segments(r season.QualifyingRow) [4]time.Duration {
	if r.Segments != [3]time.Duration{} {
		return [4]time.Duration{r.Segments[0], r.Segments[1], r.Segments[2]}
	}
	return [4]time.Duration{3: r.Time}
}

// faster returns the shorter of two times. 0 means no time.
func faster(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// percent returns the percentage by which t is longer than best.
func percent(t, best time.Duration) float64 { return 100 * (float64(t)/float64(best) - 1) }
