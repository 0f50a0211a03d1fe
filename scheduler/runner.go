package scheduler

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"gridcast/scheduler/cadence"
)

// runner runs one job of a scheduler.
type runner struct {
	*Scheduler

	armed time.Time // what the timetable is set to; guarded by Scheduler.plan

	lock   sync.Mutex // guards the following; never held while the job runs
	agenda agenda
	status Status
	closed bool // takes no more requests
}

// begin takes what fell due up to now as done, from the job's Since on as missed.
func (r *runner) begin(now time.Time) {
	r.lock.Lock()
	defer r.lock.Unlock()
	since := r.agenda.job.Since
	if since.IsZero() {
		since = now.Add(-r.cfg.CatchUp)
	}
	// A clock set back since must not make the job deaf until it is where it was.
	r.agenda.seen = earlier(since, now)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// ask notes a request and sees to it that the job runs. It reports whether it could.
func (r *runner) ask(req request) bool {
	r.lock.Lock()
	if r.closed {
		r.lock.Unlock()
		return false
	}
	r.agenda.asked = append(r.agenda.asked, req)
	running := r.status.Running
	r.lock.Unlock()
	if !running { // else the end of the run sees the request
		r.call()
	}
	return true
}

// arm sets the timetable to the job's next instant, and calls the job if it is ready now. The
// caller holds Scheduler.plan.
func (r *runner) arm(cal cadence.Calendar, overtaken []cadence.Due) {
	r.lock.Lock()
	r.agenda.overtake(overtaken)
	next, _ := r.agenda.next(cal, r.clock.Now())
	r.lock.Unlock()

	if !next.At.Equal(r.armed) {
		if err := r.table.set(r.agenda.job.Name, next.At); err != nil {
			r.log.Error("job is not scheduled", "job", r.agenda.job.Name, "err", err)
			return // the next heartbeat tries again
		}
		r.armed = next.At
	}

	// Only now: time has passed, and setting may have lost a call.
	r.lock.Lock()
	ready := !r.status.Running && r.agenda.ready(cal, r.clock.Now())
	r.lock.Unlock()
	if ready {
		r.call()
	}
}

// call has the timetable run the job.
func (r *runner) call() {
	if err := r.table.call(r.agenda.job.Name); err != nil {
		r.log.Debug("job is not called", "job", r.agenda.job.Name, "err", err)
	}
}

// run does what is on the agenda. The timetable calls it, never twice at a time, and may call
// it in vain.
func (r *runner) run() {
	if !r.enter() {
		return
	}
	defer r.active.Done()
	t, asked, ok := r.start()
	if !ok {
		return
	}
	began := time.Now()
	err := r.do(t)
	r.end(t, time.Since(began), err)
	for _, req := range asked {
		req.done <- err
	}
	r.Refresh()
}

// start takes what is on the agenda.
func (r *runner) start() (Trigger, []request, bool) {
	cal, now := r.known(), r.clock.Now()
	r.lock.Lock()
	defer r.lock.Unlock()
	t, asked, lost, ok := r.agenda.take(cal, now)
	for _, d := range lost {
		r.log.Error("too late for job", "job", r.status.Name, "reason", d.Reason, "round", d.Round, "due", d.At, "until", d.Until)
	}
	if !ok {
		return Trigger{}, nil, false
	}
	caughtUp := 0
	for _, d := range t.Due {
		if t.Attempt == 1 && now.Sub(d.At) > r.cfg.Heartbeat {
			caughtUp++
			r.log.Info("job makes good what was missed", "job", r.status.Name, "reason", d.Reason, "round", d.Round, "due", d.At)
		}
	}
	r.metrics.began(r.status.Name, caughtUp)
	r.status.Running = true
	r.status.Attempt = t.Attempt
	r.status.LastStart = t.At
	r.status.LastReason = t.String()
	r.log.Debug("job begins", "job", r.status.Name, "reason", r.status.LastReason, "attempt", t.Attempt)
	return t, asked, true
}

// do runs the job's function. A panic in it is an error: it must not take the other jobs, nor
// an edge in the same process, with it.
func (r *runner) do(t Trigger) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("BUG: job panicked", "job", r.agenda.job.Name, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("job %s panicked: %v", r.agenda.job.Name, p)
		}
	}()
	// The function gets slices of its own: those of the trigger come back after an error.
	t.Due, t.Requested = slices.Clone(t.Due), slices.Clone(t.Requested)
	return r.agenda.job.Run(r.ctx, t)
}

// end notes the outcome of a run.
func (r *runner) end(t Trigger, took time.Duration, err error) {
	now := r.clock.Now()
	r.metrics.ended(r.status.Name, took, err)
	r.lock.Lock()
	defer r.lock.Unlock()
	r.agenda.settle(t, err, now, r.cfg)
	r.status.Running = false
	r.status.LastEnd = now.UTC()
	r.status.LastDuration = took
	r.status.Runs++
	if err == nil {
		r.status.Attempt = 0
		r.status.LastError = ""
		r.status.LastSuccess = r.status.LastEnd
		r.log.Debug("job done", "job", r.status.Name, "took", took)
		return
	}
	r.status.Attempt++
	r.status.LastError = err.Error()
	r.status.Failures++
	r.log.Warn("job failed", "job", r.status.Name, "reason", r.status.LastReason,
		"attempt", t.Attempt, "retry_at", r.agenda.retryAt, "err", err)
}

// dismiss refuses requests from now on, and those that no run has taken.
func (r *runner) dismiss() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.closed = true
	for _, req := range r.agenda.asked {
		req.done <- ErrStopped
	}
	r.agenda.asked = nil
}

// report is the job's status.
func (r *runner) report(cal cadence.Calendar, now time.Time) Status {
	r.lock.Lock()
	defer r.lock.Unlock()
	st := r.status
	st.Pending = r.agenda.ready(cal, now)
	if next, ok := r.agenda.next(cal, now); ok {
		st.Next, st.NextReason, st.NextRound = next.At, next.Reason, next.Round
	}
	return st
}
