package predict

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"gridcast/builder/season"
)

// Ranked is the model of the published picks: a Kalman filter of the pace of cars and drivers in
// front of small Plackett-Luce fits of the first three places. It comes in two forms.
//
// R2 pools four fits: two have few features and two have many, each over a long and a short
// window of seasons. The logarithms of their chances are averaged.
//
// V2 mixes R2 with two experts that know less: the small fits without the ratings, which need no
// history under new rules, and the outcome of qualifying alone. Chances are multiplied with
// weights as exponents; the weights start at Mixture.Usual or, under new rules, at
// Mixture.NewRules, and after each race of the season move towards whoever gave its winner the
// larger chance, and a little back to Usual. V2 picks its likeliest winner, and the second and
// third by the fits without ratings.
//
// All fits are made once a season, on the seasons before it, apart for what is known when the
// pick is made: the grid; qualifying alone, where the order of qualifying takes the place of the
// grid in learning and predicting; practice alone; and nothing of the weekend. Without
// qualifying there is nothing to mix, and both forms are the fits of form.
//
// What is missing is borne: a session that was not held teaches the filter nothing, a feature
// that is missing for all cancels, missing qualifying times count as those typical of the grid
// slot. With fewer than MinRaces races before the season GridFrequency predicts.
//
// README.md has the figures of 2010 to 2026 and how to make them. The seasons to 2024 were in
// sight when features and constants were chosen, and the new rules' start, the learning rate
// and the place of the third expert were found with them too; 2025 and 2026 were looked at once,
// after that. No race after the Hungarian Grand Prix of 2026 has been looked at.
//
// Tried on 1998 to 2024 without a gain beyond noise: static pools with the grid table, with
// qualifying or with equal chances; weights that depend on the round of every season; other
// learning rates; a temperature that is learnt; harder resets of ratings, form or cars under new
// rules; other windows; concave or capped gaps; places gained, streaks, recent wins.
type Ranked struct {
	name  string
	mixed bool
	p     Params

	mu     sync.Mutex // guards what follows
	memory memory
	fits   map[fitKey]*experts
}

var _ Model = (*Ranked)(nil)

// experts are the fits that predict a season from one basis. Without qualifying only r2 is there.
type experts struct {
	r2        []*Fit
	unrated   []*Fit
	qualified []*Fit
}

// fitKey names what fits were made from. A sample is made again whenever a fact before it
// changes, so the last one stands for all.
type fitKey struct {
	year     int
	order    Order
	practice bool // only where order is FromForm
	last     *sample
}

// mostFits is how many sets of fits are remembered; they are quickly made again.
const mostFits = 64

// The names and versions of both forms.
const (
	R2 = "r2-2"
	V2 = "v2-1"
)

// NewR2 returns the model that trusts R2 alone.
func NewR2(p Params) *Ranked { return newRanked(R2, false, p) }

// NewV2 returns the model that mixes R2 with the experts that know less.
func NewV2(p Params) *Ranked { return newRanked(V2, true, p) }

func newRanked(name string, mixed bool, p Params) *Ranked {
	return &Ranked{name: name, mixed: mixed, p: p, memory: memory{p: p}, fits: map[fitKey]*experts{}}
}

// Name implements Model.
func (m *Ranked) Name() string { return m.name }

// Predict implements Model.
func (m *Ranked) Predict(v *season.View, year int, round season.GrandPrixID) (Forecast, error) {
	e, err := m.Explain(v, year, round)
	if err != nil {
		return Forecast{}, err
	}
	return e.Forecast, nil
}

// Explanation is a forecast and how it came about.
type Explanation struct {
	Forecast Forecast
	Fits     []*Fit // of R2, then of the fits without ratings, then of qualifying alone
	Weights  Weights
	Starters []Starter // in starting order
	Paces    []Pace    // before the weekend
}

// Qualified is the forecast of the expert that knows the outcome of qualifying alone, f0: what
// the whole is to be measured by. Where that expert is missing it is the forecast itself.
func (e Explanation) Qualified() Forecast {
	drivers, win := make([]season.DriverID, len(e.Starters)), make([]float64, len(e.Starters))
	for i, s := range e.Starters {
		drivers[i], win[i] = s.Driver, s.Experts[2]
	}
	if sum(win) == 0 {
		return e.Forecast
	}
	win = millionths(win, 1, nil)
	return newForecast(drivers, win, podiumChances(win, win), byChance(drivers, win), e.Forecast.Basis)
}

