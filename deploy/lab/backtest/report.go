package backtest

import (
	"cmp"
	"slices"

	"gridcast/builder/predict"
	"gridcast/deploy/lab/score"
)

// Report is the outcome of a run. Its JSON form is stable.
type Report struct {
	From        int                      `json:"from"`
	To          int                      `json:"to"`
	Races       int                      `json:"races"`
	ModelName   string                   `json:"model_name"`
	Basis       predict.Order            `json:"basis"` // the known part of each weekend
	Model       score.Metrics            `json:"model"`
	Baselines   map[string]score.Metrics `json:"baselines"`
	Differences map[string]Difference    `json:"differences"` // the model minus each baseline, paired
	Reliability []score.Bin              `json:"reliability"`
	Podiums     []score.Bin              `json:"podium_reliability"`
	Calibrated  score.Expected           `json:"calibrated_ece_pct"` // ECE of a perfectly calibrated forecaster
	Seasons     []Season                 `json:"seasons"`
	Subsets     []Subset                 `json:"subsets"`

	// The scores of each race, for plots.
	Scored     []Race                   `json:"-"`
	Scores     []score.Score            `json:"-"`
	BaseScores map[string][]score.Score `json:"-"`
}

// Season holds the figures of one season.
type Season struct {
	Year int `json:"year"`
	Part
}

// Subset holds the figures of some of the races.
type Subset struct {
	Name string `json:"name"`
	Part
}

// Part sums up some of the races.
type Part struct {
	Races     int                      `json:"races"`
	Model     score.Metrics            `json:"model"`
	Baselines map[string]score.Metrics `json:"baselines"`
}

// earlyRounds is the number of first rounds of a season, in which form says least.
const earlyRounds = 4

func newReport(c Config, races []Race, scores [][]score.Score) *Report {
	r := &Report{
		From: c.From, To: c.To, ModelName: c.Model.Name(), Basis: cmp.Or(c.Basis, predict.FromGrid),
		Differences: map[string]Difference{},
		Reliability: score.Reliability(scores[0]),
		Podiums:     score.PodiumReliability(scores[0]),
		Calibrated:  score.CalibratedECE(scores[0]),
		Scored:      races, Scores: scores[0], BaseScores: map[string][]score.Score{},
	}
	for i, b := range c.Baselines {
		r.BaseScores[b.Name] = scores[i+1]
		r.Differences[b.Name] = Compare(scores[0], scores[i+1])
	}
	all := r.part(func(Race) bool { return true })
	r.Races, r.Model, r.Baselines = all.Races, all.Model, all.Baselines
	for year := c.From; year <= c.To; year++ {
		if p := r.part(func(x Race) bool { return x.Year == year }); p.Races > 0 {
			r.Seasons = append(r.Seasons, Season{year, p})
		}
	}
	newRules := func(x Race) bool { return slices.Contains(c.RuleYears, x.Year) }
	early := func(x Race) bool { return x.Number <= earlyRounds }
	for _, s := range []struct {
		name string
		in   func(Race) bool
	}{
		{"rounds 1-4", early},
		{"later rounds", func(x Race) bool { return !early(x) }},
		{"seasons with new rules", newRules},
		{"rounds 1-4 under new rules", func(x Race) bool { return early(x) && newRules(x) }},
	} {
		if p := r.part(s.in); p.Races > 0 {
			r.Subsets = append(r.Subsets, Subset{s.name, p})
		}
	}
	return r
}

func (r *Report) part(in func(Race) bool) Part {
	keep := func(scores []score.Score) []score.Score {
		var kept []score.Score
		for i, s := range scores {
			if in(r.Scored[i]) {
				kept = append(kept, s)
			}
		}
		return kept
	}
	mine := keep(r.Scores)
	p := Part{Races: len(mine), Model: score.NewMetrics(mine), Baselines: map[string]score.Metrics{}}
	for name, scores := range r.BaseScores {
		p.Baselines[name] = score.NewMetrics(keep(scores))
	}
	return p
}
