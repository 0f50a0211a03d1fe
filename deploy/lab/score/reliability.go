package score

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gridcast/builder/predict/score"
)

// bins is the number of bins, of equal count, for calibration.
const bins = 10

// Reliability sorts the races by the picked winner's chance into bins of equal count.
func Reliability(scores []Score) []Bin {
	plain := make([]score.Score, len(scores))
	for i, s := range scores {
		plain[i] = s.Score
	}
	return score.Reliability(plain)
}

// PodiumReliability sorts all drivers by their podium chance into bins a tenth wide, around 0, .1 and so on to 1. Races
// counts drivers, Won the podiums.
func PodiumReliability(scores []Score) []Bin {
	table := make([]Bin, bins+1)
	for _, s := range scores {
		for _, o := range s.Podiums {
			b := &table[int(float64(o.Said*bins)+.5)]
			b.Races++
			b.Said += o.Said
			b.Won += indicator(o.Came)
		}
	}
	table = slices.DeleteFunc(table, func(b Bin) bool { return b.Races == 0 })
	for i, b := range table {
		table[i] = score.NewBin(b.Races, b.Said, b.Won)
	}
	return table
}

func byConfidence(scores []Score) []Score {
	sorted := slices.Clone(scores)
	slices.SortStableFunc(sorted, func(a, b Score) int { return cmp.Compare(a.Confidence, b.Confidence) })
	return sorted
}

// once are the times of n scores that count once.
func once(n int) []int { return slices.Repeat([]int{1}, n) }

// tally appends the bins of the sorted scores, each as many times as times holds.
func tally(table []Bin, sorted []Score, times []int) []Bin {
	n := 0
	for _, t := range times {
		n += t
	}
	var b Bin
	done, edge := 0, 1
	for i, s := range sorted {
		for range times[i] {
			b.Races++
			b.Said += s.Confidence
			b.Won += indicator(s.Hit)
			done++
			if done < edge*n/bins {
				continue
			}
			table = append(table, score.NewBin(b.Races, b.Said, b.Won))
			b = Bin{}
			for edge*n/bins <= done && edge <= bins {
				edge++
			}
		}
	}
	return table
}

// calibrationError is the mean distance between forecast and outcome.
func calibrationError(table []Bin) float64 {
	sum, n := 0.0, 0.0
	for _, b := range table {
		sum += float64(float64(b.Races) * math.Abs(b.Said-b.Won))
		n += float64(b.Races)
	}
	return sum / max(n, 1)
}

// Expected is the calibration error that pure chance leaves.
type Expected struct {
	Mean     float64  `json:"mean"`
	Interval Interval `json:"interval"` // the middle 95 %
}

// CalibratedECE returns the calibration error, %, of a perfectly calibrated forecaster with the same
// chances. With few races it is far from 0.
func CalibratedECE(scores []Score) Expected {
	if len(scores) == 0 {
		return Expected{}
	}
	rng := rand.New(rand.NewPCG(seed, uint64(len(scores))))
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[a].Confidence, scores[b].Confidence) })
	sorted, drawn, times := byConfidence(scores), make([]float64, len(scores)), once(len(scores))
	var table []Bin
	var errs []float64
	var e Expected
	for range resamples {
		for i := range drawn {
			drawn[i] = rng.Float64()
		}
		for i, at := range order {
			sorted[i].Hit = drawn[at] < sorted[i].Confidence
		}
		table = tally(table[:0], sorted, times)
		errs = append(errs, 100*calibrationError(table))
		e.Mean += errs[len(errs)-1] / resamples
	}
	e.Interval = score.Middle(errs)
	return e
}
