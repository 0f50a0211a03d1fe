package score

import (
	"cmp"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
)

// The bootstrap: races are drawn with replacement.
const (
	resamples = 2000
	seed      = 2010
)

// Interval is a 95 % interval: of a metric by the bootstrap over races, of a share by Wilson's formula.
type Interval [2]float64

// Estimate is a figure with its interval.
type Estimate struct {
	Value    float64
	Interval Interval
}

// Metrics sums up the scores of a model. Percentages are of 100, log-loss is in nats per race.
type Metrics struct {
	WinnerHitPct Estimate
	PodiumPct    Estimate // picked drivers on the podium, any order
	LogLoss      Estimate
	Brier        Estimate
}

// NewMetrics sums up the scores, of which there is one at least.
func NewMetrics(scores []Score) Metrics {
	sorted := byConfidence(scores)
	estimates := sums(sorted, slices.Repeat([]int{1}, len(sorted)))
	var drawn [len(estimates)][]float64
	for k := range drawn {
		drawn[k] = make([]float64, 0, resamples)
	}
	for times := range Draws(len(sorted)) {
		for k, v := range sums(sorted, times) {
			drawn[k] = append(drawn[k], v)
		}
	}
	of := func(k int) Estimate { return Estimate{estimates[k], Middle(drawn[k])} }
	return Metrics{of(0), of(1), of(2), of(3)}
}

// sums returns the values of Metrics, in its order, with each score as often as times says.
func sums(sorted []Score, times []int) (m [4]float64) {
	n := 0.0
	for i := range sorted {
		s, w := &sorted[i], float64(times[i])
		n += w
		m[0] += float64(w * indicator(s.Hit))
		m[1] += w * float64(s.Podium) / 3
		m[2] += float64(w * s.LogLoss)
		m[3] += float64(w * s.Brier)
	}
	return [4]float64{m[0] * (100 / n), m[1] * (100 / n), m[2] / n, m[3] / n}
}

// Draws yields how often each of n races is in a resample; the resamples are the same each time.
func Draws(n int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		rng := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // to be repeated, not to be secret
		times := make([]int, n)
		for range resamples {
			clear(times)
			for range n {
				times[rng.IntN(n)]++
			}
			if !yield(times) {
				return
			}
		}
	}
}

// Middle returns the middle 95 % of the values, which it sorts.
func Middle(values []float64) Interval {
	slices.Sort(values)
	n := len(values)
	return Interval{values[n*25/1000], values[min(n-1, n*975/1000)]}
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// bins is the number of bins of Reliability.
const bins = 10

// Bin compares forecast and outcome for races of similar confidence.
type Bin struct {
	Races int     `json:"races"`
	Said  float64 `json:"said"` // mean probability given to the picked winner
	Won   float64 `json:"won"`  // share of them that won
	// Interval is the 95 % score interval of Won (E. B. Wilson, JASA 22, 1927).
	Interval Interval `json:"interval"`
}

// NewBin returns the bin of n chances that add up to said, of which won came true.
func NewBin(n int, said, won float64) Bin {
	const z = 1.959964
	races := float64(n)
	share := won / races
	mid := (share + z*z/(2*races)) / (1 + z*z/races)
	half := float64(z / (1 + z*z/races) * math.Sqrt(share*(1-share)/races+z*z/(4*races*races)))
	return Bin{n, said / races, share, Interval{max(0, mid-half), min(1, mid+half)}}
}

// Reliability sorts the races by the picked winner's chance into bins of equal count.
func Reliability(scores []Score) (table []Bin) {
	sorted := byConfidence(scores)
	races, said, won, edge := 0, 0.0, 0.0, 1
	for i, s := range sorted {
		races, said, won = races+1, said+s.Confidence, won+indicator(s.Hit)
		if i+1 < edge*len(sorted)/bins {
			continue
		}
		table = append(table, NewBin(races, said, won))
		races, said, won = 0, 0, 0
		for edge*len(sorted)/bins <= i+1 && edge <= bins {
			edge++
		}
	}
	return table
}

// byConfidence returns the scores by the chance of the picked winner, ascending. Equal ones keep their order.
func byConfidence(scores []Score) []Score {
	return slices.SortedStableFunc(slices.Values(scores), func(a, b Score) int { return cmp.Compare(a.Confidence, b.Confidence) })
}
