// Package backtest measures models on past seasons in the way the service uses them. It predicts every race
// from the view at the instant its grid was known, with a model fitted on that
// view, and scores the forecast by the official classification.
//
// The figures of a run depend on the archive and the models alone: the bootstrap is seeded.
package backtest

import (
	"context"
	"fmt"
	"slices"

	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/deploy/lab/score"
)

// Config selects the seasons, the models and the basis.
type Config struct {
	From, To  int // seasons, inclusive
	Model     predict.Model
	Baselines []Baseline
	Basis     predict.Order // the known part of a weekend; empty is the grid
	RuleYears []int         // seasons with new rules, shown apart

	// Progress is called after each race; may be nil.
	Progress func(phase string, done, total int)
}

// Baseline is a model to compare with, and its name in the report.
type Baseline struct {
	Name  string
	Model predict.Model
}

// DefaultConfig measures the published model against all baselines.
func DefaultConfig(from, to int) Config {
	p := predict.DefaultParams()
	model := predict.NewV2(p)
	return Config{
		From: from, To: to,
		Model: model, Basis: predict.FromGrid,
		Baselines: []Baseline{
			{"pole", predict.Pole()},
			{"grid_frequency", predict.GridFrequency()},
			{"slot_podiums", predict.SlotPodiums()},
			{"f0", qualifiedAlone(model.Explain)},
			{"leader", predict.Leader()},
			{"previous_winner", predict.PreviousWinner()},
		},
		RuleYears: p.Pace.RuleYears,
	}
}

// qualifiedAlone is the forecast of the outcome of qualifying alone, by the expert of a model that explains itself.
type qualifiedAlone func(v *season.View, year int, round season.GrandPrixID) (predict.Explanation, error)

func (qualifiedAlone) Name() string { return "f0" }

func (m qualifiedAlone) Predict(v *season.View, year int, round season.GrandPrixID) (predict.Forecast, error) {
	e, err := m(v, year, round)
	return e.Qualified(), err
}

// Race is a race that was scored.
type Race struct {
	Year int
	*season.Round
}

// Run predicts and scores every finished race of the seasons. It stops when ctx is done.
func Run(ctx context.Context, archive *season.Archive, c Config) (*Report, error) {
	models := append(make([]predict.Model, 0, 1+len(c.Baselines)), c.Model)
	for _, b := range c.Baselines {
		models = append(models, b.Model)
	}
	var races []Race
	for _, s := range archive.Facts().Seasons {
		for i := range s.Rounds {
			if r := &s.Rounds[i]; s.Year >= c.From && s.Year <= c.To && r.Finished() {
				races = append(races, Race{s.Year, r})
			}
		}
	}
	if len(races) == 0 {
		return nil, fmt.Errorf("backtest from %d to %d: the archive has no finished race there", c.From, c.To)
	}
	scores := make([][]score.Score, len(models))
	for i, r := range races {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("backtest %d %s: %w", r.Year, r.GrandPrix, err)
		}
		view := viewOf(archive, r, c.Basis)
		for k, m := range models {
			f, err := m.Predict(view, r.Year, r.GrandPrix)
			if err != nil {
				return nil, fmt.Errorf("backtest of %s: %w", m.Name(), err)
			}
			scores[k] = append(scores[k], score.New(f, r.Round))
		}
		if c.Progress != nil {
			c.Progress("races", i+1, len(races))
		}
	}
	return newReport(c, races, scores), nil
}

// FromPractice is the basis of a forecast from form that has seen practice.
const FromPractice predict.Order = "practice"

// viewOf returns the facts that a pick on the basis could have used: with
// the grid when it was known; on qualifying at its end, without the grid; on practice without qualifying and sprint;
// on form without any session of the weekend.
func viewOf(archive *season.Archive, r Race, basis predict.Order) *season.View {
	if basis == predict.FromGrid || basis == "" {
		return archive.AsOf(r.GridKnownAt())
	}
	v := archive.AsOf(r.QualifyingKnownAt())
	w := *v
	w.Seasons = slices.Clone(v.Seasons)
	s, _ := w.Season(r.Year)
	s.Rounds = slices.Clone(s.Rounds)
	known, _ := s.Round(r.GrandPrix)
	known.Grid = nil
	if basis != predict.FromQualifying {
		known.Qualifying, known.SprintQualifying, known.SprintGrid, known.SprintResults = nil, nil, nil, nil
	}
	if basis == predict.FromForm {
		known.Practice = [4][]season.TimedLap{}
	}
	return &w
}
