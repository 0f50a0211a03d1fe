package predict_test

import (
	"testing"

	"gridcast/builder/predict"
	"gridcast/builder/season"
)

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
