// Package score adds to the scores of the service the figures by which the lab compares models: those of whole orders,
// and the errors of calibration.
package score

import (
	"slices"

	"gridcast/builder/predict"
	"gridcast/builder/predict/portable"
	"gridcast/builder/predict/score"
	"gridcast/builder/season"
)

// Interval is a 95 % interval.
type Interval = score.Interval

// Bin compares forecast and outcome for races of similar confidence.
type Bin = score.Bin

// leastChance is the least chance of a place; it keeps logarithms finite.
const leastChance = 1e-6

// Score is the score of one forecast.
type Score struct {
	score.Score

	// Of a forecast with whole orders: the same for the chances of the first ten places; the ranked probability
	// score, in which not being classified is the last place; the sum over the candidates of -ln of the chance of the
	// outcome, a place or not being classified; and the classified candidates, all and those in a place published as 0.
	PointsBrier    float64 `json:"-"`
	RPS            float64 `json:"-"`
	PlacesLogScore float64 `json:"-"`
	Finishes       int     `json:"-"`
	FinishesOnZero int     `json:"-"`

	Podiums []Outcome `json:"-"` // of every candidate
}

// Outcome is a chance and the outcome.
type Outcome struct {
	Said float64
	Came bool
}

// New scores a forecast by the official result of its round.
func New(f predict.Forecast, r *season.Round) Score {
	podium := r.Podium()
	s := Score{Score: score.Of(f, podium)}
	for _, c := range f.Candidates {
		s.Podiums = append(s.Podiums, Outcome{c.Podium, slices.Contains(podium[:], c.Driver)})
	}
	if len(f.Candidates) == 0 || f.Candidates[0].Places == nil {
		return s
	}
	place := map[season.DriverID]int{}
	for _, row := range r.Results {
		place[row.Driver] = row.Position
		s.PointsBrier += indicator(row.Position >= 1 && row.Position <= scored) // taken back for candidates
	}
	for _, c := range f.Candidates {
		said, points := 0.0, 0.0 // of the places so far
		at := place[c.Driver]
		for i, chance := range c.Places {
			said += chance
			if i < scored {
				points = said
			}
			off := said - indicator(at >= 1 && at <= i+1)
			s.RPS += float64(off*off) / float64(len(c.Places)*len(f.Candidates))
		}
		chance := c.Out
		if at >= 1 {
			chance = 0 // of a place behind as many as there are candidates
			if at <= len(c.Places) {
				chance = c.Places[at-1]
			}
			s.Finishes++
			if chance < publishedZero {
				s.FinishesOnZero++
			}
		}
		s.PlacesLogScore -= portable.Log(max(chance, leastChance))
		came := indicator(at >= 1 && at <= scored)
		s.PointsBrier += float64((points-came)*(points-came)) - came
	}
	return s
}

// publishedZero is the chance below which a percentage with two decimals is 0.00.
const publishedZero = .00005

// scored is the number of places that give points since 2010.
const scored = 10