// Weights are the exponents of the chances of R2, of the fits without ratings and of
// qualifying alone; they add up to 1.
type Weights [3]float64

// Starter is a driver with the features, and the chances that the three experts give.
type Starter struct {
	Driver   season.DriverID
	Features [features]float64
	Experts  [3]float64 // not rounded; those that are missing are 0
}

// Pace is what is believed of a car or a driver, in percent, lower is faster.
type Pace struct {
	Team             season.TeamID   // first of its lineage; empty for a driver
	Driver           season.DriverID // empty for a car
	Qualifying, Race float64
}

// Explain predicts and says why.
func (m *Ranked) Explain(v *season.View, year int, round season.GrandPrixID) (Explanation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := m.open(v, year, round)
	if err != nil {
		return Explanation{}, err
	}
	smp := now.sample
	fits, err := m.fitsFor(year, smp)
	if errors.Is(err, ErrNoForm) {
		f, err := GridFrequency().Predict(v, year, round)
		return Explanation{Forecast: f}, err
	}
	if err != nil {
		return Explanation{}, fmt.Errorf("predict %d %s: %w", year, round, err)
	}
	fillGaps(smp, m.memory.steps)
	e := m.explain(smp, fits)
	for i, ent := range now.state.pace.entities {
		e.Paces = append(e.Paces, Pace{ent.car, ent.driver, now.state.pace.mean[2*i], now.state.pace.mean[2*i+1]})
	}
	return e, nil
}

// opened is what is known of a round before it: the races up to it, its own last, what they taught,
// its starters, and the weekend with the sessions held so far.
type opened struct {
	races   []race
	state   *state
	sample  *sample
	weekend *weekend
}

// open follows the races up to a round, for which m.mu is held. The error wraps ErrNoRound or
// ErrNobody.
func (m *Ranked) open(v *season.View, year int, round season.GrandPrixID) (opened, error) {
	races, err := upTo(v, year, round)
	if err != nil {
		return opened{}, err
	}
	races = m.history(races)
	cars := newLineages(v)
	m.memory.follow(races, cars)
	now := m.memory.state.clone()
	now.enter(year)
	smp, w := now.before(races, cars)
	if len(smp.drivers) == 0 {
		return opened{}, fmt.Errorf("predict %d %s: %w", year, round, ErrNobody)
	}
	return opened{races, now, smp, w}, nil
}

// explain makes the forecast of a sample.
func (m *Ranked) explain(smp *sample, fits *experts) Explanation {
	e := Explanation{Fits: slices.Concat(fits.r2, fits.unrated, fits.qualified)}
	basis := Basis{Order: smp.order, Missing: smp.missing}
	for _, f := range e.Fits {
		if f.Races > basis.Races {
			basis.Races, basis.From, basis.To = f.Races, f.From, f.To
		}
	}
	chances := fits.logChances(smp.x)
	e.Weights = Weights{1}
	if m.mixed && len(fits.unrated) > 0 {
		e.Weights = m.weights(smp.year, fits)
	}
	win := make([]float64, len(smp.x))
	rest := make([]float64, len(smp.x))
	for i, d := range smp.drivers {
		starter := Starter{Driver: d, Features: smp.x[i]}
		known := 0.0
		for j, lp := range chances {
			if lp != nil {
				starter.Experts[j] = math.Exp(lp[i])
				win[i] += e.Weights[j] * lp[i]
			}
			if lp != nil && j < 2 { // R2 and the fits without ratings
				rest[i] += lp[i]
				known++
			}
		}
		rest[i] = math.Exp(podiumPower * rest[i] / known)
		e.Starters = append(e.Starters, starter)
	}
	win = millionths(softmax(win), 1, nil)
	pick := byChance(smp.drivers, win)
	if m.mixed && len(fits.unrated) > 0 {
		winner := pick[0]
		others := byChance(smp.drivers, millionths(softmax(chances[1]), 1, nil))
		pick = append([]season.DriverID{winner}, slices.DeleteFunc(others, func(d season.DriverID) bool { return d == winner })...)
	}
	e.Forecast = newForecast(smp.drivers, win, podiumChances(win, rest), pick, basis)
	return e
}

