package predict

import (
	"fmt"
	"math"
	"time"

	"gridcast/builder/predict/portable"
	"gridcast/builder/season"
)

// RaceState is a race at the moment at which its leader completes a lap.
type RaceState struct {
	Laps      int // completed by the leader
	Scheduled int // laps of the race
	Cars      []Car
}

// Car is a running car. Cars are in running order, the leader first.
type Car struct {
	Driver season.DriverID
	Gap    time.Duration // to the leader, however many laps that is; 0 for him
	Stops  int           // pit stops made
}

// Checkpoints are the moments of live picks, in percent of the scheduled distance. 0 is the end of the
// first lap.
var Checkpoints = []int{0, 25, 50, 75, 90}

// LiveName identifies the live model and its version in every frozen live pick.
const LiveName = "live-2"

// CountingCheckpoint is the checkpoint of the pick that counts.
const CountingCheckpoint = 50

// CheckpointLap returns the lap of a checkpoint: the checkpoint is its completion by the leader.
func CheckpointLap(percent, scheduled int) int {
	return max(1, (percent*scheduled+99)/100)
}

// liveFeatures is the number of features of a running car.
const liveFeatures = 14

// LiveWeights are the weights of a Plackett-Luce model of the running cars, and the factor on the
// weighted sum that gives the chance to win.
type LiveWeights struct {
	Weights   [liveFeatures]float64
	Sharpness float64
}

// Live returns the chances of the running cars. before is the forecast from before the race; a car that
// is missing there counts like its least likely one. The error is ErrNobody if no car is running, or
// names the fault of the state.
func (w LiveWeights) Live(state RaceState, before Forecast) (Forecast, error) {
	x, err := liveRows(state, before)
	if err != nil {
		return Forecast{}, fmt.Errorf("live pick at lap %d of %d: %w", state.Laps, state.Scheduled, err)
	}
	drivers := make([]season.DriverID, len(x))
	u := make([]float64, len(x))
	for i := range x {
		drivers[i] = state.Cars[i].Driver
		for j := range x[i] {
			u[i] += float64(w.Sharpness * w.Weights[j] * x[i][j])
		}
	}
	win := millionths(softmax(u), one, nil)
	return newForecast(withPodium(drivers, win, win), byChance(drivers, win), before.Basis), nil
}

// Live predicts with the weights of the published model. Walk-forward on 2021 to 2024, hit and
// podium in %, log-loss, with the frequency of the positions as baseline:
//
//	            races   Live                 order at that moment
//	lap 1       90      56.7  71.1  1.147    53.3  71.1  1.480
//	25 %        89      70.8  73.0   .841    62.9  73.0  1.119
//	50 %        89      82.0  81.3   .621    77.5  80.1   .871
//	75 %        88      85.2  84.8   .466    81.8  86.0   .611
//	90 %        87      93.1  91.6   .220    92.0  92.0   .310
func Live(state RaceState, before Forecast) (Forecast, error) {
	return DefaultLiveWeights().Live(state, before)
}

// stopSeconds is the cost of a pit stop: about 20 s on most circuits.
const stopSeconds = 20

// liveRows returns the features of the running cars. p is the completed share of the race.
//
//	0, 6, 12  -ln of the position, the same times p, times p⁴
//	1, 7      1 for the leader, the same times p
//	2, 8, 13  -sqrt of the gap to the leader in seconds, the same times p, times p⁴
//	3, 9      ln of the chance before the race, the same times p
//	4, 10     pit stops made above the mean of the running cars, the same times p
//	5, 11     -sqrt of the gap to the best in seconds after equally many stops, the same times p
//
// The last pair separates a leader with a stop still to make from one without. Measured at half
// distance, with the forecasts of R2: it changed the log-loss of 2011 to 2024 (285 races) from .746 to
// .732, and of 2021 to 2024 (89 races) from .636 to .614.
func liveRows(state RaceState, before Forecast) ([][liveFeatures]float64, error) {
	switch {
	case len(state.Cars) == 0:
		return nil, ErrNobody
	case state.Laps < 1 || state.Scheduled < state.Laps:
		return nil, fmt.Errorf("the race has %d laps", state.Scheduled)
	}
	chances := chancesBefore(state.Cars, before)
	projected := projectedGaps(state.Cars)
	stops := 0.0
	for _, c := range state.Cars {
		stops += float64(c.Stops) / float64(len(state.Cars))
	}
	p := float64(state.Laps) / float64(state.Scheduled)
	x := make([][liveFeatures]float64, len(state.Cars))
	for i, c := range state.Cars {
		f := &x[i]
		f[0] = -portable.Log(float64(i + 1))
		if i == 0 {
			f[1] = 1
		}
		f[2] = -math.Sqrt(max(0, c.Gap.Seconds()))
		f[3] = portable.Log(chances[i])
		f[4] = float64(c.Stops) - stops
		f[5] = -math.Sqrt(projected[i])
		for j := range 6 {
			f[j+6] = p * f[j]
		}
		f[12], f[13] = portable.Pow(p, 4)*f[0], portable.Pow(p, 4)*f[2]
	}
	return x, nil
}

// chancesBefore returns the cars' chances before the race. A driver outside the forecast gets the chance
// of its least likely driver.
func chancesBefore(cars []Car, before Forecast) []float64 {
	const floor = 1e-6
	known := make(map[season.DriverID]float64, len(before.Candidates))
	least := 1e-4
	for _, c := range before.Candidates {
		known[c.Driver] = max(c.Win, floor)
		least = min(least, known[c.Driver])
	}
	chances := make([]float64, len(cars))
	for i, c := range cars {
		var ok bool
		if chances[i], ok = known[c.Driver]; !ok {
			chances[i] = least
		}
	}
	return chances
}

// projectedGaps returns the gaps in seconds to the best car, corrected for unequal numbers of stops.
func projectedGaps(cars []Car) []float64 {
	gaps := make([]float64, len(cars))
	best := math.Inf(1)
	for i, c := range cars {
		gaps[i] = c.Gap.Seconds() - float64(stopSeconds*float64(c.Stops))
		best = min(best, gaps[i])
	}
	for i := range gaps {
		gaps[i] -= best
	}
	return gaps
}

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
			// A retired car cannot be chosen. The likelihood ends at its place, because the places
			// behind it depend on that choice.
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

// placeOf returns the index of a driver among the cars, or -1 if he is not running.
func placeOf(d season.DriverID, cars []Car) int {
	for i, c := range cars {
		if c.Driver == d {
			return i
		}
	}
	return -1
}

// DefaultLiveWeights returns the weights of the published model. They were learnt from 289 races of 2011
// to 2024 with twenty moments each, from lap times of the Ergast database and walk-forward forecasts of
// V2. backtest.LearnLive learns them again.
func DefaultLiveWeights() LiveWeights {
	return LiveWeights{
		Weights: [liveFeatures]float64{
			.9294, -.5417, .1096, .3370, .5280, .1820,
			.7038, .0985, .0861, -.0071, -.4347, .0917,
			.9395, .1324,
		},
		Sharpness: 1.2214,
	}
}
