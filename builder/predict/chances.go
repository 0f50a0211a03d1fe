package predict

import (
	"cmp"
	"math"
	"slices"

	"gridcast/builder/season"
)

// newForecast makes a forecast of the drivers' winning probabilities, with the first three of
// pick on the podium. The chance of a podium is that of a Plackett-Luce race: every place is
// taken from the drivers left over in proportion to win.
func newForecast(drivers []season.DriverID, win []float64, pick []season.DriverID, basis Basis) Forecast {
	podium := podiumChances(win)
	f := Forecast{Candidates: make([]Candidate, len(drivers)), Basis: basis}
	for i, d := range drivers {
		f.Candidates[i] = Candidate{Driver: d, Win: win[i], Podium: podium[i]}
	}
	// Stable: drivers of equal chances keep their starting order.
	slices.SortStableFunc(f.Candidates, func(a, b Candidate) int { return cmp.Compare(b.Win, a.Win) })
	copy(f.Podium[:], pick)
	return f
}

// byChance returns the drivers by falling probability, equals in their given order.
func byChance(drivers []season.DriverID, win []float64) []season.DriverID {
	order := make([]int, len(drivers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(win[b], win[a]) })
	sorted := make([]season.DriverID, len(drivers))
	for i, j := range order {
		sorted[i] = drivers[j]
	}
	return sorted
}

// podiumChances returns every driver's probability of one of the first three places.
func podiumChances(win []float64) []float64 {
	podium := make([]float64, len(win))
	if len(win) <= 3 {
		for i := range podium {
			podium[i] = 1
		}
		return podium
	}
	for a, pa := range win {
		podium[a] += pa
		for b, pb := range win {
			left := 1 - pa
			if b == a || left <= 0 {
				continue
			}
			second := pa * pb / left
			podium[b] += second
			rest := left - pb
			if rest <= 0 {
				continue
			}
			for c, pc := range win {
				if c != a && c != b {
					podium[c] += second * pc / rest
				}
			}
		}
	}
	for i := range podium {
		podium[i] = min(podium[i], 1)
	}
	return podium
}

// softmax turns utilities into probabilities.
func softmax(u []float64) []float64 {
	p := make([]float64, len(u))
	lse := logSumExp(u)
	for i := range u {
		p[i] = math.Exp(u[i] - lse)
	}
	return p
}

// logSumExp is the logarithm of the sum of the exponentials of u.
func logSumExp(u []float64) float64 {
	top := slices.Max(u)
	sum := 0.0
	for _, x := range u {
		sum += math.Exp(x - top)
	}
	return top + math.Log(sum)
}
