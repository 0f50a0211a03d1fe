package predict

import (
	"math"
	"time"

	"gridcast/builder/season"
)

// gaps sets the features that are gaps to the best time of a session.
func (s *state) gaps(smp *sample, at starters, r *season.Round) {
	practice := s.practiceGaps(at, r)
	last, least := s.qualifyingGaps(at, r.Qualifying)
	for k := range smp.x {
		smp.x[k][PracticeGap] = -practice[k]
		smp.x[k][QualifyingGap] = -math.Sqrt(last[k])
		smp.x[k][SmallestGap] = -least[k]
	}
}

// practiceGaps returns each starter's smallest gap to the best of a practice session, %; the
// cap for those without a time, 0 for all if nobody has one.
func (s *state) practiceGaps(at starters, r *season.Round) []float64 {
	gaps := constant(len(at), s.p.Form.CapPractice)
	timed := false
	for _, laps := range r.Practice {
		var best time.Duration
		for _, l := range laps {
			best = faster(best, l.Time)
		}
		for _, l := range laps {
			if k, ok := at[l.Driver]; ok && l.Time > 0 {
				gaps[k] = min(gaps[k], percent(l.Time, best))
				timed = true
			}
		}
	}
	if !timed {
		return make([]float64, len(at))
	}
	return gaps
}

// qualifyingGaps returns each starter's gap to the best of the last segment he set a time in,
// and his smallest one, %. Those without a time count as the slowest of the others.
func (s *state) qualifyingGaps(at starters, rows []season.QualifyingRow) (last, least []float64) {
	last, least = constant(len(at), math.NaN()), constant(len(at), math.NaN())
	var best [4]time.Duration // of the three segments and of a session without
	for _, r := range rows {
		for i, t := range segments(r) {
			best[i] = faster(best[i], t)
		}
	}
	for _, r := range rows {
		k, ok := at[r.Driver]
		if !ok {
			continue
		}
		for i, t := range segments(r) {
			if t > 0 {
				last[k] = min(percent(t, best[i]), s.p.Form.CapQualifying)
				if !(least[k] < last[k]) {
					least[k] = last[k]
				}
			}
		}
	}
	fillWithLargest(last)
	fillWithLargest(least)
	return last, least
}

// fillWithLargest replaces what is missing by the largest gap there is, 0 if there is none.
func fillWithLargest(gaps []float64) {
	largest := 0.0
	for _, g := range gaps {
		if g > largest {
			largest = g
		}
	}
	for k, g := range gaps {
		if math.IsNaN(g) {
			gaps[k] = largest
		}
	}
}

// segments returns the times of a row: those of its segments, or the one of a session that
// had none.
func segments(r season.QualifyingRow) [4]time.Duration {
	if r.Segments != [3]time.Duration{} {
		return [4]time.Duration{r.Segments[0], r.Segments[1], r.Segments[2]}
	}
	return [4]time.Duration{3: r.Time}
}

func constant(n int, x float64) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = x
	}
	return s
}

// faster is the shorter of two times, where 0 is none.
func faster(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// percent is how much longer t is than best.
func percent(t, best time.Duration) float64 { return 100 * (float64(t)/float64(best) - 1) }
