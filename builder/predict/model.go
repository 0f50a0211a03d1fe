package predict

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gridcast/builder/predict/portable"
	"gridcast/builder/season"
)

// Ranked is the model of the published picks: a Kalman filter of the pace of cars and drivers in
// front of small Plackett-Luce fits of the first three places. It comes in two forms.
//
// R2 pools four fits: two have few features and two have many, each over a long and a short
// window of seasons. The logarithms of their chances are averaged.
//
// V2 mixes R2 with two experts with fewer inputs: the small fits without the ratings, which need no
// history under new rules, and the outcome of qualifying alone. It multiplies chances, with weights as
// exponents. The weights start at Mixture.Usual, or at Mixture.NewRules under new rules. After each race
// of the season they move towards the expert with the largest chance of the winner, and a little back to
// Usual.
//
// Each season has its fits, learnt from the seasons before. There is a set for each state of knowledge:
// the grid; qualifying alone, with the order of qualifying in place of the grid; practice alone; and
// nothing of the weekend. Without qualifying V2 mixes two experts, the fits of form with and without the
// ratings.
//
// The chances of the places behind the winner know retirements: see places.
//
// Missing facts are harmless. A session that was not held teaches the filter nothing. A feature that is
// missing for all starters cancels. Missing qualifying times count as the typical times of the grid
// slot. With fewer than MinRaces races before the season GridFrequency predicts.
//
// The documentation has the figures of 2010 to 2026 and the commands for them. Features, constants, the
// start under new rules, the learning rate and the place of the third expert were chosen on the seasons
// up to 2024. 2025 and 2026 were evaluated once, afterwards. No race after the Hungarian Grand Prix of
// 2026 was evaluated.
//
// Tried on 1998 to 2024 without a gain beyond noise: static pools with the grid table, with qualifying
// or with equal chances; weights by the round of the season; other learning rates; a learnt temperature;
// harder resets of ratings, form or cars under new rules; other windows; concave or capped gaps; places
// gained, streaks, recent wins.
type Ranked struct {
	name  string
	mixed bool
	p     Params

	mu     sync.Mutex // guards the fields below
	memory memory
	fits   map[fitKey]*experts // cache, by the digest of the samples: learning a set takes 20 ms, and a season's races share it
}

var _ Model = (*Ranked)(nil)

// experts are the fits that predict a season from one basis. Without qualifying there is no qualified.
type experts struct {
	r2        []*Fit
	unrated   []*Fit
	qualified []*Fit
	behind    []*Fit // of the second and third place alone
}

// fitKey identifies the inputs of fits.
type fitKey struct {
	year     int
	order    Order
	practice bool          // only where order is FromForm
	samples  season.Digest // of the steps that made them
}

// mostFits is the number of cached sets of fits. Learning a set again is quick.
const mostFits = 64

// The names and versions of both forms.
const (
	R2 = "r2-5"
	V2 = "v2-4"
)

// NewR2 returns the model with R2 alone.
func NewR2(p Params) *Ranked { return newRanked(R2, false, p) }

// NewV2 returns the model that mixes R2 with the experts with fewer inputs.
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

// Explanation is a forecast with its inputs and intermediate results.
type Explanation struct {
	Forecast Forecast
	Fits     []*Fit // of R2, then of the fits without ratings, then of qualifying alone
	Weights  Weights
	Starters []Starter // in starting order
}

// Qualified returns the forecast of the expert with the outcome of qualifying alone: f0, the yardstick
// for the whole. Without that expert it returns the forecast itself.
func (e Explanation) Qualified() Forecast {
	drivers, win := make([]season.DriverID, len(e.Starters)), make([]float64, len(e.Starters))
	for i, s := range e.Starters {
		drivers[i], win[i] = s.Driver, s.Experts[2]
	}
	if sum(win) == 0 {
		return e.Forecast
	}
	win = millionths(win, one, nil)
	return newForecast(withPodium(drivers, win, win), e.Forecast.Basis)
}

// Weights are the exponents of the chances of R2, of the fits without ratings and of qualifying alone.
// They add up to 1.
type Weights [3]float64

// Starter is a driver with the features and the chances by the three experts.
type Starter struct {
	Driver   season.DriverID
	Features [features]float64
	Experts  [3]float64 // not rounded; 0 for a missing expert
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
	next := !slices.ContainsFunc(now.races[:len(now.races)-1], func(r race) bool { return r.year == year && !r.round.Finished() })
	return m.explain(smp, fits, next), nil
}

// opened is the knowledge before a round: the races up to the round itself, the state after the earlier
// ones, the starters, and the weekend with the sessions held so far.
type opened struct {
	races   []race
	state   *state
	sample  *sample
	weekend *weekend
}

// open processes the races up to a round. The caller holds m.mu. The error wraps ErrNoRound or
// ErrNobody.
func (m *Ranked) open(v *season.View, year int, round season.GrandPrixID) (opened, error) {
	races, err := upTo(v, year, round)
	if err != nil {
		return opened{}, err
	}
	races = m.history(races)
	m.memory.follow(races, v)
	now := m.memory.state.clone()
	now.enter(year)
	smp, w := now.before(races, v)
	if len(smp.drivers) == 0 {
		return opened{}, fmt.Errorf("predict %d %s: %w", year, round, ErrNobody)
	}
	return opened{races, now, smp, w}, nil
}

