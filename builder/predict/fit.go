package predict

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"gridcast/builder/predict/matrix"
	"gridcast/builder/predict/portable"
)

// Fit is a Plackett-Luce model of the first three places. A starter's utility is the sum of Weights
// times features. His chance to win is proportional to exp(Sharpness × utility).
type Fit struct {
	Features  []Feature
	Weights   []float64 // per unit of the feature
	Sharpness float64
	Races     int // number of races learnt from
	From, To  int // their first and last season
}

// learnable is a race in the form for the optimiser.
type learnable struct {
	x      []float64 // row by row, standardised
	finish []int
	weight float64
}

// fit learns from the samples. They must be from seasons before year.
func fit(samples []*sample, year int, set []Feature, window Window, p FitParams) (*Fit, error) {
	f := &Fit{Features: set}
	var used []*sample
	for _, s := range samples {
		if s.year >= year-window.Seasons && s.year < year && len(s.finish) > 0 {
			used = append(used, s)
		}
	}
	if len(used) == 0 {
		return nil, fmt.Errorf("fit of %d: no races", year)
	}
	f.Races, f.From, f.To = len(used), used[0].year, used[len(used)-1].year
	var err error
	f.Weights, f.Sharpness, err = learn(len(used), set, p, func(i int) ([]row, []int, float64) {
		age := float64(year - 1 - used[i].year) // 0 for last season
		return used[i].x, used[i].finish, portable.Exp2(-age / window.HalfLife)
	})
	if err != nil {
		return nil, fmt.Errorf("fit of %d on %d races: %w", year, len(used), err)
	}
	return f, nil
}

// learn returns the weight of each feature of the set, per unit of the feature, and the sharpness. race returns the rows, the
// first places and the weight of each of n races. The features are standardised; they keep their mean, because a value
// that all starters share cancels.
func learn[R row | [liveFeatures]float64, F ~int](n int, set []F, p FitParams, race func(i int) ([]R, []int, float64)) (weights []float64, sharp float64, err error) {
	races, rows := make([]learnable, n), make([][]R, n)
	for i := range races {
		rows[i], races[i].finish, races[i].weight = race(i)
	}
	scale := make([]float64, len(set))
	var column []float64
	for j, feature := range set {
		column = column[:0]
		for _, of := range rows {
			for k := range of {
				column = append(column, of[k][feature])
			}
		}
		scale[j] = spread(column)
	}
	for i, of := range rows {
		races[i].x = make([]float64, 0, len(of)*len(set))
		for k := range of {
			for j, feature := range set {
				races[i].x = append(races[i].x, of[k][feature]/scale[j])
			}
		}
	}
	if weights, err = maximise(races, len(set), p); err != nil {
		return nil, 0, err
	}
	if sharp = 1; p.StageWeights[0] > 0 {
		sharp = sharpness(races, weights)
	}
	for j := range weights {
		weights[j] /= scale[j]
	}
	return weights, sharp, nil
}

// mostNewtonSteps is far above the five to eight steps that a convex loss of a dozen weights needs.
const mostNewtonSteps = 100

// maximise returns the d weights of the largest penalised likelihood, to about the last digit. It uses
// Newton's method and halves a step until the loss falls. The weights are the same on every processor
// because it ends at the optimum, not near it.
func maximise(races []learnable, d int, p FitParams) ([]float64, error) {
	b := make([]float64, d)
	at := newCurve(d)
	next := newCurve(d)
	at.move(races, b, p)
	for range mostNewtonSteps {
		at.bend(races, b, p)
		root, ok := matrix.Cholesky(at.hess, d)
		if !ok {
			return nil, errors.New("the likelihood has no unique maximum")
		}
		step := slices.Clone(at.grad)
		root.SolveBoth(step)
		trial := make([]float64, d)
		for scale := 1.0; ; scale /= 2 {
			copy(trial, b)
			matrix.AddScaled(trial, -scale, step)
			next.move(races, trial, p)
			if next.loss <= at.loss || scale < 1e-6 {
				break
			}
		}
		moved := 0.0
		for j := range b {
			moved = max(moved, math.Abs(trial[j]-b[j]))
		}
		b, at, next = trial, next, at
		if moved < 1e-9 {
			return b, nil
		}
	}
	return nil, errors.New("the likelihood has no maximum that can be found")
}

// curve is the penalised negative log-likelihood of the first places at some weights, with its gradient
// and the upper triangle of its Hessian. A step that is not taken needs the likelihood alone.
type curve struct {
	loss       float64
	grad, hess []float64

	e []float64 // e^u of all starters, race by race, divided by the largest of the race
	// Of one race: e without the first places, the utilities of the first places, and sums.
	others, chosen, first, second []float64
}

