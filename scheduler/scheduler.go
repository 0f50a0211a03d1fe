// Package scheduler runs the named jobs it is handed, when they fall due.
//
// A job is a plain function. It is due by the calendar (see package cadence), at an
// interval, or on a call of Trigger. Each coming instant of the calendar is a one-time job of gocron, and each interval a
// duration job. After each run and each call of Update, the scheduler reads the calendar and moves those jobs.
//
// At an instant the scheduler collects the work that fell due since the last run of the named job. After a pause, a
// restart, a failed run, or triggers during a run, one run catches up with all of it and gets
// the whole list. Only a freeze is never done after lights out.
//
// A job never overlaps itself; different jobs run side by side. After an error the scheduler repeats the run
// with growing waits.
//
// The scheduler elects no leader and takes no lock. Two schedulers may run the same jobs on the same store, and
// the compare-and-swap of the store lets one of them win, so jobs must be safe to
// run twice.
//
// All scheduled times are race time, read from the clock handed to New, and UTC. Only Look,
// StopGrace and the measured durations are real time.
package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/scheduler/cadence"
	"gridcast/snapshots/blob/lock"
	"gridcast/snapshots/retry"
)

// The errors of Trigger, of its channel, and of Stop.
var (
	ErrUnknownJob = errors.New("unknown job")
	ErrStopped    = errors.New("scheduler is stopped")
	ErrCancelled  = errors.New("runs cancelled")
)

// Config holds the settings of a Scheduler. Durations are race time unless they say otherwise.
type Config struct {
	// Look is the real time between two looks at the clock. It bounds the delay of a run after
	// the machine was suspended or its clock was set. Else runs start at their instant.
	Look time.Duration

	// RetryMin is the wait before the first retry of a failed run. Every further failure
	// doubles the wait, up to RetryMax. Work with an end, such as a freeze, waits at most a quarter of
	// the time left, but never less than RetryMin.
	RetryMin time.Duration
	RetryMax time.Duration

	// CatchUp is the time before the start for which the scheduler assumes missed runs of a
	// job without Since.
	CatchUp time.Duration

	// StopGrace is the real time that Stop waits for running jobs after it has cancelled
	// their context.
	StopGrace time.Duration
}

// DefaultConfig returns the settings of a service in real time.
func DefaultConfig() Config {
	return Config{
		Look:      time.Second,
		RetryMin:  5 * time.Second,
		RetryMax:  5 * time.Minute,
		CatchUp:   36 * time.Hour,
		StopGrace: 5 * time.Second,
	}
}

// Scheduler runs jobs. Its methods are safe for concurrent use.
type Scheduler struct {
	cfg      Config
	clock    Clock
	calendar func() cadence.Calendar
	log      *slog.Logger
	metrics  *metrics
	cron     cron
	active   sync.WaitGroup  // counts runs; added to under mu, and not once stopped
	runs     context.Context // of all runs; its end cancels them
	cancel   context.CancelFunc

	updating sync.Mutex  // serialises updates, so that no calendar replaces a later one
	woken    atomic.Bool // an update that wake has asked for has not begun yet

	mu      sync.Mutex // guards the following and the content of the queues; never held during a run
	queues  []*queue   // one for each job, in the order given to New
	current cadence.Calendar
	started bool
	stopped bool
}

// New makes a scheduler for Start. The scheduler reads the calendar at every update,
// so calendar must return at once, from memory, and must not call the scheduler.
func New(cfg Config, clock Clock, calendar func() cadence.Calendar, log *slog.Logger, jobs ...Job) (*Scheduler, error) {
	s := &Scheduler{cfg: cfg, clock: clock, calendar: calendar, log: log, metrics: newMetrics(jobs)}
	s.runs, s.cancel = context.WithCancel(context.Background())
	var err error
	if s.cron, err = newCron(cfg, clock, s.metrics, log); err != nil {
		return nil, fmt.Errorf("make scheduler: %w", err)
	}
	for _, j := range jobs {
		q := &queue{job: j, status: JobStatus{Name: j.Name}}
		q.table, err = newTimetable(s.cron, j.Name, clock, events{
			before: func() error { return s.arrive(q) },
			run:    func(ctx context.Context) error { return s.do(ctx, q) },
			panicked: func(value any) {
				s.log.Error("BUG: job panicked", "job", j.Name, "panic", value, "stack", string(debug.Stack()))
			},
			after: func(err error) { s.end(q, err) },
		})
		if err != nil {
			return nil, fmt.Errorf("make scheduler: job %s: %w", j.Name, errors.Join(err, s.cron.Shutdown()))
		}
		s.queues = append(s.queues, q)
	}
	return s, nil
}

