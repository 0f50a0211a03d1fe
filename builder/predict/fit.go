package predict

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/stat"
)

// Fit is a Plackett-Luce model of who is first, second and third: a starter's utility is the
// sum of Weights times features, and his chance to win is proportional to exp(Sharpness ×
// utility).
type Fit struct {
	Features  []Feature
	Weights   []float64 // per unit of the feature
	Sharpness float64
	Window    Window
	Races     int // learnt from
	From, To  int // their first and last season
}

// learnable is a race in the form that the optimiser wants.
type learnable struct {
	x      []float64 // row by row, standardised
	finish []int
	weight float64
}

// fit learns from the samples, which are of seasons before year.
func fit(samples []*sample, year int, set []Feature, window Window, p FitParams) (*Fit, error) {
	f := &Fit{Features: set, Window: window}
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
	scale := spreads(used, set)
	races := make([]learnable, len(used))
	for i, s := range used {
		age := float64(year - 1 - s.year) // 0 for last season
		races[i] = learnable{make([]float64, 0, len(s.x)*len(set)), s.finish, math.Exp2(-age / window.HalfLife)}
		for _, x := range s.x {
			for j, feature := range set {
				races[i].x = append(races[i].x, x[feature]/scale[j])
			}
		}
	}
	weights, err := maximise(races, len(set), p)
	if err != nil {
		return nil, fmt.Errorf("fit of %d on %d races: %w", year, len(used), err)
	}
	f.Sharpness = sharpness(races, weights)
	f.Weights = weights
	for j := range f.Weights {
		f.Weights[j] /= scale[j]
	}
	return f, nil
}

// maximise returns the d weights of the largest penalised likelihood.
func maximise(races []learnable, d int, p FitParams) ([]float64, error) {
	result, err := optimize.Minimize(optimize.Problem{
		Func: func(b []float64) float64 { return loss(races, b, p, nil) },
		Grad: func(grad, b []float64) { loss(races, b, p, grad) },
	}, make([]float64, d), &optimize.Settings{GradientThreshold: 1e-4}, &optimize.LBFGS{})
	if err != nil {
		return nil, err
	}
	return result.X, nil
}

// spreads returns the standard deviation of each feature over all starters. The mean needs no
// removing: what all starters share cancels.
func spreads(samples []*sample, set []Feature) []float64 {
	scale := make([]float64, len(set))
	var column []float64
	for j, feature := range set {
		column = column[:0]
		for _, s := range samples {
			for k := range s.x {
				column = append(column, s.x[k][feature])
			}
		}
		scale[j] = spread(column)
	}
	return scale
}

// spread is the standard deviation of x; 1 if it is a constant, whose weight stays 0.
func spread(x []float64) float64 {
	if sd := stat.PopStdDev(x, nil); sd > 1e-9 {
		return sd
	}
	return 1
}

// loss is the penalised negative log-likelihood of the first places, and its gradient.
func loss(races []learnable, b []float64, p FitParams, grad []float64) float64 {
	d := len(b)
	total := p.Penalty / 2 * floats.Dot(b, b)
	for j := range grad {
		grad[j] = p.Penalty * b[j]
	}
	var e []float64
	for _, r := range races {
		n := len(r.x) / d
		e = utilities(e[:0], r.x, b)
		top := floats.Max(e)
		for i := range e {
			e[i] = math.Exp(e[i] - top)
		}
		for k, chosen := range r.finish {
			w := r.weight * p.StageWeights[k]
			sum := floats.Sum(e)
			total -= w * math.Log(e[chosen]/sum)
			if grad != nil {
				floats.AddScaled(grad, -w, r.x[chosen*d:(chosen+1)*d])
				for i := range n {
					if e[i] > 0 {
						floats.AddScaled(grad, w*e[i]/sum, r.x[i*d:(i+1)*d])
					}
				}
			}
			e[chosen] = 0
		}
	}
	return total
}

// utilities appends the utility of every row of x.
func utilities(u, x, b []float64) []float64 {
	for ; len(x) > 0; x = x[len(b):] {
		u = append(u, floats.Dot(x[:len(b)], b))
	}
	return u
}

// sharpness returns the factor on the utilities that gives the winners the best log-loss, of
// 97 between 0.30 and 3.3: the fit of three places is too cautious about the first.
func sharpness(races []learnable, b []float64) float64 {
	best, least := 1.0, math.Inf(1)
	us := make([][]float64, len(races))
	for i, r := range races {
		us[i] = utilities(nil, r.x, b)
	}
	var scaled []float64
	for k := range 97 {
		t := math.Exp(-1.2 + .025*float64(k))
		sum := 0.0
		for i, r := range races {
			scaled = scaled[:0]
			for _, u := range us[i] {
				scaled = append(scaled, t*u)
			}
			sum += r.weight * (logSumExp(scaled) - scaled[r.finish[0]])
		}
		if sum < least {
			best, least = t, sum
		}
	}
	return best
}

// logChances returns the logarithm of every starter's probability to win.
func (f *Fit) logChances(x []row) []float64 {
	u := make([]float64, len(x))
	for i := range x {
		for j, feature := range f.Features {
			u[i] += f.Sharpness * f.Weights[j] * x[i][feature]
		}
	}
	lse := logSumExp(u)
	for i := range u {
		u[i] -= lse
	}
	return u
}