// The powers of the odds of a podium before qualifying: of the next race, and of the races after it. Without them these
// chances are too sure: of 2010 to 2026 those of .89 came .81 of the time, and those of races further away hardly
// fewer. With them the Brier score of the podium falls by .010 [-.002, .020] for the next race and by .019 [.004, .034] for
// the third. Chances of a win are sure enough, and after qualifying no power gains more than noise.
const (
	nextPower  = .85
	laterPower = .8
)

// explain predicts a race from its sample. next: every earlier race of the season is known.
func (m *Ranked) explain(smp *sample, fits *experts, next bool) Explanation {
	e := Explanation{Fits: slices.Concat(fits.r2, fits.unrated, fits.qualified)}
	basis := Basis{Order: smp.order, Missing: smp.missing}
	for _, f := range e.Fits {
		if f.Races > basis.Races {
			basis.Races, basis.From, basis.To = f.Races, f.From, f.To
		}
	}
	chances := fits.logChances(smp.x)
	e.Weights = Weights{1}
	if m.mixed {
		e.Weights = m.weights(smp.year, fits)
	}
	behind := pool(fits.behind, smp.x)
	win := make([]float64, len(smp.x))
	rate := make([]float64, len(smp.x))
	for i, d := range smp.drivers {
		starter := Starter{Driver: d, Features: smp.x[i]}
		for j, lp := range chances {
			if lp != nil {
				starter.Experts[j] = portable.Exp(lp[i])
				win[i] += float64(e.Weights[j] * lp[i])
			}
		}
		strength := (chances[0][i] + chances[1][i]) / 2
		rate[i] = portable.Exp(float64(ratePower * (float64((1-behindShare)*strength) + float64(behindShare*behind[i]))))
		e.Starters = append(e.Starters, starter)
	}
	win = millionths(softmax(win), one, nil)
	power := 1.0
	if smp.order == FromForm {
		if power = laterPower; next {
			power = nextPower
		}
	}
	e.Forecast = newForecast(withOrders(smp.drivers, win, rate, m.memory.retirements(smp.year), power), basis)
	return e
}

// weights returns the exponents for the next race of the season, learnt from the earlier ones.
func (m *Ranked) weights(year int, fits *experts) Weights {
	p := m.p.Mixture
	if len(fits.qualified) == 0 {
		p = m.p.FormMixture
	}
	w := p.Usual
	if slices.Contains(m.p.Pace.RuleYears, year) {
		w = p.NewRules
	}
	for i, s := range m.memory.steps {
		if s.year != year || s.sample.winner < 0 || s.sample.order == FromForm && len(fits.qualified) > 0 {
			continue
		}
		smp := *s.sample
		smp.x = slices.Clone(smp.x)
		fillGaps(&smp, m.memory.steps[:i])
		total := 0.0
		for j, lp := range fits.logChances(smp.x) {
			if lp != nil {
				w[j] = float64(w[j] * portable.Exp(p.Rate*lp[smp.winner]))
				total += w[j]
			}
		}
		for j := range w {
			w[j] = float64(p.Keeps*w[j]/total) + float64((1-p.Keeps)*p.Usual[j])
		}
	}
	return w
}

// logChances returns the logarithms of the chances by the three experts. They are nil for an expert
// without fits.
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
	return normaliseLogs(pooled)
}

// history drops the seasons before FirstSeason, if enough are left.
func (m *Ranked) history(races []race) []race {
	if races[len(races)-1].year < m.p.FirstSeason+m.p.Warmup {
		return races
	}
	first, _ := slices.BinarySearchFunc(races, m.p.FirstSeason, func(r race, year int) int { return cmp.Compare(r.year, year) })
	return races[first:]
}

// fitsFor returns the fits for a race by the state of knowledge about it. The error is ErrNoForm if
// there are too few races to learn from.
func (m *Ranked) fitsFor(year int, smp *sample) (*experts, error) {
	var samples []*sample
	var inputs season.Digest
	for _, s := range m.memory.steps {
		if s.year < year {
			samples, inputs = append(samples, s.sample), s.inputs
		}
	}
	if len(samples) < m.p.Fit.MinRaces {
		return nil, ErrNoForm
	}
	key := fitKey{year: year, order: smp.order, samples: inputs}
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
	case key.order != FromForm:
		plan = []wanted{{&e.r2, essential, all}, {&e.r2, general, all}, {&e.unrated, unrated, all}, {&e.qualified, qualified, all[:1]}, {&e.behind, unrated, all}}
		for i := range plan {
			if key.order == FromQualifying {
				plan[i].set = beforeGrid(plan[i].set)
			}
		}
	case key.practice:
		plan = []wanted{{&e.r2, practised, all}, {&e.unrated, unratedPractised, all}, {&e.behind, unratedPractised, all}}
	default:
		plan = []wanted{{&e.r2, formOnly, all}, {&e.unrated, unratedForm, all}, {&e.behind, unratedForm, all}}
	}
	for _, want := range plan {
		for _, w := range want.windows {
			p := m.p.Fit
			if want.by == &e.behind {
				p.StageWeights = behindWeights
			}
			f, err := fit(samples, year, want.set, w, p)
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

// fillGaps gives starters without qualifying times the typical gap of their slot: the median of the
// earlier races.
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
