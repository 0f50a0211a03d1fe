package predict

import (
	"math"
	"slices"
	"time"

	"gridcast/builder/season"
)

// Feature is one of the numbers by which the starters of a race are compared. More is better.
// Only differences within a race matter, so a feature that is missing for all is set to 0.
type Feature int

// The features. Gaps are in percent of a lap.
const (
	GridSlot            Feature = iota // -ln of the grid slot; the pit lane counts as the last one
	OnPole                             // 1 for the first slot: what -ln overstates
	QualifyingGap                      // -sqrt of the gap to the best of the last segment he set a time in
	RacePace                           // -(expected race gap to the best starter), from the pace filter
	QualifyingPace                     // the same for qualifying
	DriverRating                       // driver's part of the online rating of finishing orders
	TeamRating                         // team's part
	TeamMateForm                       // recent -ln(finish) above the team-mate's
	FinishForm                         // recent -ln(finish)
	PracticeGap                        // -(smallest gap to the best of a practice session)
	TeamPoints                         // sqrt of the team's points, in wins per race, with last season's as prior
	Leads                              // 1 for the championship leader
	Crashes                            // -(recent rate of retirements that are not the car's fault)
	SmallestGap                        // -(smallest gap of a qualifying segment)
	PriorRacePace                      // RacePace before qualifying: practice and form alone
	PriorQualifyingPace                // QualifyingPace before qualifying
	FormRacePace                       // RacePace before the weekend
	FormQualifyingPace                 // QualifyingPace before the weekend
	QualifyingPlace                    // -ln of the place in qualifying, which penalties do not move
	FirstInQualifying                  // 1 for the first in qualifying
	features
)

var featureNames = [features]string{
	"grid slot", "pole", "qualifying gap", "race pace", "qualifying pace", "driver rating", "team rating", "team-mate form",
	"finish form", "practice gap", "team points", "leads", "crashes", "smallest qualifying gap",
	"race pace before qualifying", "qualifying pace before qualifying", "race pace before the weekend", "qualifying pace before the weekend",
	"place in qualifying", "first in qualifying",
}

// String returns the name of the feature.
func (f Feature) String() string { return featureNames[f] }

// The sets of features that are fitted.
var (
	// essential is the small set.
	essential = []Feature{GridSlot, QualifyingGap, OnPole, RacePace, QualifyingPace, DriverRating, TeamRating, TeamMateForm}
	// general is the large set: more of the record, less sure weights.
	general = []Feature{
		GridSlot, QualifyingGap, OnPole, FinishForm, PracticeGap, TeamMateForm, TeamPoints, Leads, TeamRating,
		Crashes, SmallestGap, RacePace, QualifyingPace, DriverRating,
	}
	// unrated is the small set without the ratings. It needs the least history, so it is the
	// best of all where the rules are new, and it orders the second and third best.
	unrated = []Feature{GridSlot, QualifyingGap, OnPole, RacePace, QualifyingPace, TeamMateForm}
	// qualified is the outcome of qualifying alone.
	qualified = []Feature{GridSlot, QualifyingGap, OnPole}
	// practised is what is known after practice and before qualifying.
	practised = []Feature{PriorRacePace, PriorQualifyingPace, DriverRating, TeamRating, TeamMateForm}
	// formOnly is what is known before the weekend.
	formOnly = []Feature{FormRacePace, FormQualifyingPace, DriverRating, TeamRating, TeamMateForm}
)

// beforeGrid returns the set with the order of qualifying for that of the grid: a model that is
// to predict from qualifying has to learn what qualifying was worth, penalties included.
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
	winner  int   // place in drivers of the winner; -1 if they are not among them, or not known yet
	missing []season.SessionKind
}

// before returns the features of the last of the races, from the state after all others and
// the sessions before the race, and the weekend as the pace filter sees it then. The state
// must have entered the season.
func (s *state) before(races []race, cars lineages) (*sample, *weekend) {
	r := races[len(races)-1]
	runners, order := field(races)
	smp := &sample{year: r.year, order: order, winner: -1}
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

// grid sets the features of the starting order, and of that of qualifying.
func (s *state) grid(smp *sample, r *season.Round) {
	if smp.order == FromForm {
		return
	}
	for place, k := range qualifyingOrder(smp.drivers, r) {
		smp.x[k][QualifyingPlace] = -math.Log(float64(place + 1))
		if place == 0 {
			smp.x[k][FirstInQualifying] = 1
		}
	}
	for k, slot := range slots(smp.drivers, r) {
		smp.x[k][GridSlot] = -math.Log(slot)
		if slot == 1 {
			smp.x[k][OnPole] = 1
		}
	}
}

// qualifyingOrder returns the places of the starters in the order of qualifying; those who took
// no part in it follow in their order.
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

// slots returns the grid slot of every starter; the pit lane counts as the last one. Without
// a grid the starters are in the order of qualifying.
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

// practiceGaps returns each starter's smallest gap to the best of a practice session, %; the
// cap for those without a time, 0 for all if nobody has one.
func (s *state) practiceGaps(at starters, r *season.Round) []float64 {
	gaps := constant(len(at), s.p.Form.CapPractice)
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

// qualifyingGaps returns each starter's gap to the best of the last segment he set a time in,
// and his smallest one, %. Those without a time count as the slowest of the others.
func (s *state) qualifyingGaps(at starters, rows []season.QualifyingRow) (last, least []float64) {
	last, least = constant(len(at), math.NaN()), constant(len(at), math.NaN())
	var best [4]time.Duration // of the three segments and of a session without
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

// fillWithLargest replaces what is missing by the largest gap there is, 0 if there is none.
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

// segments returns the times of a row: those of its segments, or the one of a session that
// had none.
func segments(r season.QualifyingRow) [4]time.Duration {
	if r.Segments != [3]time.Duration{} {
		return [4]time.Duration{r.Segments[0], r.Segments[1], r.Segments[2]}
	}
	return [4]time.Duration{3: r.Time}
}

func constant(n int, x float64) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = x
	}
	return s
}

// faster is the shorter of two times, where 0 is none.
func faster(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// percent is how much longer t is than best.
func percent(t, best time.Duration) float64 { return 100 * (float64(t)/float64(best) - 1) }
