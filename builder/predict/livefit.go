package predict

import (
	"fmt"

	"gridcast/builder/season"
)

// LiveSample is a moment of a finished race to learn live picks from.
type LiveSample struct {
	State  RaceState
	Before Forecast
	Podium []season.DriverID // the official first three
	Weight float64
}

// livePenalty is the half weight of the squared standardised coefficients.
const livePenalty = 10

// FitLive learns the weights of live picks.
func FitLive(samples []LiveSample) (LiveWeights, error) {
	var rows [][liveFeatures]float64
	races := make([]learnable, 0, len(samples))
	for _, s := range samples {
		x, err := liveRows(s.State, s.Before)
		if err != nil {
			return LiveWeights{}, fmt.Errorf("fit live picks: %w", err)
		}
		r := learnable{weight: s.Weight}
		for _, d := range s.Podium {
			// A car that is out at this moment cannot be chosen; nobody behind it is then a choice.
			i := placeOf(d, s.State.Cars)
			if i < 0 {
				break
			}
			r.finish = append(r.finish, i)
		}
		if len(r.finish) == 0 {
			continue
		}
		for i := range x {
			r.x = append(r.x, x[i][:]...)
		}
		rows = append(rows, x...)
		races = append(races, r)
	}
	scale := make([]float64, liveFeatures)
	for j := range scale {
		column := make([]float64, len(rows))
		for i := range rows {
			column[i] = rows[i][j]
		}
		scale[j] = spread(column)
	}
	for _, r := range races {
		for i := range r.x {
			r.x[i] /= scale[i%liveFeatures]
		}
	}
	p := FitParams{StageWeights: DefaultParams().Fit.StageWeights, Penalty: livePenalty}
	b, err := maximise(races, liveFeatures, p)
	if err != nil {
		return LiveWeights{}, fmt.Errorf("fit live picks on %d moments: %w", len(races), err)
	}
	w := LiveWeights{Sharpness: sharpness(races, b)}
	for j := range w.Weights {
		w.Weights[j] = b[j] / scale[j]
	}
	return w, nil
}

// placeOf returns the place of a driver among the cars, -1 if he is not running.
func placeOf(d season.DriverID, cars []Car) int {
	for i, c := range cars {
		if c.Driver == d {
			return i
		}
	}
	return -1
}

// DefaultLiveWeights are those of the published model: learnt from 289 races of 2011 to 2024,
// twenty moments each, with lap times of the Ergast database and the forecasts of R2 as they
// would have been made then. To learn them again see backtest.LearnLive.
func DefaultLiveWeights() LiveWeights {
	return LiveWeights{
		Weights: [liveFeatures]float64{
			.9313, -.5385, .1088, .3327, .5293, .1825,
			.7037, .0935, .0855, -.0038, -.4376, .0918,
			.9397, .1320,
		},
		Sharpness: 1.2214,
	}
}
