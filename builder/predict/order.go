package predict

import (
	"math"

	"gridcast/builder/predict/portable"
	"gridcast/builder/season"
)

// The chance of not being classified is the share of the starts of a season and of the two before. Some
// starts count beforehand, of which a fifth ended early.
const (
	retirementSeasons     = 2 // before the season itself
	priorOut, priorStarts = 20, 100
	mostRetirements       = .6
)

// retirements returns the chance that a starter of the year's next race is not classified.
func (m *memory) retirements(year int) float64 {
	out, starts := 0, 0
	for _, s := range m.steps {
		if s.year >= year-retirementSeasons {
			out, starts = out+s.out, starts+s.starts
		}
	}
	return min(float64(out+priorOut)/float64(starts+priorStarts), mostRetirements)
}

// The arrival rate of a car behind the winner mixes the strength for all places, the mean of the logarithms
// of R2 and of the fits without ratings, with the fits of the second and third place alone. Powers
// between .85 and 1.15 and shares between .35 and .7 do equally well.
const (
	ratePower   = 1.05
	behindShare = .35
)

// behindWeights are the stage weights of the fits of the second and third place.
var behindWeights = []float64{0, 1, 1}

// A car that finishes is slow with chance slowShare, after a puncture, a broken wing or a penalty: it arrives at slowRate
// of its rate. The logarithmic score of all places of 2010 to 2024 gains 2.16 nats a race [1.76, 2.58] over a model without
// slow cars; shares and rates chosen on the seasons before each gain 2.26. More slow cars on street circuits, and fewer
// retirements of the cars in front, gain nothing.
const (
	slowShare = .08
	slowRate  = .03
)

// The integral over the arrival times takes arrivals of them. They grow geometrically from firstArrival,
// when the field has sent no car, to thirty times the mean time of the slowest car that is slow.
const (
	arrivals                = 80
	firstArrival, leastRate = 1e-7, 1e-6
)

// places returns every driver's chance of every place. The winner is drawn by win. Every other car is out
// with chance out; otherwise it arrives at an exponential time of its rate, or of slowRate of it. Two cars must arrive
// behind the winner, because a podium has three.
func places(win, rate []float64, out float64) [][]float64 {
	n := len(win)
	if n <= 3 {
		out = 0
	}
	rate = normalised(rate)
	chance := make([][]float64, n)
	for i := range chance {
		rate[i] = max(rate[i], leastRate)
		chance[i] = make([]float64, n)
		chance[i][0] = win[i]
	}
	arrived := make([]float64, n)
	// The chances of the numbers of arrived cars: with the winner still to be drawn, and with him drawn.
	open, drawn := make([]float64, n), make([]float64, n)
	density := make([]float64, n)
	step := portable.Log(30/slowRate/leastRate/firstArrival) / (arrivals - 1)
	for k := range arrivals {
		t := firstArrival * portable.Exp(float64(float64(k)*step))
		for i, r := range rate {
			normal, slow := portable.Exp(-float64(r*t)), portable.Exp(-float64(slowRate*r*t)) // not arrived yet
			arrived[i] = (1 - out) * (1 - float64((1-slowShare)*normal) - float64(slowShare*slow))
			density[i] = (1 - out) * r * t * (float64((1-slowShare)*normal) + float64(slowShare*slowRate*slow)) * step
		}
		for j, arrives := range density {
			if arrives < 1e-12 {
				continue
			}
			clear(open)
			clear(drawn)
			open[0] = 1
			most := 0
			for i, f := range arrived {
				if i == j {
					continue
				}
				most++
				for c := min(most, n-2); c > 0; c-- {
					drawn[c] = float64(drawn[c]*(1-f)) + float64(drawn[c-1]*f) + float64(open[c]*win[i])
					open[c] = float64(open[c]*(1-f)) + float64(open[c-1]*f)
				}
				drawn[0] = float64(drawn[0]*(1-f)) + float64(open[0]*win[i])
				open[0] *= 1 - f
			}
			for c := range n - 1 {
				chance[j][c+1] += float64(arrives * drawn[c])
			}
		}
	}
	if n <= 3 {
		return chance
	}
	nobody := 1.0 // arrives, of all but the winner and one given car
	for range n - 2 {
		nobody *= out
	}
	alone := (1 - out) * nobody // one given car arrives behind the winner, and no other
	enough := 1 - float64(out*nobody) - float64(float64(n-1)*alone)
	for j := range chance {
		chance[j][1] -= float64((1 - win[j]) * alone)
		for c := 1; c < n; c++ {
			chance[j][c] /= enough
		}
	}
	return chance
}

