package predict_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/deploy/must"
)

// TestPlacesAreThoseOfDraws compares the integral with draws of the process that it integrates.
func TestPlacesAreThoseOfDraws(t *testing.T) {
	const draws = 200_000
	for _, tc := range []struct {
		win, rate []float64
		out       float64
	}{
		{[]float64{.5, .3, .15, .05, 0, 0}, []float64{.3, .3, .2, .1, .099, .001}, .25},
		{[]float64{.1, .2, .3, .4}, []float64{4, 3, 2, 1}, .6},
		{[]float64{.7, .2, .1}, []float64{1, 1, 1}, .5}, // three always finish
	} {
		n := len(tc.win)
		out := tc.out
		if n <= 3 {
			out = 0
		}
		rng := rand.New(rand.NewPCG(27, uint64(n)))
		counts := make([][]float64, n)
		for i := range counts {
			counts[i] = make([]float64, n)
		}
		for drawn := 0.; drawn < draws; {
			winner, at := 0, rng.Float64()
			for ; at >= tc.win[winner]; winner++ {
				at -= tc.win[winner]
			}
			arrival := make([]float64, n)
			arrived := 0
			for i := range arrival {
				arrival[i] = rng.ExpFloat64() / tc.rate[i]
				if rng.Float64() < predict.SlowShare {
					arrival[i] /= predict.SlowRate
				}
				if i == winner {
					arrival[i] = -1
				} else if rng.Float64() < out {
					arrival[i] = math.Inf(1)
				}
				if !math.IsInf(arrival[i], 1) {
					arrived++
				}
			}
			if arrived < min(3, n) {
				continue // the podium would have a gap
			}
			drawn++
			for i, x := range arrival {
				place := 0
				for _, y := range arrival {
					if y < x {
						place++
					}
				}
				if !math.IsInf(x, 1) {
					counts[i][place] += 1. / draws
				}
			}
		}
		got := predict.Places(tc.win, tc.rate, tc.out)
		for i := range got {
			for k := range got[i] {
				near(t, fmt.Sprintf("%d cars, car %d, place %d", n, i, k+1), got[i][k], counts[i][k], .005)
			}
		}
		for k := range min(3, n) {
			total := 0.
			for i := range got {
				total += got[i][k]
			}
			near(t, fmt.Sprintf("%d cars, place %d", n, k+1), total, 1, 1e-6)
		}
	}
}

// TestColumnsAreTheChancesThatSoManyFinish checks a full field against the binomial distribution.
func TestColumnsAreTheChancesThatSoManyFinish(t *testing.T) {
	const n, out = 20, .2
	win, rate := make([]float64, n), make([]float64, n)
	for i := range win {
		rate[i] = math.Pow(.8, float64(i))
		win[i] = rate[i] * .2 / (1 - math.Pow(.8, n))
	}
	got := predict.Places(win, rate, out)
	atLeast := make([]float64, n) // of k cars behind the winner
	for k := n - 1; k >= 0; k-- {
		chance := math.Pow(1-out, float64(k)) * math.Pow(out, float64(n-1-k))
		for j := range k {
			chance *= float64(n-1-j) / float64(j+1)
		}
		atLeast[k] = chance
		if k < n-1 {
			atLeast[k] += atLeast[k+1]
		}
	}
	for k := range n {
		total := 0.
		for i := range got {
			total += got[i][k]
		}
		near(t, fmt.Sprint("place ", k+1), total, atLeast[k], 1e-6)
	}
}

// TestPodiumChances checks the Plackett-Luce podium of four against the sum over all orders.
func TestPodiumChances(t *testing.T) {
	v := viewOf(season.Season{Year: 2020, Rounds: []season.Round{oneRace("one", ids("ann", "bob", "cat", "dan"), nil)}})
	f := forecast(t, predict.GridFrequency(), v, 2020, "one")
	for _, c := range f.Candidates {
		// Not on the podium of four is last: every order of the other three before him.
		last := 0.0
		for i, a := range f.Candidates {
			for j, b := range f.Candidates {
				for k, e := range f.Candidates {
					if i != j && j != k && i != k && a.Driver != c.Driver && b.Driver != c.Driver && e.Driver != c.Driver {
						last += a.Win * b.Win / (1 - a.Win) * e.Win / (1 - a.Win - b.Win)
					}
				}
			}
		}
		near(t, string(c.Driver), c.Podium, 1-last, 2e-6)
	}
}

// TestWithout: the chances of the drivers who start add up, keep their order, and none falls.
func TestWithout(t *testing.T) {
	f := predict.Forecast{Candidates: []predict.Candidate{
		{Driver: "a", Win: .5, Podium: .9}, {Driver: "b", Win: .3, Podium: .8}, {Driver: "c", Win: .15, Podium: .7}, {Driver: "d", Win: .04, Podium: .4}, {Driver: "e", Win: .01, Podium: .2},
	}}
	got := f.Without([]season.DriverID{"a"})
	win, podium := 0., 0.
	for i, c := range got.Candidates {
		win, podium = win+c.Win, podium+c.Podium
		if before := f.Candidates[i+1]; c.Driver != before.Driver || c.Win < before.Win || c.Podium < before.Podium || c.Podium < c.Win || c.Podium > 1 {
			t.Errorf("got %+v, it was %+v", c, before)
		}
	}
	if math.Abs(win-1) > 1e-9 || math.Abs(podium-3) > 1e-9 || got.Podium != (season.Podium{"b", "c", "d"}) {
		t.Errorf("the chances add up to %v and %v, the podium is %v", win, podium, got.Podium)
	}
	same := f.Without([]season.DriverID{"x"})
	must.Hold(t, len(same.Candidates) == 5 && same.Candidates[0].Win == .5, "nobody is missing: got %+v", same)
}

// TestPodiumsOfAPower moves the chances of the places to less sure podiums, and keeps what they add up to.
func TestPodiumsOfAPower(t *testing.T) {
	const n, out = 20, .2
	drivers, win, rate := make([]season.DriverID, n), make([]float64, n), make([]float64, n)
	for i := range win {
		drivers[i], rate[i] = season.DriverID(strconv.Itoa(i)), math.Pow(.7, float64(i))
		win[i] = math.Round(1e6*rate[i]*.3/(1-math.Pow(.7, n))) / 1e6
	}
	win[0] += 1 - sum(win)
	sure, less := predict.WithOrders(drivers, win, rate, out, 1), predict.WithOrders(drivers, win, rate, out, .8)
	for place := range n {
		a, b := 0., 0.
		for i := range n {
			a, b = a+sure[i].Places[place], b+less[i].Places[place]
		}
		near(t, fmt.Sprint("place ", place+1), b, a, 2e-5)
	}
	for i := range n {
		near(t, fmt.Sprint("first three places of ", i), sum(less[i].Places[:3]), less[i].Podium, 4e-6)
		near(t, fmt.Sprint("not classified: ", i), less[i].Out, sure[i].Out, 2e-6)
	}
	if less[0].Podium >= sure[0].Podium || less[n-1].Podium <= sure[n-1].Podium {
		t.Errorf("got podium chances from %v to %v, without a power from %v to %v", less[0].Podium, less[n-1].Podium, sure[0].Podium, sure[n-1].Podium)
	}
}

func sum(x []float64) (total float64) {
	for _, v := range x {
		total += v
	}
	return total
}
