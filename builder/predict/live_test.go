package predict_test

import (
	"fmt"
	"testing"
	"time"

	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/deploy/must"
)

// before is a forecast in which ann is the favourite.
func before() predict.Forecast {
	return predict.Forecast{Candidates: []predict.Candidate{{Driver: "ann", Win: .6}, {Driver: "bob", Win: .3}, {Driver: "cat", Win: .08}, {Driver: "dan", Win: .02}}}
}

// running is a race at the given lap of 60, with the cars and their gaps in seconds.
func running(lap int, cars ...predict.Car) predict.RaceState {
	return predict.RaceState{Laps: lap, Scheduled: 60, Cars: cars}
}

func car(d season.DriverID, gap float64, stops int) predict.Car {
	return predict.Car{Driver: d, Gap: time.Duration(gap * float64(time.Second)), Stops: stops}
}

func TestCheckpointLap(t *testing.T) {
	for _, tc := range []struct{ percent, laps, want int }{
		{0, 57, 1}, {25, 57, 15}, {50, 57, 29}, {50, 58, 29}, {75, 44, 33}, {90, 78, 71}, {90, 1, 1},
	} {
		got := predict.CheckpointLap(tc.percent, tc.laps)
		must.Hold(t, got == tc.want, "%d %% of %d laps: got lap %d, want %d", tc.percent, tc.laps, got, tc.want)
	}
}

func TestLiveChances(t *testing.T) {
	win := func(s predict.RaceState, d season.DriverID) float64 {
		t.Helper()
		f := must.Get(predict.Live(s, before()))(t)
		checkChances(t, f, len(s.Cars))
		for _, c := range f.Candidates {
			if c.Driver == d {
				return c.Win
			}
		}
		t.Fatalf("no %s in %v", d, f.Candidates)
		return 0
	}
	even := running(30, car("ann", 0, 1), car("bob", 5, 1), car("cat", 20, 1), car("dan", 40, 1))
	for _, tc := range []struct {
		name        string
		less, more  predict.RaceState
		driver      season.DriverID
		wantAtLeast float64 // of more
	}{
		{"a lead is worth more near the end", even, running(56, even.Cars...), "ann", .95},
		{"a larger lead is worth more", even, running(30, car("ann", 0, 1), car("bob", 15, 1), car("cat", 30, 1), car("dan", 50, 1)), "ann", .8},
		{"the favourite out helps the others", even, running(30, even.Cars[1:]...), "bob", .7},
		{"a stop still to make is worth the time it takes", running(40, car("dan", 0, 0), car("ann", 5, 1)), running(40, car("dan", 0, 1), car("ann", 5, 1)), "dan", .3},
		{"the leader is ahead of a weaker start", running(1, even.Cars[1], even.Cars[0]), running(1, even.Cars...), "ann", .5},
	} {
		less, more := win(tc.less, tc.driver), win(tc.more, tc.driver)
		if !(less < more) || more < tc.wantAtLeast {
			t.Errorf("%s: %s has %.3f, then %.3f; want more, and at least %.2f", tc.name, tc.driver, less, more, tc.wantAtLeast)
		}
	}
}

func TestLiveHoldsAStrangerForUnlikely(t *testing.T) {
	f := must.Get(predict.Live(running(1, car("ann", 0, 0), car("new", 1, 0), car("dan", 1.1, 0)), before()))(t)
	must.Hold(t, f.Podium == [3]season.DriverID{"ann", "dan", "new"}, "got %v, want the stranger last", f.Podium)
}

func TestLiveRefuses(t *testing.T) {
	must.Fail(t, "nobody running", must.Err(predict.Live(running(10), before())), predict.ErrNobody)
	for _, s := range []predict.RaceState{running(0, car("ann", 0, 0)), running(61, car("ann", 0, 0)), {Cars: []predict.Car{car("ann", 0, 0)}}} {
		must.Fail(t, fmt.Sprintf("lap %d of %d", s.Laps, s.Scheduled), must.Err(predict.Live(s, before())))
	}
}

func TestFitLiveFindsWhatDecides(t *testing.T) {
	// In the samples the leader at half distance always wins, also against the earlier forecast.
	samples := make([]predict.LiveSample, 0, 40)
	order := ids("ann", "bob", "cat", "dan")
	for i := range cap(samples) {
		a, b, c, d := order[i%4], order[(i+1)%4], order[(i+2)%4], order[(i+3)%4]
		s := must.Get(predict.NewLiveSample(running(30, car(a, 0, 1), car(b, 3, 1), car(c, 6, 1), car(d, 9, 1)), before(), []season.DriverID{a, b, c}))(t)
		s.Weight = 1
		samples = append(samples, s)
	}
	w := must.Get(predict.FitLive(samples, false))(t)
	f := must.Get(w.Live(running(30, car("dan", 0, 1), car("cat", 3, 1), car("bob", 6, 1), car("ann", 9, 1)), before()))(t)
	if f.Winner().Driver != "dan" || f.Winner().Win < .8 {
		t.Errorf("got %+v, want dan with more than 80 %%", f.Winner())
	}
}