// weights returns the exponents for the next race of the season, learnt from those before it.
func (m *Ranked) weights(year int, fits *experts) Weights {
	p := m.p.Mixture
	w := p.Usual
	if slices.Contains(m.p.Pace.RuleYears, year) {
		w = p.NewRules
	}
	for i, s := range m.memory.steps {
		if s.year != year || s.sample.winner < 0 || s.sample.order == FromForm {
			continue
		}
		smp := *s.sample
		smp.x = slices.Clone(smp.x)
		fillGaps(&smp, m.memory.steps[:i])
		total := 0.0
		for j, lp := range fits.logChances(smp.x) {
			w[j] *= math.Exp(p.Rate * lp[smp.winner])
			total += w[j]
		}
		for j := range w {
			w[j] = p.Keeps*w[j]/total + (1-p.Keeps)*p.Usual[j]
		}
	}
	return w
}

// logChances returns the logarithms of the chances that the three experts give; nil of one that
// has no fits.
func (e *experts) logChances(x []row) [3][]float64 {
	return [3][]float64{pool(e.r2, x), pool(e.unrated, x), pool(e.qualified, x)}
}

// pool returns the normalised mean of the fits' logarithms, nil without fits.
func pool(fits []*Fit, x []row) []float64 {
	if len(fits) == 0 {
		return nil
	}
	pooled := make([]float64, len(x))
	for _, f := range fits {
		for i, lp := range f.logChances(x) {
			pooled[i] += lp / float64(len(fits))
		}
	}
	lse := logSumExp(pooled)
	for i := range pooled {
		pooled[i] -= lse
	}
	return pooled
}

// history drops the seasons before FirstSeason, if enough are left.
func (m *Ranked) history(races []race) []race {
	if races[len(races)-1].year < m.p.FirstSeason+m.p.Warmup {
		return races
	}
	first, _ := slices.BinarySearchFunc(races, m.p.FirstSeason, func(r race, year int) int { return cmp.Compare(r.year, year) })
	return races[first:]
}

// fitsFor returns the fits that predict a race from what is known of it, ErrNoForm if there is
// too little to learn from.
func (m *Ranked) fitsFor(year int, smp *sample) (*experts, error) {
	var samples []*sample
	for _, s := range m.memory.steps {
		if s.year < year {
			samples = append(samples, s.sample)
		}
	}
	if len(samples) < m.p.Fit.MinRaces {
		return nil, ErrNoForm
	}
	key := fitKey{year: year, order: smp.order, last: samples[len(samples)-1]}
	if smp.order == FromForm {
		key.practice = !slices.Contains(smp.missing, season.Practice1)
	}
	if fits, ok := m.fits[key]; ok {
		return fits, nil
	}
	all := m.p.Fit.Windows
	var e experts
	var plan []wanted
	switch {
	case key.order == FromGrid:
		plan = []wanted{{&e.r2, essential, all}, {&e.r2, general, all}, {&e.unrated, unrated, all}, {&e.qualified, qualified, all[:1]}}
	case key.order == FromQualifying:
		plan = []wanted{
			{&e.r2, beforeGrid(essential), all},
			{&e.r2, beforeGrid(general), all},
			{&e.unrated, beforeGrid(unrated), all},
			{&e.qualified, beforeGrid(qualified), all[:1]},
		}
	case key.practice:
		plan = []wanted{{&e.r2, practised, all}}
	default:
		plan = []wanted{{&e.r2, formOnly, all}}
	}
	for _, want := range plan {
		for _, w := range want.windows {
			f, err := fit(samples, year, want.set, w, m.p.Fit)
			if err != nil {
				return nil, err
			}
			*want.by = append(*want.by, f)
		}
	}
	if len(m.fits) >= mostFits {
		clear(m.fits)
	}
	m.fits[key] = &e
	return &e, nil
}

// wanted are fits of one set of features, and the expert that pools them.
type wanted struct {
	by      *[]*Fit
	set     []Feature
	windows []Window
}

// fillGaps gives the starters of a race without qualifying times the gap that is typical of
// their slot: the median of the earlier races.
func fillGaps(smp *sample, steps []step) {
	if smp.order == FromForm || !slices.Contains(smp.missing, season.Qualifying) {
		return
	}
	for k := range smp.x {
		for _, f := range []Feature{QualifyingGap, SmallestGap} {
			var typical []float64
			for _, s := range steps {
				if k < len(s.sample.x) && !slices.Contains(s.sample.missing, season.Qualifying) {
					typical = append(typical, s.sample.x[k][f])
				}
			}
			if len(typical) > 0 {
				smp.x[k][f] = median(typical)
			}
		}
	}
}
