package usage

import (
	"context"
	"slices"
	"time"

	"gridcast/edge/keys"
	"gridcast/snapshots/blob"
)

// Report is the usage of some days.
type Report struct {
	Until time.Time                      // requests up to here are counted, real time; zero: none was ever
	Days  map[Day]map[string]keys.Counts // by the id of the key
	Gaps  []Gap                          // from the earliest to the latest
}

// Load returns the stored usage of all days from one on.
func Load(ctx context.Context, store blob.Store, from Day) (Report, error) {
	return load(ctx, store, from, nil)
}

// load is Load after pending readings.
func load(ctx context.Context, store blob.Store, from Day, pending []reading) (Report, error) {
	r := Report{Days: map[Day]map[string]keys.Counts{}}
	numbers, err := list(ctx, store)
	if err != nil {
		return r, err
	}
	if len(numbers) == 0 {
		numbers = []int64{1}
	}
	for i, number := range slices.Backward(numbers) {
		l, _, err := document(store, number).Load(ctx)
		if err != nil {
			return r, err
		}
		if i == len(numbers)-1 {
			for _, p := range pending {
				l.take(p)
			}
			r.Until, r.Gaps = l.Written, l.open(l.Written)
		}
		for _, g := range l.Gaps {
			if DayOf(g.To) >= from && (i == len(numbers)-1 || !l.carries(g)) {
				r.Gaps = append(r.Gaps, g)
			}
		}
		for day, counts := range l.Days {
			if day < from {
				continue
			}
			if r.Days[day] == nil {
				r.Days[day] = map[string]keys.Counts{}
			}
			for id, n := range counts {
				r.Days[day][id] = r.Days[day][id].Plus(n)
			}
		}
		if DayOf(l.Written) < from {
			break
		}
	}
	slices.SortStableFunc(r.Gaps, func(a, b Gap) int { return a.From.Compare(b.From) })
	return r, nil
}

// Sum is the usage of a key over some days.
type Sum struct {
	keys.Counts
	LimitedDays int `json:"limited_days"` // with a 429
}

// Sums adds up the days from one to another, both included, by the id of the key.
func (r *Report) Sums(from, to Day) map[string]Sum {
	sums := map[string]Sum{}
	for day, counts := range r.Days {
		if day < from || day > to {
			continue
		}
		for id, n := range counts {
			s := sums[id]
			s.Counts = s.Plus(n)
			if n.Limited > 0 {
				s.LimitedDays++
			}
			sums[id] = s
		}
	}
	return sums
}
