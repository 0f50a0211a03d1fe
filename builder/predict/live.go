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
	LiveName  = "live-4"
	OrderName = LiveName + "-order"
)

// CheckpointLap returns the lap of a checkpoint: the checkpoint is its completion by the leader.
func CheckpointLap(percent, scheduled int) int {
	return max(1, (percent*scheduled+99)/100)
}

// liveFeatures is the number of features of a running car.
const liveFeatures = 30

// The features of the winner, and of the second and third place; both with gaps and stops, and from the order
// alone.
var (
	liveWin     = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 22, 23, 24, 25, 26, 27}
	liveBehind  = slices.Concat(liveWin, []int{18, 19, 20, 21, 28, 29})
	orderWin    = []int{0, 1, 3, 6, 7, 9, 12, 22, 23, 25, 26, 27}
	orderBehind = slices.Concat(orderWin, []int{14, 15, 16, 17, 28})
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
	left := float64(state.Scheduled - state.Laps + 1)
	share := openPodium / left
	if state.OrderOnly {
		share = openOrderPodium / math.Sqrt(left)
	}
	win = millionths(unsettled(softmax(win), 1, openWin/left), one, nil)
	podium := unsettled(podiumChances(win, softmax(behind)), float64(min(3, len(win))), share)
	podium = millionths(podium, min(3, len(win))*one, win)
	return newForecast(paired(drivers, win, podium), before.Basis), nil
}

// The shares of winners and of podium places that the order at the flag leaves open, because a penalty may change the
// classification. Of 175 leaders at the flag of 2016 to 2024, 173 won, and of the first three 96.8 % kept a podium. With n
// laps to go the share is 1/(n+1) of it; from the order alone, without gaps, that of a podium falls with the root.
const (
	openWin         = .012
	openPodium      = .03
	openOrderPodium = .08
)

// unsettled leaves a share of the chances of cars in running order open, and gives it to the cars in front: odds fall by a
// third from place to place.
func unsettled(chances []float64, total, share float64) []float64 {
	odds, none := make([]float64, len(chances)), make([]float64, len(chances))
	for i := range odds {
		odds[i] = portable.Pow(2./3, float64(i))
	}
	open := scaleOdds(odds, total, none)
	for i, p := range chances {
		open[i] = float64((1-share)*p) + float64(share*open[i])
	}
	return open
}

// Live predicts with the weights of the published model. Walk-forward on 2021 to 2024: log-loss, and Brier score of
// the podium, with the frequency of the positions as baseline:
//
//	            races   gaps and stops   order alone    positions
//	lap 1       90      1.116  1.213     1.123  1.226   1.480  1.277
//	25 %        89       .847  1.109      .887  1.125   1.119  1.218
//	50 %        89       .627   .888      .695   .903    .871   .934
//	75 %        88       .474   .661      .553   .692    .611   .696
//	90 %        87       .228   .404      .265   .433    .310   .439
//	flag        83       .064   .253      .078   .250
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
//	22, 23    features 0 and 1 by the square of the laps to go, the flag counting as one
//	24, 29    the seconds behind the leader, and those ahead of the middle, for each lap to go; at most ten
//	25 to 27  features 3, 0 and 1 times (1 - p)¹²
//	28        1 for the first three, by the square of the laps to go
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
	left, early := float64(state.Scheduled-state.Laps+1), portable.Pow(1-p, 12)
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
		f[22], f[23] = f[0]/(left*left), f[1]/(left*left)
		f[24] = -min(c.Gap.Seconds()/left, 10)
		f[25], f[26], f[27] = early*f[3], early*f[0], early*f[1]
		if i < 3 {
			f[28] = 1 / (left * left)
		}
		ahead := middle - c.Gap.Seconds()
		for j, by := range []float64{1, p, portable.Pow(p, 4), portable.Pow(p, 12)} {
			if i < 3 {
				f[14+j] = by
			}
			if len(state.Cars) > 3 {
				f[29] = max(-10, min(ahead/left, 10))
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
// learnt from 289 races of 2011 to 2024, from twenty moments, the first five laps and the last five of each, with lap times
// of the Ergast database and walk-forward forecasts of V2. A test of deploy/lab/backtest learns them again.
func DefaultLiveWeights(orderOnly bool) LiveWeights {
	if orderOnly {
		return LiveWeights{
			Win: [liveFeatures]float64{
				1.2378, -.5734, 3: .3879, 6: 1.1488, .5208, 9: .0638, 12: 1.1141, 22: .7259, 2.0107, 25: .1878,
				-.2235, .2523,
			},
			Behind: [liveFeatures]float64{
				1.3663, -1.0919, 3: .3549, 6: .9308, -1.8981, 9: .0240, 12: .6909, 14: -.2517, .7669, 1.1130,
				.6143, 22: .4941, -2.2814, 25: .1675, -.0796, -.4578, -.2064,
			},
			Sharpness: 1.1912,
		}
	}
	return LiveWeights{
		Win: [liveFeatures]float64{
			.9121, -.6151, .1044, .3178, .6033, .1736, .7773, .2560, .0810, -.0109,
			-.6307, .0833, .8150, .0971, 22: .5748, 1.7560, .1223, .2487, -.1295, .1517,
		},
		Behind: [liveFeatures]float64{
			.8883, -.9475, .0595, .2881, .7600, .0799, .5993, -1.9534, .0296, -.0537,
			-.5734, .0088, .5054, .0235, 18: .0849, .1031, .1225, .1150, .2593, -2.1586,
			.0673, .2274, -.0701, -.4942, .7827, .0796,
		},
		Sharpness: 1.2214,
	}
}
