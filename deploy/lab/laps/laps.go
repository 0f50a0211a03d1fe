// Package laps reads lap times of past races in the layout of the Ergast database dump, to
// learn and to measure live picks: races*.csv, drivers*.csv and lap_times*.csv, each plain or
// compressed (.gz).
//
// gridcast does not contain the data, because its licence forbids commercial use.
package laps

import (
	"cmp"
	"slices"
	"time"

	"gridcast/builder/predict"
	"gridcast/builder/season"
)

// Race holds the instant at which every car completed each of its laps, counted from the start.
type Race struct {
	Year      int
	GrandPrix season.GrandPrixID
	Completed map[season.DriverID][]time.Duration
	Stops     map[season.DriverID][]int // laps that end with a stop
}

// overdue is the number of lap times after which a car on the same lap counts as out.
const overdue = 2.5

// At returns the running order when the leader completed the lap, and whether the race got that
// far. It orders the cars by their time behind the leader at the last line they
// crossed. A car that is only a little overdue counts as running.
func (r *Race) At(lap, scheduled int) (predict.RaceState, bool) {
	leader, now := r.leader(lap)
	if leader == "" {
		return predict.RaceState{}, false
	}
	ahead := r.Completed[leader]
	state := predict.RaceState{Laps: lap, Scheduled: max(scheduled, lap)}
	for driver, laps := range r.Completed {
		done, _ := slices.BinarySearch(laps, now+1)
		done = min(done, lap)
		if done == 0 && lap > 1 {
			continue
		}
		last, pace := time.Duration(0), now/time.Duration(lap)
		if done > 0 {
			last = laps[done-1]
		}
		if float64(now-last) > overdue*float64(pace) && driver != leader {
			continue
		}
		car := predict.Car{Driver: driver, Stops: stopsBefore(r.Stops[driver], lap)}
		switch {
		case driver == leader:
		case len(laps) > done && laps[done]-now < pace && done == lap-1:
			car.Gap = laps[done] - now // on the lead lap: the gap of the timing screens
		case done > 0:
			car.Gap = max(last-ahead[done-1], 0) + time.Millisecond
		}
		state.Cars = append(state.Cars, car)
	}
	sortCars(state.Cars, leader)
	return state, true
}

// leader returns the first driver to complete the lap, and the instant.
func (r *Race) leader(lap int) (season.DriverID, time.Duration) {
	var first season.DriverID
	var at time.Duration
	for driver, laps := range r.Completed {
		if len(laps) >= lap && (first == "" || laps[lap-1] < at || laps[lap-1] == at && driver < first) {
			first, at = driver, laps[lap-1]
		}
	}
	return first, at
}

// sortCars puts the leader first and the others by their gap.
func sortCars(cars []predict.Car, leader season.DriverID) {
	slices.SortFunc(cars, func(a, b predict.Car) int {
		switch {
		case a.Driver == leader:
			return -1
		case b.Driver == leader:
			return 1
		}
		return cmp.Or(cmp.Compare(a.Gap, b.Gap), cmp.Compare(a.Driver, b.Driver))
	})
}

func stopsBefore(stops []int, lap int) int {
	n := 0
	for _, l := range stops {
		if l < lap {
			n++
		}
	}
	return n
}
