package predict_test

import (
	"math"
	"testing"

	"gridcast/builder/predict"
	"gridcast/builder/season"
)

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
	if same := f.Without([]season.DriverID{"x"}); len(same.Candidates) != 5 || same.Candidates[0].Win != .5 {
		t.Errorf("nobody is missing: got %+v", same)
	}
}
