package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/scheduler/cadence"
)

// Job is a function and what makes it fall due. With neither Work nor Every it runs only when
// triggered.
type Job struct {
	Name string
	Run  Func

	Work  cadence.Work  // falls due when this work does, by the calendar; or
	Every time.Duration // at the whole multiples of this in UTC

	// Since is the instant up to which the job is known to have done its work, such as that of
	// the version published last. What fell due after it is made good when the scheduler
	// starts. Zero: Config.CatchUp before the start.
	Since time.Time
}

// Func does a job's work, for all that the trigger says, in one go. It must be safe to run
// again. Its context is cancelled when the scheduler cannot wait any longer for it to end.
type Func func(ctx context.Context, t Trigger) error

// The reasons for a run that are not the calendar's.
const (
	Interval cadence.Reason = "interval" // of a job with Every
	Retry    cadence.Reason = "retry"    // only in Status: a run that failed is tried again
)

// Trigger says why a job runs.
type Trigger struct {
	At        time.Time     // when the run begins
	Due       []cadence.Due // what it makes good for, in order; of each round and reason the last
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

// next is the first instant after now at which the job falls due by itself.
func (j Job) next(cal cadence.Calendar, now time.Time) (cadence.Due, bool) {
	switch {
	case j.Work != "":
		return cadence.Next(cal, j.Work, now)
	case j.Every > 0:
		return cadence.Due{At: now.UTC().Truncate(j.Every).Add(j.Every), Reason: Interval}, true
	default:
		return cadence.Due{}, false
	}
}

// missed lists what fell due after from up to and including now.
func (j Job) missed(cal cadence.Calendar, from, now time.Time) []cadence.Due {
	switch {
	case j.Work != "":
		return j.own(cadence.Missed(cal, from, now))
	case j.Every > 0:
		if last := now.UTC().Truncate(j.Every); last.After(from) {
			return []cadence.Due{{At: last, Reason: Interval}}
		}
	}
	return nil
}

// own are those of the instants that are for this job.
func (j Job) own(all []cadence.Due) []cadence.Due {
	var own []cadence.Due
	for _, d := range all {
		if d.Work == j.Work {
			own = append(own, d)
		}
	}
	return own
}

// validate reports what is wrong with jobs that are to run together.
func validate(jobs []Job) error {
	var faults []error
	names := make(map[string]bool)
	for _, j := range jobs {
		switch {
		case j.Name == "":
			faults = append(faults, errors.New("scheduler: a job has no name"))
		case names[j.Name]:
			faults = append(faults, fmt.Errorf("scheduler: two jobs are named %s", j.Name))
		}
		names[j.Name] = true
		if j.Run == nil {
			faults = append(faults, fmt.Errorf("scheduler: job %s has no function", j.Name))
		}
		if j.Every < 0 || j.Work != "" && j.Every != 0 {
			faults = append(faults, fmt.Errorf("scheduler: job %s must fall due by work %q or every %v, not both", j.Name, j.Work, j.Every))
		}
		known := []cadence.Work{"", cadence.Poll, cadence.Freeze, cadence.Build, cadence.Verify}
		if !slices.Contains(known, j.Work) {
			faults = append(faults, fmt.Errorf("scheduler: job %s is for unknown work %q", j.Name, j.Work))
		}
	}
	return errors.Join(faults...)
}

// Status is how a job stands. It is a copy: it never changes and may be kept.
type Status struct {
	Name    string
	Running bool
	Pending bool // a run is needed and about to begin, or begins when the one running ends

	Next       time.Time      // race time of the next run as far as known; zero: none
	NextReason cadence.Reason // why
	NextRound  int64          // session key of the round it is for, if any

	LastStart    time.Time     // race time; zero: never
	LastEnd      time.Time     // race time; zero: never
	LastDuration time.Duration // real time
	LastReason   string        // why it ran: Trigger.String
	LastSuccess  time.Time     // race time of the end of the last run without an error
	LastError    string        // of the last run; empty: none
	Attempt      int           // of the run under way or of the retry to come; 0: neither

	Runs     int64 // that have ended, since the scheduler was made
	Failures int64 // of them, with an error
}

// queue is what a job has still to run for, and how it stands. Scheduler.mu guards it, except the
// job, which never changes.
type queue struct {
	job       Job
	status    Status
	seen      time.Time     // what fell due up to here has been taken
	overtaken []cadence.Due // what a change of the calendar put before seen
	requests  []request     // triggers not yet taken
	failed    Trigger       // what the last run did not do
	attempt   int           // of the run that is due or under way, less one
	retryAt   time.Time     // not before this, unless something new falls due; zero: no error
}

// request is a trigger and whoever waits for its outcome.
type request struct {
	reason string
	done   chan<- error // buffered, written once
}

// fresh is what fell due since the last run began and can still be done.
func (q *queue) fresh(cal cadence.Calendar, now time.Time) []cadence.Due {
	fresh := append(q.job.missed(cal, q.seen, now), q.overtaken...)
	return slices.DeleteFunc(fresh, func(d cadence.Due) bool { return d.TooLate(now) })
}

// ready reports whether a run is needed at now.
func (q *queue) ready(cal cadence.Calendar, now time.Time) bool {
	return len(q.requests) > 0 || !q.retryAt.IsZero() && !now.Before(q.retryAt) || len(q.fresh(cal, now)) > 0
}

// next is the first instant after now at which a run is needed as far as can be told, and why.
func (q *queue) next(cal cadence.Calendar, now time.Time) (cadence.Due, bool) {
	due, ok := q.job.next(cal, now)
	if q.retryAt.After(now) && (!ok || q.retryAt.Before(due.At)) {
		return cadence.Due{At: q.retryAt.UTC(), Work: q.job.Work, Reason: Retry}, true
	}
	return due, ok
}

// take empties the queue into a trigger for a run that begins now, and returns who waits for it.
// What has become too late is lost. Without anything left to do there is no trigger.
func (q *queue) take(cal cadence.Calendar, now time.Time) (t Trigger, waiting []request, lost []cadence.Due, ok bool) {
	if !q.ready(cal, now) {
		return Trigger{}, nil, nil, false
	}
	due, reasons := q.fresh(cal, now), q.failed.Requested
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
	waiting = q.requests
	if now.After(q.seen) {
		q.seen = now
	}
	q.overtaken, q.requests, q.failed, q.retryAt = nil, nil, Trigger{}, time.Time{}
	if len(due) == 0 && len(reasons) == 0 {
		q.attempt = 0
		return Trigger{}, nil, lost, false
	}
	q.attempt++
	return Trigger{At: now.UTC(), Due: latest(due), Requested: reasons, Attempt: q.attempt}, waiting, lost, true
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
