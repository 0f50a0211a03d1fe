package cadence

import (
	"cmp"
	"time"
)

// The intervals between polls.
const (
	WeekInterval     = time.Hour
	WeekendInterval  = 5 * time.Minute
	AwaitingInterval = time.Minute
)

// stretch is a time in which the scheduler polls the sources at an interval: at its whole multiples t with
// from <= t < until.
type stretch struct {
	from, until time.Time
	every       time.Duration
	reason      Reason
	round       int64
}

// stretches returns the hourly polls of the week, in and out of season, and the stretches around each round.
func stretches(cal Calendar) []stretch {
	all := make([]stretch, 1, 1+3*len(cal.Rounds))
	all[0] = stretch{until: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), every: WeekInterval, reason: PollWeek}
	for _, r := range cal.Rounds {
		until := r.WeekendUntil.UTC()
		all = append(all, stretch{r.WeekendFrom.UTC(), until, WeekendInterval, PollWeekend, r.Key})
		if !r.Frozen && !r.GridKnown.IsZero() {
			all = append(all, stretch{r.GridKnown.UTC(), r.Start.UTC(), AwaitingInterval, PollAwaiting, r.Key})
		}
		if !r.Verified {
			all = append(all, stretch{r.End.UTC(), until, AwaitingInterval, PollAwaiting, r.Key})
		}
	}
	return all
}

// next returns the first poll of the stretch after now, if there is one.
func (s stretch) next(now time.Time) (time.Time, bool) {
	t := now.Truncate(s.every).Add(s.every)
	if t.Before(s.from) {
		t = s.from.Truncate(s.every)
		if t.Before(s.from) {
			t = t.Add(s.every)
		}
	}
	return t, t.Before(s.until)
}

// last returns the latest poll of the stretch at or before now, if there is one.
func (s stretch) last(now time.Time) (time.Time, bool) {
	t := now.Truncate(s.every)
	if !t.Before(s.until) {
		t = s.until.Add(-1).Truncate(s.every)
	}
	return t, !t.Before(s.from)
}

// nextPoll returns the first poll after now.
func nextPoll(cal Calendar, now time.Time) Due {
	return nearest(cal, now, stretch.next, time.Time.Compare)
}

// lastPoll returns the latest poll at or before now.
func lastPoll(cal Calendar, now time.Time) Due {
	return nearest(cal, now, stretch.last, func(a, b time.Time) int { return b.Compare(a) })
}

// nearest returns the first in order of the polls that find has for each stretch. If stretches coincide, the fastest
// gives the reason.
func nearest(cal Calendar, now time.Time, find func(stretch, time.Time) (time.Time, bool), order func(a, b time.Time) int) (first Due) {
	for _, s := range stretches(cal) {
		t, ok := find(s, now.UTC())
		if ok && (first.Every == 0 || cmp.Or(order(t, first.At), cmp.Compare(s.every, first.Every)) < 0) {
			first = Due{At: t, Work: Poll, Reason: s.reason, Round: s.round, Every: s.every}
		}
	}
	return first
}
