// Package score scores forecasts by the results of their races, and sums the scores up with intervals. The service scores
// its picks with it. The lab adds the figures that only a comparison of models needs.
//
// The bootstrap is seeded, so the same scores give the same figures.
package score

import (
	"slices"

	"gridcast/builder/predict"
	"gridcast/builder/predict/portable"
	"gridcast/builder/season"
)

// leastChance is the chance of a winner outside the candidates; it keeps logarithms finite.
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
}

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
