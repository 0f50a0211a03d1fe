// Package score scores forecasts by the results of their races, and sums the scores up with intervals. The service scores
// its picks with it, and the lab its models.
//
// The bootstrap is seeded, so the same scores give the same figures.
package score

import (
	"slices"

	"gridcast/builder/predict"
	"gridcast/builder/predict/portable"
	"gridcast/builder/season"
)

// leastChance is the chance of a winner outside the candidates, and the least chance of a place; it keeps logarithms finite.
const leastChance = 1e-6

// Score is the score of one forecast.
type Score struct {
	Confidence float64 // probability given to the picked winner
	Hit        bool    // that driver won
	Podium     int     // picked drivers on the podium, in any order
	Exact      int     // picked drivers in their picked place
	LogLoss    float64 // -ln of the probability given to the winner
	Brier      float64 // sum of squared errors over the candidates, 0 to 2
	// PodiumBrier is the same for the chances of a podium, 0 to 6.
	PodiumBrier float64

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
	s := Of(f, r.Podium())
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

// Of scores a forecast by the podium of its race.
func Of(f predict.Forecast, podium season.Podium) Score {
	s := Score{Confidence: f.Winner().Win}
	s.Hit, s.Podium = podium.Score(f.Podium)
	for i, picked := range f.Podium {
		if picked != "" && picked == podium[i] {
			s.Exact++
		}
	}
	chance := leastChance
	s.Brier = 1 // the winner was not a candidate
	for _, c := range f.Candidates {
		if c.Driver == podium[0] {
			chance = max(c.Win, leastChance)
			s.Brier += float64((1-c.Win)*(1-c.Win)) - 1
		} else {
			s.Brier += float64(c.Win * c.Win)
		}
	}
	s.LogLoss = -portable.Log(chance)
	missed := 0.0
	for _, d := range podium {
		missed += indicator(d != "")
	}
	for _, c := range f.Candidates {
		s.Podiums = append(s.Podiums, Outcome{c.Podium, slices.Contains(podium[:], c.Driver)})
		if slices.Contains(podium[:], c.Driver) {
			missed--
			s.PodiumBrier += float64((1 - c.Podium) * (1 - c.Podium))
		} else {
			s.PodiumBrier += float64(c.Podium * c.Podium)
		}
	}
	s.PodiumBrier += missed // podium finishers outside the candidates
	return s
}