// withOrders returns the candidates with the chances of a podium, of every place and of not being
// classified. The chances in win must be in millionths. power is that of the odds of a podium: below 1 they are less sure.
func withOrders(drivers []season.DriverID, win, rate []float64, out, power float64) []Candidate {
	candidates := make([]Candidate, len(win))
	chance := places(win, rate, out)
	podium := make([]float64, len(win))
	for i, row := range chance {
		podium[i] = sum(row[:min(3, len(row))])
	}
	if power != 1 && len(win) > 3 {
		podium = withPower(podium, win, power)
		refit(chance, podium)
	}
	for i, row := range chance {
		rest := millionths(append(row[1:], max(0, 1-sum(row))), one-int(math.Round(win[i]*one)), nil)
		candidates[i] = Candidate{
			Driver: drivers[i], Win: win[i], Places: append([]float64{win[i]}, rest[:len(rest)-1]...), Out: rest[len(rest)-1],
		}
	}
	for i, p := range millionths(podium, min(3, len(win))*one, win) {
		candidates[i].Podium = p
	}
	return candidates
}

// withPower raises the odds of a podium to a power and multiplies them by the factor that keeps the sum. No chance falls
// below that of a win.
func withPower(podium, win []float64, power float64) []float64 {
	raised := make([]float64, len(podium))
	for i, p := range podium {
		raised[i] = portable.Pow(odds(p), power)
	}
	return scaleOdds(raised, sum(podium), win)
}

// odds returns the odds of a chance. They are finite.
func odds(p float64) float64 { return p / max(1-p, leastRate) }

// scaleOdds returns chances with the odds times one factor, at which the chances add up to total. No chance is below low.
func scaleOdds(odds []float64, total float64, low []float64) []float64 {
	chances := make([]float64, len(odds))
	few, many := 1e-9, 1e9
	for range 100 {
		factor := math.Sqrt(few * many)
		for i, o := range odds {
			chances[i] = max(float64(factor*o)/(1+float64(factor*o)), low[i])
		}
		if sum(chances) < total {
			few = factor
		} else {
			many = factor
		}
	}
	return chances
}

// refits is the number of rounds of refit, after which the sums differ by less than a millionth.
const refits = 40

// refit moves the chances of the places of each driver, so that those of the second and third add up to his podium
// chance less that of the win. Each place, and the chance of not being classified, keep their sums (iterative
// proportional fitting: W. E. Deming, F. F. Stephan, Annals of Mathematical Statistics 11, 1940).
func refit(chance [][]float64, podium []float64) {
	n := len(chance)
	columns, behind := make([]float64, n), make([]float64, n) // behind: the chances of the places behind the podium
	for i, row := range chance {
		for c, p := range row {
			columns[c] += p
		}
		behind[i] = sum(row) - podium[i]
	}
	for range refits {
		for i, row := range chance {
			scale(row[1:3], podium[i]-row[0])
			scale(row[3:], behind[i])
		}
		for c := 1; c < n; c++ {
			total := 0.0
			for i := range chance {
				total += chance[i][c]
			}
			for i := range chance {
				if total > 0 {
					chance[i][c] *= columns[c] / total
				}
			}
		}
	}
}

// scale multiplies the values so that they add up to total.
func scale(x []float64, total float64) {
	if by := sum(x); by > 0 {
		for i := range x {
			x[i] *= max(0, total) / by
		}
	}
}
