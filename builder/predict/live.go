package predict

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"gridcast/builder/predict/portable"
	"gridcast/builder/season"
)

// RaceState is a race at the moment at which its leader completes a lap.
type RaceState struct {
	Laps      int // completed by the leader
	Scheduled int // laps of the race
	Cars      []Car

	OrderOnly bool // gaps and stops are not known, as in an order that a person enters
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

// The names of the live model and its version in frozen live picks: from the order with gaps and stops, and from the
// order alone.
const (
	LiveName  = "live-3"
	OrderName = LiveName + "-order"
)

// CheckpointLap returns the lap of a checkpoint: the checkpoint is its completion by the leader.
func CheckpointLap(percent, scheduled int) int {
	return max(1, (percent*scheduled+99)/100)
}

// liveFeatures is the number of features of a running car.
const liveFeatures = 22

// The features of the winner, and of the second and third place; both with gaps and stops, and from the order
// alone.
var (
	liveWin     = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}
	liveBehind  = slices.Concat(liveWin, []int{18, 19, 20, 21})
	orderWin    = []int{0, 1, 3, 6, 7, 9, 12}
	orderBehind = slices.Concat(orderWin, []int{14, 15, 16, 17})
)

// LiveWeights are the weights of two Plackett-Luce models of the running cars: of the winner, with the factor
// on the weighted sum that gives his chance, and of the second and third place.
type LiveWeights struct {
	Win, Behind [liveFeatures]float64
	Sharpness   float64
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
	win, behind := make([]float64, len(x)), make([]float64, len(x))
	for i := range x {
		drivers[i] = state.Cars[i].Driver
		for j := range x[i] {
			win[i] += float64(w.Sharpness * w.Win[j] * x[i][j])
			behind[i] += float64(w.Behind[j] * x[i][j])
		}
	}
	win = millionths(softmax(win), one, nil)
	return newForecast(withPodium(drivers, win, softmax(behind)), byChance(drivers, win), before.Basis), nil
}

// Live predicts with the weights of the published model. Walk-forward on 2021 to 2024: log-loss, and Brier score of
// the podium, with the frequency of the positions as baseline:
//
//	            races   gaps and stops   order alone    positions
//	lap 1       90      1.147  1.211     1.142  1.216   1.480  1.277
//	25 %        89       .841  1.109      .884  1.122   1.119  1.218
//	50 %        89       .621   .885      .693   .904    .871   .934
//	75 %        88       .466   .657      .548   .693    .611   .696
//	90 %        87       .220   .399      .262   .433    .310   .439
func Live(state RaceState, before Forecast) (Forecast, error) {
	return DefaultLiveWeights(state.OrderOnly).Live(state, before)
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
//	14 to 17  1 for the first three, the same times p, times p⁴, times p¹²
//	18 to 21  the signed root of the seconds ahead of the middle between third and fourth, times the same
//
// Features 5 and 11 separate a leader with a stop still to make from one without. Measured at half
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
	middle := 0.0
	if len(state.Cars) > 3 {
		middle = (state.Cars[2].Gap.Seconds() + state.Cars[3].Gap.Seconds()) / 2
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
		ahead := middle - c.Gap.Seconds()
		for j, by := range []float64{1, p, portable.Pow(p, 4), portable.Pow(p, 12)} {
			if i < 3 {
				f[14+j] = by
			}
			if len(state.Cars) > 3 {
				f[18+j] = by * math.Copysign(math.Sqrt(math.Abs(ahead)), ahead)
			}
		}
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
		chances[i] = cmp.Or(known[c.Driver], least) // no known chance is 0
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
	Weight float64

	rows   [][liveFeatures]float64
	finish []int // the official first three among the rows
}

// NewLiveSample returns a moment of a race with its forecast from before it and its official first three.
func NewLiveSample(state RaceState, before Forecast, podium []season.DriverID) (LiveSample, error) {
	x, err := liveRows(state, before)
	if err != nil {
		return LiveSample{}, fmt.Errorf("learn from lap %d of %d: %w", state.Laps, state.Scheduled, err)
	}
	s := LiveSample{rows: x}
	for _, d := range podium {
		// A retired car cannot be chosen. The likelihood ends at its place, because the places
		// behind it depend on that choice.
		i := slices.IndexFunc(state.Cars, func(c Car) bool { return c.Driver == d })
		if i < 0 {
			break
		}
		s.finish = append(s.finish, i)
	}
	return s, nil
}

// livePenalty is the half weight of the squared standardised coefficients.
const livePenalty = 10

// FitLive learns the weights of live picks, with gaps and stops or from the order alone.
func FitLive(samples []LiveSample, orderOnly bool) (LiveWeights, error) {
	samples = slices.DeleteFunc(slices.Clone(samples), func(s LiveSample) bool { return len(s.finish) == 0 })
	win, behind := liveWin, liveBehind
	if orderOnly {
		win, behind = orderWin, orderBehind
	}
	var w LiveWeights
	var err error
	if w.Win, w.Sharpness, err = fitLive(samples, win, DefaultParams().Fit.StageWeights); err == nil {
		w.Behind, _, err = fitLive(samples, behind, behindWeights)
	}
	return w, err
}

// fitLive learns the weights of some features, and the sharpness for the winner.
func fitLive(samples []LiveSample, set []int, stageWeights []float64) (weights [liveFeatures]float64, sharp float64, err error) {
	p := FitParams{StageWeights: stageWeights, Penalty: livePenalty}
	learnt, sharp, err := learn(len(samples), set, p, func(i int) ([][liveFeatures]float64, []int, float64) {
		return samples[i].rows, samples[i].finish, samples[i].Weight
	})
	if err != nil {
		return weights, 0, fmt.Errorf("fit live picks on %d moments: %w", len(samples), err)
	}
	for k, j := range set {
		weights[j] = learnt[k]
	}
	return weights, sharp, nil
}

// DefaultLiveWeights returns the weights of the published model, with gaps and stops or from the order alone. They were
// learnt from 289 races of 2011 to 2024 with twenty moments each, from lap times of the Ergast database and walk-forward
// forecasts of V2. A test of deploy/lab/backtest learns them again.
func DefaultLiveWeights(orderOnly bool) LiveWeights {
	if orderOnly {
		return LiveWeights{
			Win:       [liveFeatures]float64{0: 1.2038, 1: -.4478, 3: .4005, 6: 1.0429, 7: .3867, 9: .0851, 12: 1.1672},
			Behind:    [liveFeatures]float64{0: 1.3006, 1: -1.1638, 3: .3679, 6: .8750, 7: -1.6154, 9: .0411, 12: .6731, 14: -.1121, .5417, 1.3765, .6430},
			Sharpness: 1.1912,
		}
	}
	return LiveWeights{
		Win: [liveFeatures]float64{
			.9294, -.5417, .1096, .3370, .5280, .1820,
			.7038, .0985, .0861, -.0071, -.4347, .0917,
			.9395, .1324,
		},
		Behind: [liveFeatures]float64{
			.8994, -1.0776, .0720, .3093, .6616, .0869,
			.5338, -1.7089, .0380, -.0559, -.2723, .0153,
			.5479, .0423, 18: .0896, .1011, .1690, .2474,
		},
		Sharpness: 1.2214,
	}
}