func newCurve(d int) *curve {
	return &curve{grad: make([]float64, d), hess: make([]float64, d*d), first: make([]float64, d), second: make([]float64, d*d)}
}

// move evaluates the loss at b.
func (c *curve) move(races []learnable, b []float64, p FitParams) {
	c.loss = p.Penalty / 2 * matrix.Dot(b, b)
	c.e = c.e[:0]
	for _, r := range races {
		c.e = utilities(c.e, r.x, b)
		e := c.e[len(c.e)-len(r.x)/len(b):]
		top := slices.Max(e)
		for i := range e {
			e[i] -= top
		}
		c.chosen = c.chosen[:0]
		for _, i := range r.finish {
			c.chosen = append(c.chosen, e[i])
		}
		for i := range e {
			e[i] = portable.Exp(e[i])
		}
		sum0 := sum(c.without(r.finish, e))
		for k := len(r.finish) - 1; k >= 0; k-- {
			sum0 += e[r.finish[k]]
			w := r.weight * p.StageWeights[k]
			c.loss -= float64(w * (c.chosen[k] - portable.Log(sum0)))
		}
	}
}

// without returns e with 0 for the first places, in a slice that the next call overwrites.
func (c *curve) without(finish []int, e []float64) []float64 {
	c.others = append(c.others[:0], e...)
	for _, i := range finish {
		c.others[i] = 0
	}
	return c.others
}

// bend evaluates the gradient and the Hessian at b, to which c was moved.
func (c *curve) bend(races []learnable, b []float64, p FitParams) {
	d := len(b)
	clear(c.hess)
	for j := range d {
		c.grad[j] = p.Penalty * b[j]
		c.hess[j*d+j] = p.Penalty
	}
	all := c.e
	for _, r := range races {
		var e []float64
		e, all = all[:len(r.x)/d], all[len(r.x)/d:]
		// The loop runs from the last place to the first, so that the set of remaining starters only
		// grows. The sums of e^u, e^u x and e^u xx' over the set are then updated in place.
		sum0 := 0.0
		clear(c.first)
		clear(c.second)
		add := func(e, x []float64) {
			sum0 += sum(e)
			matrix.AddRows(c.first, e, x)
			matrix.AddGram(c.second, e, x, d)
		}
		add(c.without(r.finish, e), r.x)
		for k := len(r.finish) - 1; k >= 0; k-- {
			i := r.finish[k]
			x := r.x[i*d : (i+1)*d]
			add(e[i:i+1], x)
			w := r.weight * p.StageWeights[k]
			for j := range d {
				mean := c.first[j] / sum0
				c.grad[j] += float64(w * (mean - x[j]))
				for l := j; l < d; l++ {
					c.hess[j*d+l] += float64(w * (c.second[j*d+l] - float64(mean*c.first[l])) / sum0)
				}
			}
		}
	}
}

// spread returns the standard deviation of x. It returns 1 for a constant, so that its weight stays 0.
func spread(x []float64) float64 {
	mean, squares := 0.0, 0.0
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	for _, v := range x {
		squares += float64((v - mean) * (v - mean))
	}
	if sd := math.Sqrt(squares / float64(len(x))); sd > 1e-9 {
		return sd
	}
	return 1
}

func utilities(u, x, b []float64) []float64 {
	for ; len(x) > 0; x = x[len(b):] {
		u = append(u, matrix.Dot(x[:len(b)], b))
	}
	return u
}

// sharpnessSteps is the number of factors that sharpness tries.
const sharpnessSteps = 97

// sharpness returns the factor on the utilities with the best log-loss of the winners, out of 97
// between 0.30 and 3.3. It corrects the fit of three places, which is too cautious about the first. The
// search stops when the log-loss stops falling, because the log-loss is convex in the factor.
func sharpness(races []learnable, b []float64) float64 {
	us := make([][]float64, len(races))
	for i, r := range races {
		us[i] = utilities(nil, r.x, b)
	}
	factor := func(k int) float64 { return portable.Exp(-1.2 + float64(.025*float64(k))) }
	var scaled []float64
	loss := func(k int) float64 {
		t := factor(k)
		sum := 0.0
		for i, r := range races {
			scaled = scaled[:0]
			for _, u := range us[i] {
				scaled = append(scaled, t*u)
			}
			sum += float64(r.weight * (logSumExp(scaled) - scaled[r.finish[0]]))
		}
		return sum
	}
	return factor(sort.Search(sharpnessSteps-1, func(k int) bool { return loss(k) <= loss(k+1) }))
}

// logChances returns the logarithm of every starter's probability to win.
func (f *Fit) logChances(x []row) []float64 {
	u := make([]float64, len(x))
	for i := range x {
		for j, feature := range f.Features {
			u[i] += float64(f.Sharpness * f.Weights[j] * x[i][feature])
		}
	}
	return normaliseLogs(u)
}
