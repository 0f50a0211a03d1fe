package predict

import (
	"math"
	"slices"
	"time"

	"gridcast/builder/predict/portable"
	"gridcast/builder/season"
)

// The functions of this file turn a session into the gap of every starter to the best, in percent. A
// missing gap is NaN. An offset common to all gaps has no meaning, see weekend.update.

// starters holds the indices of the starters.
type starters map[season.DriverID]int

// percentOver returns 100 ln(t/best) for each starter with a time, and the number of times.
func (s starters) percentOver(times map[season.DriverID]time.Duration) ([]float64, int) {
	gaps := s.none()
	var best time.Duration
	n := 0
	for d, t := range times {
		if _, ok := s[d]; ok && t > 0 {
			n++
			if best == 0 || t < best {
				best = t
			}
		}
	}
	for d, k := range s {
		if t := times[d]; t > 0 {
			gaps[k] = 100 * portable.Log(float64(t)/float64(best))
		}
	}
	return gaps, n
}

func (s starters) none() []float64 { return slices.Repeat([]float64{math.NaN()}, len(s)) }

func (s starters) practice(laps []season.TimedLap) ([]float64, int) {
	times := make(map[season.DriverID]time.Duration, len(laps))
	for _, l := range laps {
		times[l.Driver] = l.Time
	}
	return s.percentOver(times)
}

// fastestLaps returns the gaps of the fastest laps. It skips drivers with less than 40 % of the
// winner's laps.
func (s starters) fastestLaps(laps []season.FastestLap, results []season.Result) ([]float64, int) {
	driven := make(map[season.DriverID]int, len(results))
	for _, r := range results {
		driven[r.Driver] = r.Laps
	}
	times := make(map[season.DriverID]time.Duration, len(laps))
	for _, l := range laps {
		if 10*driven[l.Driver] >= 4*winnerLaps(results) {
			times[l.Driver] = l.Time
		}
	}
	return s.percentOver(times)
}

// qualifying returns the gaps of a qualifying session. With segments, it first removes the track's
// change since the first segment: the median gain of the drivers in both. A driver's gap is the mean
// of his last segment's and of his best.
func (s starters) qualifying(rows []season.QualifyingRow) ([]float64, int) {
	if !slices.ContainsFunc(rows, func(r season.QualifyingRow) bool { return r.Segments != [3]time.Duration{} }) {
		times := make(map[season.DriverID]time.Duration, len(rows))
		for _, r := range rows {
			times[r.Driver] = r.Time
		}
		return s.percentOver(times)
	}
	offsets := segmentOffsets(rows)
	gaps := s.none()
	n, best := 0, math.Inf(1)
	for _, r := range rows {
		k, ok := s[r.Driver]
		last, least := math.NaN(), math.Inf(1)
		for i, t := range r.Segments {
			if t > 0 {
				last = portable.Log(float64(t)) - offsets[i]
				least = min(least, last)
			}
		}
		if !ok || math.IsNaN(last) {
			continue
		}
		gaps[k] = (last + least) / 2
		best = min(best, gaps[k])
		n++
	}
	for k := range gaps {
		gaps[k] = 100 * (gaps[k] - best)
	}
	return gaps, n
}

// segmentOffsets returns for each segment the logarithm of the track's time relative to the first. A
// segment with fewer than four drivers of the previous one adds nothing.
func segmentOffsets(rows []season.QualifyingRow) [3]float64 {
	var off [3]float64
	for i := 1; i < len(off); i++ {
		var gain []float64
		for _, r := range rows {
			if a, b := r.Segments[i-1], r.Segments[i]; a > 0 && b > 0 {
				gain = append(gain, portable.Log(float64(b)/float64(a)))
			}
		}
		off[i] = off[i-1]
		if len(gain) >= 4 {
			off[i] += median(gain)
		}
	}
	return off
}

// race returns the gaps of a race to its winner, scaled to a common spread and without the advantage of
// the grid slot. The gap of a lapped driver is that of the missing laps.
func (s starters) race(results []season.Result, slots []float64, p PaceParams) ([]float64, int) {
	gaps, n := s.finish(results, true)
	scale := spreadScale(gaps, p.Spread)
	for k := range gaps {
		gaps[k] = float64(gaps[k]*scale) - float64(p.GridAdvantage*portable.Log(slots[k]))
	}
	return gaps, n
}

// finish returns the gaps to the winner of the drivers with a time. If lapped is true, it includes
// drivers with at least three quarters of the winner's laps.
func (s starters) finish(results []season.Result, lapped bool) ([]float64, int) {
	gaps := s.none()
	laps := winnerLaps(results)
	var won time.Duration
	for _, r := range results {
		if r.Position == 1 {
			won = r.Time
		}
	}
	n := 0
	for _, r := range results {
		k, ok := s[r.Driver]
		if !ok || r.Position == 0 {
			continue
		}
		switch {
		case r.Laps == laps && r.Time > 0 && won > 0:
			gaps[k] = 100 * (float64(r.Time)/float64(won) - 1)
			n++
		case lapped && r.Laps < laps && 4*r.Laps >= 3*laps:
			gaps[k] = max(100*(float64(laps-r.Laps)+.5)/float64(laps), 1)
			n++
		}
	}
	return gaps, n
}

func winnerLaps(results []season.Result) int {
	for _, r := range results {
		if r.Position == 1 {
			return r.Laps
		}
	}
	return 0
}

// spreadScale returns the factor that brings a race to a common spread: a median gap of 0.75 % of the
// second to the ninth. With fewer than four of these gaps the median is taken to be 0.6 %.
func spreadScale(gaps []float64, power float64) float64 {
	var sorted []float64
	for _, g := range gaps {
		if !math.IsNaN(g) {
			sorted = append(sorted, g)
		}
	}
	slices.Sort(sorted)
	mid := .6
	if len(sorted) > 4 {
		mid = median(sorted[1:min(9, len(sorted))])
	}
	return portable.Pow(min(max(.75/max(mid, .05), .4), 3), power)
}
