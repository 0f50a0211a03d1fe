package backtest

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
	Mean     float64  `json:"mean"`
	Interval Interval `json:"interval"`
}

// Compare returns the difference of two models' scores of the same races.
func Compare(model, other []Score) Difference {
	return Difference{
		WinnerHitPct: paired(model, other, func(s Score) float64 { return 100 * indicator(s.Hit) }),
		PodiumPct:    paired(model, other, func(s Score) float64 { return 100 * float64(s.Podium) / 3 }),
		LogLoss:      paired(model, other, func(s Score) float64 { return s.LogLoss }),
		Brier:        paired(model, other, func(s Score) float64 { return s.Brier }),
		PodiumBrier:  paired(model, other, func(s Score) float64 { return s.PodiumBrier }),
	}
}

func paired(model, other []Score, of func(Score) float64) Paired {
	n := len(model)
	if n == 0 {
		return Paired{}
	}
	diff := make([]float64, n)
	var p Paired
	for i := range diff {
		diff[i] = of(model[i]) - of(other[i])
		p.Mean += diff[i] / float64(n)
	}
	var means []float64
	for times := range draws(n) {
		mean := 0.0
		for i, d := range diff {
			mean += float64(times[i]) * d / float64(n)
		}
		means = append(means, mean)
	}
	p.Interval = interval(means)
	return p
}
