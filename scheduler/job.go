package scheduler

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/scheduler/cadence"
)

// Job is a function and its schedule. With neither Work nor Every it runs only when
// triggered.
type Job struct {
	Name string
	Run  Func

	Work  cadence.Work  // due when this work is due by the calendar; or
	Every time.Duration // due at the whole multiples of this in UTC

	// Since is the instant up to which the job has done its work, such as the instant
	// of the latest version. The scheduler catches up with later due work when it
	// starts. Zero: Config.CatchUp before the start.
	Since time.Time
}

// Func does the work of a job, for everything that the trigger names, in one run. It must be safe to run
// again. The scheduler cancels its context when it cannot wait any longer for the end.
type Func func(ctx context.Context, t Trigger) error

// The reasons for a run that do not come from the calendar.
const (
	Interval cadence.Reason = "interval" // of a job with Every
	Retry    cadence.Reason = "retry"    // only in Status: the scheduler repeats a failed run
)

// Trigger holds the reasons of a run.
type Trigger struct {
	At        time.Time     // start of the run
	Due       []cadence.Due // the due work, in order; for each round and reason only the last
	Requested []string      // the reasons given to Scheduler.Trigger, in order, each once
	Attempt   int           // 1; 2 and more after errors
}

// String lists the reasons, such as "lights_out 2026022; result verified".
func (t Trigger) String() string {
	var reasons []string
	for _, d := range t.Due {
		reason := string(d.Reason)
		if d.Round != 0 {
			reason += " " + strconv.FormatInt(d.Round, 10)
		}
		reasons = append(reasons, reason)
	}
	return strings.Join(append(reasons, t.Requested...), "; ")
}

// coming lists the instants after now at which the job is due by itself, in order, of each interval only the first. all
// is the work of the calendar, see cadence.Coming.
func (j Job) coming(all []cadence.Due, now time.Time) []cadence.Due {
	switch {
	case j.Work != 0:
		return j.own(all)
	case j.Every > 0:
		return []cadence.Due{{At: now.UTC().Truncate(j.Every).Add(j.Every), Reason: Interval, Every: j.Every}}
	default:
		return nil
	}
}

// missed lists the due instants after from, up to and including now.
func (j Job) missed(cal cadence.Calendar, from, now time.Time) []cadence.Due {
	switch {
	case j.Work != 0:
		return j.own(cadence.Missed(cal, from, now))
	case j.Every > 0:
		if last := now.UTC().Truncate(j.Every); last.After(from) {
			return []cadence.Due{{At: last, Reason: Interval, Every: j.Every}}
		}
	}
	return nil
}

// own returns the instants of this job.
func (j Job) own(all []cadence.Due) []cadence.Due {
	return slices.DeleteFunc(slices.Clone(all), func(d cadence.Due) bool { return d.Work != j.Work })
}

// JobStatus is the state of a job. It is a copy: it never changes and may be kept.
type JobStatus struct {
	Name    string
	Running bool
	Pending bool // a run is needed and about to start, or starts when the present one ends

	Next       time.Time      // race time of the next known run; zero: none
	NextReason cadence.Reason // its reason
	NextRound  int64          // session key of its round, if any

	LastEnd    time.Time // race time; zero: never
	LastReason string    // Trigger.String of that run
	LastError  string    // of the last run; empty: none

	Runs     int64 // ended since the scheduler was made
	Failures int64 // ended with an error
}

// queue holds the pending work of a job, and its state. Scheduler.mu guards it, except the
// job, which never changes.
type queue struct {
	job       Job
	table     *timetable
	asked     bool // the timetable has been asked for a run that has not started
	status    JobStatus
	seen      time.Time     // due work up to here has been collected
	overtaken []cadence.Due // work that a change of the calendar moved before seen
	requests  []request     // triggers not yet collected
	present   Trigger       // of the present run
	waiting   []request     // for the end of the present run
	failed    Trigger       // the work that the last run did not do
	attempt   int           // of the due or present run, less one
	retryAt   time.Time     // not before this, unless other work falls due; zero: no error
}

// request is a trigger and the channel of its waiter.
type request struct {
	reason string
	done   chan<- error // buffered, written once
}

// newlyDue returns the work that fell due since the last run started and can still be done.
func (q *queue) newlyDue(cal cadence.Calendar, now time.Time) []cadence.Due {
	due := append(q.job.missed(cal, q.seen, now), q.overtaken...)
	return slices.DeleteFunc(due, func(d cadence.Due) bool { return d.TooLate(now) })
}

// ready reports whether a run is needed at now.
func (q *queue) ready(cal cadence.Calendar, now time.Time) bool {
	return len(q.requests) > 0 || !q.retryAt.IsZero() && !now.Before(q.retryAt) || len(q.newlyDue(cal, now)) > 0
}

// coming lists the instants after now at which a run is needed, in order.
func (q *queue) coming(all []cadence.Due, now time.Time) []cadence.Due {
	coming := q.job.coming(all, now)
	if q.retryAt.After(now) {
		retry := cadence.Due{At: q.retryAt.UTC(), Work: q.job.Work, Reason: Retry}
		i, _ := slices.BinarySearchFunc(coming, retry, func(a, b cadence.Due) int { return a.At.Compare(b.At) })
		coming = slices.Insert(coming, i, retry)
	}
	return coming
}

// take empties the queue into the trigger of a run that starts now, and its waiters. It returns the work that is too late.
// Without work ok is false.
func (q *queue) take(cal cadence.Calendar, now time.Time) (lost []cadence.Due, ok bool) {
	q.asked = false
	if !q.ready(cal, now) {
		return nil, false
	}
	due, reasons := q.newlyDue(cal, now), q.failed.Requested
	for _, d := range q.failed.Due {
		if d.TooLate(now) {
			lost = append(lost, d)
		} else {
			due = append(due, d)
		}
	}
	for _, r := range q.requests {
		if !slices.Contains(reasons, r.reason) {
			reasons = append(reasons, r.reason)
		}
	}
	q.waiting, q.seen = q.requests, now
	q.overtaken, q.requests, q.failed, q.retryAt = nil, nil, Trigger{}, time.Time{}
	if len(due) == 0 && len(reasons) == 0 {
		q.attempt = 0
		return lost, false
	}
	q.attempt++
	q.present = Trigger{At: now.UTC(), Due: latest(due), Requested: reasons, Attempt: q.attempt}
	return lost, true
}

// latest keeps only the last instant of each round and reason, in order.
func latest(all []cadence.Due) []cadence.Due {
	slices.SortStableFunc(all, func(a, b cadence.Due) int { return a.At.Compare(b.At) })
	var kept []cadence.Due
	for i, d := range all {
		later := slices.ContainsFunc(all[i+1:], func(e cadence.Due) bool {
			return e.Work == d.Work && e.Reason == d.Reason && e.Round == d.Round
		})
		if !later {
			kept = append(kept, d)
		}
	}
	return kept
}
