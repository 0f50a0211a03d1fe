package scheduler

import (
	"slices"
	"time"

	"gridcast/scheduler/cadence"
)

// agenda is what a job has still to make good for. It knows no clock and starts nothing; the
// lock of the job it belongs to guards it.
type agenda struct {
	job     Job
	seen    time.Time     // what fell due up to here has been taken
	late    []cadence.Due // what a change of the calendar put before seen
	asked   []request     // triggers not yet taken
	owed    []cadence.Due // what the last attempt failed to make good
	repeat  []string      // the triggers it failed to serve
	attempt int           // of the run that is due or under way, less one
	retryAt time.Time     // not before this, unless something new falls due; zero: no error
}

// request is a trigger and whoever waits for its outcome.
type request struct {
	reason string
	done   chan<- error // buffered, written once
}

// overtake notes what a change of the calendar put into the past.
func (a *agenda) overtake(all []cadence.Due) {
	a.late = append(a.late, a.job.own(all)...)
}

// ready reports whether a run is needed at now.
func (a *agenda) ready(cal cadence.Calendar, now time.Time) bool {
	if len(a.asked) > 0 || len(a.fresh(cal, now)) > 0 {
		return true
	}
	return !a.retryAt.IsZero() && !now.Before(a.retryAt)
}

// fresh is what fell due since the last attempt and can still be done.
func (a *agenda) fresh(cal cadence.Calendar, now time.Time) []cadence.Due {
	fresh := append(a.job.missed(cal, a.seen, now), a.late...)
	return slices.DeleteFunc(fresh, func(d cadence.Due) bool { return d.TooLate(now) })
}

// next is the first instant after now at which a run is needed as far as can be told, and why;
// a retry has the reason of what is owed.
func (a *agenda) next(cal cadence.Calendar, now time.Time) (cadence.Due, bool) {
	due, ok := a.job.next(cal, now)
	if a.retryAt.After(now) && (!ok || a.retryAt.Before(due.At)) {
		return cadence.Due{At: a.retryAt.UTC(), Work: a.job.Work, Reason: Retry}, true
	}
	return due, ok
}

// take empties the agenda into a trigger for a run that begins now. What has become too late
// is given back instead. Without anything left to do there is no trigger.
func (a *agenda) take(cal cadence.Calendar, now time.Time) (t Trigger, asked []request, lost []cadence.Due, ok bool) {
	if !a.ready(cal, now) {
		return Trigger{}, nil, nil, false
	}
	for _, d := range a.owed {
		if d.TooLate(now) {
			lost = append(lost, d)
		}
	}
	due := append(a.fresh(cal, now), a.owed...)
	due = slices.DeleteFunc(due, func(d cadence.Due) bool { return d.TooLate(now) })
	reasons := a.repeat
	for _, r := range a.asked {
		if !slices.Contains(reasons, r.reason) {
			reasons = append(reasons, r.reason)
		}
	}
	asked = a.asked

	if now.After(a.seen) {
		a.seen = now
	}
	a.late, a.asked, a.owed, a.repeat, a.retryAt = nil, nil, nil, nil, time.Time{}
	if len(due) == 0 && len(reasons) == 0 {
		a.attempt = 0
		return Trigger{}, nil, lost, false
	}
	a.attempt++
	return Trigger{At: now.UTC(), Due: latest(due), Requested: reasons, Attempt: a.attempt}, asked, lost, true
}

// settle notes the outcome of a run: after an error all it was to do is owed, and tried again
// after a wait.
func (a *agenda) settle(t Trigger, err error, now time.Time, cfg Config) {
	if err == nil {
		a.attempt = 0
		return
	}
	a.owed, a.repeat = t.Due, t.Requested
	a.retryAt = now.Add(wait(t, now, cfg))
}

// wait is how long to wait after a run that failed.
func wait(t Trigger, now time.Time, cfg Config) time.Duration {
	w := cfg.RetryMin
	for i := 1; i < t.Attempt && w < cfg.RetryMax; i++ {
		w *= 2
	}
	w = min(w, cfg.RetryMax)
	for _, d := range t.Due {
		if !d.Until.IsZero() {
			w = max(min(w, d.Until.Sub(now)/4), cfg.RetryMin)
		}
	}
	return w
}

// latest keeps of each round and reason the last instant, in order.
func latest(all []cadence.Due) []cadence.Due {
	slices.SortStableFunc(all, func(a, b cadence.Due) int { return a.At.Compare(b.At) })
	var kept []cadence.Due
	for i, d := range all {
		again := slices.ContainsFunc(all[i+1:], func(e cadence.Due) bool {
			return e.Work == d.Work && e.Reason == d.Reason && e.Round == d.Round
		})
		if !again {
			kept = append(kept, d)
		}
	}
	return kept
}
