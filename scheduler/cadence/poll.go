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

// beat is a stretch of time in which the sources are polled at an interval: at its whole
// multiples t with from <= t < until.
type beat struct {
	from, until time.Time
	every       time.Duration
	reason      Reason
	round       int64
}

// beats are the stretches around each round; between and under them the week's beat goes on.
func beats(cal Calendar) []beat {
	all := make([]beat, 0, 3*len(cal.Rounds))
	for _, r := range cal.Rounds {
		until := r.WeekendUntil.UTC()
		all = append(all, beat{r.WeekendFrom.UTC(), until, WeekendInterval, PollWeekend, r.Key})
		if !r.Frozen && !r.GridKnown.IsZero() {
			all = append(all, beat{r.GridKnown.UTC(), r.Start.UTC(), AwaitingInterval, PollAwaiting, r.Key})
		}
		if !r.Verified {
			all = append(all, beat{r.End.UTC(), until, AwaitingInterval, PollAwaiting, r.Key})
		}
	}
	return all
}

// next is the first poll of the beat after now, if there is one.
func (b beat) next(now time.Time) (time.Time, bool) {
	t := now.Truncate(b.every).Add(b.every)
	if t.Before(b.from) {
		t = b.from.Truncate(b.every)
		if t.Before(b.from) {
			t = t.Add(b.every)
		}
	}
	return t, t.Before(b.until)
}

// last is the latest poll of the beat at or before now, if there is one.
func (b beat) last(now time.Time) (time.Time, bool) {
	t := now.Truncate(b.every)
	if !t.Before(b.until) {
		t = b.until.Add(-1).Truncate(b.every)
	}
	return t, !t.Before(b.from)
}

func (b beat) due(at time.Time) Due {
	return Due{At: at, Work: Poll, Reason: b.reason, Round: b.round}
}

// week is the beat of every week, in and out of season.
func week(at time.Time) Due {
	return Due{At: at, Work: Poll, Reason: PollWeek}
}

// nextPoll is the first poll after now. Where beats coincide, the fastest gives the reason.
func nextPoll(cal Calendar, now time.Time) Due {
	now = now.UTC()
	first, every := week(now.Truncate(WeekInterval).Add(WeekInterval)), WeekInterval
	for _, b := range beats(cal) {
		if t, ok := b.next(now); ok && cmp.Or(t.Compare(first.At), cmp.Compare(b.every, every)) < 0 {
			first, every = b.due(t), b.every
		}
	}
	return first
}

// lastPoll is the latest poll at or before now.
func lastPoll(cal Calendar, now time.Time) Due {
	now = now.UTC()
	latest, every := week(now.Truncate(WeekInterval)), WeekInterval
	for _, b := range beats(cal) {
		if t, ok := b.last(now); ok && cmp.Or(latest.At.Compare(t), cmp.Compare(b.every, every)) < 0 {
			latest, every = b.due(t), b.every
		}
	}
	return latest
}