// Start starts to run jobs, first the jobs with missed work. It does not block. Call it
// once.
func (s *Scheduler) Start() {
	now := s.clock.Now()
	s.mu.Lock()
	s.current = s.calendar()
	for _, q := range s.queues {
		if q.seen = q.job.Since; q.seen.IsZero() {
			q.seen = now.Add(-s.cfg.CatchUp)
		}
	}
	s.mu.Unlock()
	s.cron.Start()
	s.mu.Lock()
	s.started = true
	s.mu.Unlock()
	s.Update()
}

// Update reads the calendar, moves the coming runs to its instants, and starts runs that are due. Call it when the
// calendar may have changed. The scheduler itself calls it at each instant and after each run.
func (s *Scheduler) Update() {
	s.updating.Lock()
	defer s.updating.Unlock()
	s.woken.Store(false)
	calendar, now := s.calendar(), s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started || s.stopped {
		return
	}
	overtaken, coming := cadence.Overtaken(s.current, calendar, now), cadence.Coming(calendar, now)
	s.current = calendar
	for _, q := range s.queues {
		if now.Before(q.seen) { // a clock was set back: the job must not wait until the old instant
			q.seen = now
		}
		if latest := now.Add(s.cfg.RetryMax); latest.Before(q.retryAt) { // nor the retry
			q.retryAt = latest
		}
		q.overtaken = append(q.overtaken, q.job.own(overtaken)...)
		if err := q.table.update(q.coming(coming, now), now, s.wake); err != nil {
			s.log.Error("BUG: instants of a job are not planned", "job", q.job.Name, "err", err)
		}
	}
	for _, q := range s.queues { // last, because an instant may have passed while it was planned
		s.ask(q)
	}
}

// wake updates at an instant of the calendar. One update serves all instants that have passed before it begins.
func (s *Scheduler) wake() {
	if !s.woken.Swap(true) {
		s.Update()
	}
}

// ask lets a job run if it has work. A present run ends first. The caller holds mu.
func (s *Scheduler) ask(q *queue) {
	if !s.started || s.stopped || q.asked || !q.ready(s.current, s.clock.Now()) {
		return
	}
	if err := q.table.run(); err != nil { // on a busy machine: gocron waits a tenth of a second; the next update asks again
		s.log.Warn("job not started yet", "job", q.job.Name, "err", err)
		return
	}
	q.asked = true
}

// madeGoodAfter is the delay, in race time, from which a run counts as caught up and not as on time: a minute, and on a
// fast clock at least a real second.
func (s *Scheduler) madeGoodAfter() time.Duration {
	return max(time.Minute, time.Duration(float64(time.Second)*s.clock.Speed()))
}

// errNothing skips a run without work.
var errNothing = errors.New("nothing to do")

// arrive begins a run after every trigger of its instant in a simulation. Stop waits for it, because gocron's Shutdown
// lets no time pass there.
func (s *Scheduler) arrive(q *queue) error {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return ErrStopped
	}
	s.active.Add(1)
	s.mu.Unlock()
	lock.Order(q.job.Name)
	err := s.begin(q)
	if err != nil {
		s.active.Done()
	}
	return err
}

// begin prepares the run that do does next.
func (s *Scheduler) begin(q *queue) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return ErrStopped
	}
	lost, ok := q.take(s.current, s.clock.Now())
	for _, d := range lost {
		s.log.Error("too late for job", "job", q.job.Name, "reason", d.Reason, "round", d.Round, "due", d.At, "until", d.Until)
	}
	if !ok {
		return errNothing
	}
	t, caughtUp := q.present, 0
	for _, d := range t.Due {
		if t.Attempt == 1 && t.At.Sub(d.At) > s.madeGoodAfter() {
			caughtUp++
			s.log.Info("job makes good what was missed", "job", q.job.Name, "reason", d.Reason, "round", d.Round, "due", d.At)
		}
	}
	s.metrics.began(q.job.Name, caughtUp)
	q.status.Running, q.status.LastReason = true, t.String()
	s.log.Debug("job begins", "job", q.job.Name, "reason", q.status.LastReason, "attempt", t.Attempt)
	return nil
}

