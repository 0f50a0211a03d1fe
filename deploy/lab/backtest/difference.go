package backtest

import (
	base "gridcast/builder/predict/score"
	"gridcast/deploy/lab/score"
)

// Difference is a model's metric minus another model's on the same races. It is more than
// noise where the interval excludes 0.
type Difference struct {
	WinnerHitPct Paired `json:"winner_hit_pct"`
	PodiumPct    Paired `json:"podium_pct"`
	LogLoss      Paired `json:"log_loss"`
	Brier        Paired `json:"brier"`
	PodiumBrier  Paired `json:"podium_brier"`
}

// Paired is a mean difference over races and its paired bootstrap interval.
type Paired struct {
	Mean     float64        `json:"mean"`
	Interval score.Interval `json:"interval"`
}

// Compare returns the difference of two models' scores of the same races.
func Compare(model, other []score.Score) Difference {
	n := len(model)
	if n == 0 {
		return Difference{}
	}
	metrics := [...]func(score.Score) float64{
		func(s score.Score) float64 { return 100 * indicator(s.Hit) },
		func(s score.Score) float64 { return 100 * float64(s.Podium) / 3 },
		func(s score.Score) float64 { return s.LogLoss },
		func(s score.Score) float64 { return s.Brier },
		func(s score.Score) float64 { return s.PodiumBrier },
	}
	var diff, means [len(metrics)][]float64
	var p [len(metrics)]Paired
	for k, of := range metrics {
		diff[k], means[k] = make([]float64, n), nil
		for i := range model {
			diff[k][i] = of(model[i]) - of(other[i])
			p[k].Mean += diff[k][i] / float64(n)
		}
	}
	for times := range base.Draws(n) {
		for k := range diff {
			mean := 0.0
			for i, d := range diff[k] {
				mean += float64(times[i]) * d / float64(n)
			}
			means[k] = append(means[k], mean)
		}
	}
	for k := range p {
		p[k].Interval = base.Middle(means[k])
	}
	return Difference{p[0], p[1], p[2], p[3], p[4]}
}

// indicator is 1 if b, else 0.
func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
