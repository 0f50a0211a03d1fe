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
