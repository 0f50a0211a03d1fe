package predict

import (
	"cmp"
	"math"
	"slices"

	"gridcast/builder/predict/portable"
	"gridcast/builder/season"
)

// one is the unit of every published chance: a millionth.
const one = 1_000_000

// newForecast makes a forecast of candidates in starting order. The pick is made of their chances: the winner has the
// largest chance of a win; second and third have the largest chances of a podium among the others.
func newForecast(candidates []Candidate, basis Basis) Forecast {
	f := Forecast{Candidates: candidates, Basis: basis}
	// Stable: drivers of equal chances keep their starting order.
	slices.SortStableFunc(f.Candidates, func(a, b Candidate) int { return cmp.Compare(b.Win, a.Win) })
	picked := slices.Clone(f.Candidates)
	if len(picked) > 0 {
		slices.SortStableFunc(picked[1:], func(a, b Candidate) int { return cmp.Compare(b.Podium, a.Podium) })
	}
	for i, c := range picked[:min(len(f.Podium), len(picked))] {
		f.Podium[i] = c.Driver
	}
	return f
}

// Without returns the forecast for a race in which some drivers do not start: the chances of a win grow in proportion, the
// odds of a podium by one factor. It is f if all start.
func (f Forecast) Without(out []season.DriverID) Forecast {
	var win, podium []float64
	var drivers []season.DriverID
	for _, c := range f.Candidates {
		if !slices.Contains(out, c.Driver) {
			drivers, win, podium = append(drivers, c.Driver), append(win, c.Win), append(podium, c.Podium)
		}
	}
	total := sum(win)
	if len(drivers) == len(f.Candidates) || len(drivers) <= len(f.Podium) || total == 0 {
		return f
	}
	for i := range win {
		win[i] /= total
	}
	ratios := make([]float64, len(podium))
	for i, p := range podium {
		ratios[i] = odds(p)
	}
	win = millionths(win, one, nil)
	podium = millionths(scaleOdds(ratios, float64(len(f.Podium)), win), len(f.Podium)*one, win)
	return newForecast(paired(drivers, win, podium), f.Basis)
}

// paired returns the candidates with these chances of a win and of a podium, in millionths.
func paired(drivers []season.DriverID, win, podium []float64) []Candidate {
	candidates := make([]Candidate, len(win))
	for i, p := range podium {
		candidates[i] = Candidate{Driver: drivers[i], Win: win[i], Podium: p}
	}
	return candidates
}

// withPodium returns the candidates with the chances of a podium: see podiumChances.
func withPodium(drivers []season.DriverID, win, rest []float64) []Candidate {
	return paired(drivers, win, podiumChances(win, rest))
}

// podiumChances returns every driver's probability of one of the first three places, in millionths.
// The winner is drawn by win, the second and third in proportion to rest among the remaining drivers.
// No chance is below the driver's chance in win, which must be in millionths.
func podiumChances(win, rest []float64) []float64 {
	n := len(win)
	podium := make([]float64, n)
	if n <= 3 {
		for i := range podium {
			podium[i] = 1
		}
		return podium
	}
	rest = slices.Clone(rest)
	for i := range rest {
		rest[i] = max(rest[i], 1e-9) // the third place needs a driver even if all chances vanish
	}
	total := sum(rest)
	for a, pa := range win {
		podium[a] += pa
		left := total - rest[a]
		if pa == 0 {
			continue
		}
		// If b is second, all others share the third place. The sum over b of P(b second) / (left - b)
		// gives every driver's chance of third place in one pass.
		share := 0.0
		for b, g := range rest {
			if b != a {
				share += g / (left - g)
			}
		}
		for c, g := range rest {
			if c != a {
				podium[c] += float64(pa * g / left * (1 + share - g/(left-g)))
			}
		}
	}
	return millionths(podium, 3*one, win)
}

// millionths rounds probabilities to whole millionths that add up to total of them. Each is at least its
// value in low and at most 1. Rounding hides the last bits of a logarithm, which processors may compute
// differently.
func millionths(p []float64, total int, low []float64) []float64 {
	whole := make([]int, len(p))
	order := make([]int, len(p))
	rest := make([]float64, len(p))
	left := total
	for i, x := range p {
		least := 0
		if low != nil {
			least = int(math.Round(low[i] * one))
		}
		whole[i] = min(max(int(x*one), least), one)
		rest[i] = float64(x*one) - float64(whole[i])
		order[i] = i
		left -= whole[i]
	}
	// Rounding down leaves millionths over, which go to the drivers with the largest loss. Raising a
	// driver to low overspends, which costs the drivers with the smallest loss.
	for left != 0 {
		step := 1
		if left < 0 {
			step = -1
		}
		slices.SortStableFunc(order, func(a, b int) int { return step * cmp.Compare(rest[b], rest[a]) })
		before := left
		for _, i := range order {
			next := whole[i] + step
			if left == 0 || next > one || next < 0 || low != nil && next < int(math.Round(low[i]*one)) {
				continue
			}
			whole[i], rest[i], left = next, rest[i]-float64(step), left-step
		}
		if left == before {
			panic("BUG: chances that cannot add up")
		}
	}
	rounded := make([]float64, len(p))
	for i, w := range whole {
		rounded[i] = float64(w) / one
	}
	return rounded
}

// softmax turns utilities into probabilities.
func softmax(u []float64) []float64 {
	p := normaliseLogs(slices.Clone(u))
	for i := range p {
		p[i] = portable.Exp(p[i])
	}
	return p
}

// normaliseLogs shifts logarithms of chances, so that the chances add up to 1.
func normaliseLogs(u []float64) []float64 {
	lse := logSumExp(u)
	for i := range u {
		u[i] -= lse
	}
	return u
}

// logSumExp is the logarithm of the sum of the exponentials of u.
func logSumExp(u []float64) float64 {
	top := slices.Max(u)
	sum := 0.0
	for _, x := range u {
		sum += portable.Exp(x - top)
	}
	return top + portable.Log(sum)
}

func sum(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s
}
