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

// stretches returns the stretches around each round. The hourly polls of the week go on beside them.
func stretches(cal Calendar) []stretch {
	all := make([]stretch, 0, 3*len(cal.Rounds))
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

func (s stretch) due(at time.Time) Due {
	return Due{At: at, Work: Poll, Reason: s.reason, Round: s.round, Every: s.every}
}

// week is the hourly poll, in and out of season.
var week = stretch{every: WeekInterval, reason: PollWeek}

// nextPoll returns the first poll after now. If stretches coincide, the fastest gives the reason.
func nextPoll(cal Calendar, now time.Time) Due {
	now = now.UTC()
	first, every := week.due(now.Truncate(WeekInterval).Add(WeekInterval)), WeekInterval
	for _, s := range stretches(cal) {
		if t, ok := s.next(now); ok && cmp.Or(t.Compare(first.At), cmp.Compare(s.every, every)) < 0 {
			first, every = s.due(t), s.every
		}
	}
	return first
}

// lastPoll returns the latest poll at or before now.
func lastPoll(cal Calendar, now time.Time) Due {
	now = now.UTC()
	latest, every := week.due(now.Truncate(WeekInterval)), WeekInterval
	for _, s := range stretches(cal) {
		if t, ok := s.last(now); ok && cmp.Or(latest.At.Compare(t), cmp.Compare(s.every, every)) < 0 {
			latest, every = s.due(t), s.every
		}
	}
	return latest
}