// do calls a job's function.
func (s *Scheduler) do(ctx context.Context, q *queue) error {
	t := q.present // nothing changes it during the run
	// The function gets copies, because the trigger's slices are used again after an error.
	t.Due, t.Requested = slices.Clone(t.Due), slices.Clone(t.Requested)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.runs, cancel)()
	if err := q.job.Run(ctx, t); !errors.Is(err, ErrStopped) {
		return err
	}
	return nil // it triggered another job too late, which is no failure of its own
}

// end records the outcome of a run. After an error it keeps the run's work for a retry.
func (s *Scheduler) end(q *queue, err error) {
	defer s.active.Done()
	waiting := s.record(q, err)
	s.Update()
	for _, r := range waiting {
		r.done <- err
	}
}

// record sets the status after a run, and returns the waiters for its outcome.
func (s *Scheduler) record(q *queue, err error) []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metrics.running.WithLabelValues(q.job.Name).Set(0)
	now := s.clock.Now().UTC()
	st, waiting := &q.status, q.waiting
	q.waiting = nil
	st.Running, st.LastEnd = false, now
	st.Runs++
	if err == nil {
		q.attempt, st.LastError = 0, ""
		s.log.Debug("job done", "job", q.job.Name)
		return waiting
	}
	t := q.present
	q.failed, q.retryAt = t, now.Add(s.wait(t, now))
	st.LastError = err.Error()
	st.Failures++
	s.log.Warn("job failed", "job", q.job.Name, "reason", st.LastReason, "attempt", t.Attempt, "retry_at", q.retryAt, "err", err)
	return waiting
}

// wait returns the wait after a failed run.
func (s *Scheduler) wait(t Trigger, now time.Time) time.Duration {
	w := retry.Rule{First: s.cfg.RetryMin, Longest: s.cfg.RetryMax}.Full(t.Attempt)
	for _, d := range t.Due {
		if !d.Until.IsZero() {
			w = max(min(w, d.Until.Sub(now)/4), s.cfg.RetryMin)
		}
	}
	return w
}

// Trigger starts a run of a job as soon as the job is idle, with the given reason;
// triggers before the start of the run share it. The channel gets the outcome of that run, once: nil,
// its error, or ErrStopped. The scheduler repeats a failed run with the same reason; the
// channel does not get that outcome.
func (s *Scheduler) Trigger(name, reason string) (<-chan error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.queues, func(q *queue) bool { return q.job.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("trigger %s: %w", name, ErrUnknownJob)
	}
	if s.stopped {
		return nil, fmt.Errorf("trigger %s: %w", name, ErrStopped)
	}
	done := make(chan error, 1)
	s.queues[i].requests = append(s.queues[i].requests, request{reason, done})
	s.ask(s.queues[i])
	return done, nil
}

// Status returns the state of each job, in the order given to New.
func (s *Scheduler) Status() []JobStatus {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	all, planned := make([]JobStatus, len(s.queues)), cadence.Coming(s.current, now)
	for i, q := range s.queues {
		all[i] = q.status
		all[i].Pending = q.ready(s.current, now)
		if coming := q.coming(planned, now); len(coming) > 0 {
			all[i].Next, all[i].NextReason, all[i].NextRound = coming[0].At, coming[0].Reason, coming[0].Round
		}
	}
	return all
}

// Collector returns the metrics of the jobs, for a registry.
func (s *Scheduler) Collector() prometheus.Collector { return s.metrics.registry }

// Stop starts no more runs and waits for the running ones. When ctx ends first it cancels
// their context and waits StopGrace more. The error names the jobs that still run then, or is ErrCancelled
// with the error of ctx if they ended. A waiter whose run never started gets ErrStopped.
func (s *Scheduler) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	for _, q := range s.queues {
		for _, r := range q.requests {
			r.done <- ErrStopped
		}
		q.requests = nil
	}
	s.mu.Unlock()
	// gocron's Shutdown cancels runs at once, and keeps a processor busy until they end. So runs end first.
	idle := make(chan struct{})
	go func() { s.active.Wait(); close(idle) }()
	var cancelled error
	select {
	case <-idle:
	case <-ctx.Done():
		cancelled = fmt.Errorf("stop scheduler: %w: %w", ErrCancelled, ctx.Err())
		s.cancel()
		select {
		case <-idle:
		case <-time.After(s.cfg.StopGrace):
			go func() { <-idle; _ = s.cron.Shutdown() }()
			var running []string
			for _, st := range s.Status() {
				if st.Running {
					running = append(running, st.Name)
				}
			}
			return fmt.Errorf("stop scheduler: jobs %v still run: %w", running, ctx.Err())
		}
	}
	s.cancel()
	return errors.Join(cancelled, s.cron.Shutdown())
}
