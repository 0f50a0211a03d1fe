// Package scheduler runs the named jobs it is handed, when they fall due.
//
// A job is a plain function. It is due by the calendar (see package cadence), at an
// interval, or on a call of Trigger. At every tick the scheduler collects the work
// that fell due since the last run of each job. After a pause, a restart, a failed run,
// or triggers during a run, one run catches up with all of it and gets
// the whole list. Only a freeze is never done after lights out.
//
// A job never overlaps itself; different jobs run side by side. After an error the scheduler repeats the run
// with growing waits.
//
// The scheduler elects no leader and takes no lock. Two schedulers may run the same jobs on the same store, and
// the compare-and-swap of the store lets one of them win, so jobs must be safe to
// run twice.
//
// All scheduled times are race time, read from the clock handed to New, and UTC. Only Tick,
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
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/prometheus/client_golang/prometheus"

	"gridcast/scheduler/cadence"
	"gridcast/snapshots/blob"
)

// The errors of Trigger and of its channel.
var (
	ErrUnknownJob = errors.New("unknown job")
	ErrStopped    = errors.New("scheduler is stopped")
)

// Config holds the settings of a Scheduler. Durations are race time unless they say otherwise.
type Config struct {
	// Tick is the real time between two looks at the due work. It bounds the delay of a run,
	// also after the machine was suspended or its clock was set.
	Tick time.Duration

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
		Tick:      50 * time.Millisecond,
		RetryMin:  5 * time.Second,
		RetryMax:  5 * time.Minute,
		CatchUp:   36 * time.Hour,
		StopGrace: 5 * time.Second,
	}
}

// Scheduler runs jobs. Its methods are safe for concurrent use.
type Scheduler struct {
	cfg      Config
	now      func() time.Time
	calendar func() cadence.Calendar
	log      *slog.Logger
	metrics  *metrics
	cron     gocron.Scheduler

	ctx    context.Context // of all runs
	cancel context.CancelFunc
	active sync.WaitGroup // counts runs; added to under mu, and not once stopped

	mu      sync.Mutex // guards the following and the content of the queues; never held during a run
	queues  []*queue   // one for each job, in the order given to New
	current cadence.Calendar
	checked time.Time // real time of the last check
	due     time.Time // the first known due instant after it
	changed bool      // since it: a trigger, or the end of a run
	stopped bool
}

// New makes a scheduler for Start. now returns race time. The scheduler reads the calendar every
// second and more often, so calendar must return at once, from memory, and must not call the scheduler.
func New(cfg Config, now func() time.Time, calendar func() cadence.Calendar, log *slog.Logger, jobs ...Job) (*Scheduler, error) {
	if err := validate(jobs); err != nil {
		return nil, err
	}
	s := &Scheduler{cfg: cfg, now: now, calendar: calendar, log: log, metrics: newMetrics(jobs)}
	for _, j := range jobs {
		s.queues = append(s.queues, &queue{job: j, status: JobStatus{Name: j.Name}})
	}
	var err error
	if s.cron, err = gocron.NewScheduler(gocron.WithLocation(time.UTC), gocron.WithLogger(quiet{log})); err != nil {
		return nil, fmt.Errorf("make scheduler: %w", err)
	}
	_, err = s.cron.NewJob(gocron.DurationJob(cfg.Tick), gocron.NewTask(s.tick),
		gocron.WithName("tick"), gocron.WithSingletonMode(gocron.LimitModeReschedule),
		gocron.WithStartAt(gocron.WithStartImmediately()))
	if err != nil {
		return nil, fmt.Errorf("make scheduler: %w", errors.Join(err, s.cron.Shutdown()))
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Start starts to run jobs, first the jobs with missed work. It does not block. Call it
// once.
func (s *Scheduler) Start() {
	now := s.now()
	s.mu.Lock()
	s.current = s.calendar()
	for _, q := range s.queues {
		q.seen = q.job.Since
		if q.seen.IsZero() {
			q.seen = now.Add(-s.cfg.CatchUp)
		}
		if now.Before(q.seen) { // after a clock was set back, the job must not wait until the old instant
			q.seen = now
		}
	}
	s.mu.Unlock()
	s.cron.Start()
}

// checkEvery is the real time between checks of the calendar when no due instant is known.
const checkEvery = time.Second

// tick looks for due jobs when there may be one: after a trigger, after the end of a run, at the
// next known instant, or when the calendar has not been read for a while.
func (s *Scheduler) tick() {
	now := s.now()
	s.mu.Lock()
	check := s.changed || !now.Before(s.due) || time.Since(s.checked) >= checkEvery
	s.mu.Unlock()
	if check {
		s.check(s.calendar(), now)
	}
}

// check starts a run of every idle job with due work at now.
func (s *Scheduler) check(calendar cadence.Calendar, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.changed, s.checked, s.due = false, time.Now(), now.Add(s.cfg.CatchUp)
	overtaken := cadence.Overtaken(s.current, calendar, now)
	s.current = calendar
	for _, q := range s.queues {
		q.overtaken = append(q.overtaken, q.job.own(overtaken)...)
		if q.status.Running {
			continue
		}
		t, waiting, lost, ok := q.take(calendar, now)
		for _, d := range lost {
			s.log.Error("too late for job", "job", q.job.Name, "reason", d.Reason, "round", d.Round, "due", d.At, "until", d.Until)
		}
		if ok {
			s.begin(q, t, waiting)
		}
		if next, ok := q.next(calendar, now); ok && next.At.Before(s.due) {
			s.due = next.At
		}
	}
}

// madeGoodAfter is the delay, in race time, from which a run counts as caught up and not as on time.
const madeGoodAfter = time.Minute

// begin starts a run. The caller holds mu.
func (s *Scheduler) begin(q *queue, t Trigger, waiting []request) {
	caughtUp := 0
	for _, d := range t.Due {
		if t.Attempt == 1 && t.At.Sub(d.At) > madeGoodAfter {
			caughtUp++
			s.log.Info("job makes good what was missed", "job", q.job.Name, "reason", d.Reason, "round", d.Round, "due", d.At)
		}
	}
	s.metrics.began(q.job.Name, caughtUp)
	q.status.Running, q.status.Attempt, q.status.LastReason = true, t.Attempt, t.String()
	s.log.Debug("job begins", "job", q.job.Name, "reason", q.status.LastReason, "attempt", t.Attempt)
	s.active.Go(func() {
		began := time.Now()
		err := s.do(q.job, t)
		s.end(q, t, time.Since(began), err)
		for _, r := range waiting {
			r.done <- err
		}
	})
}

// do calls a job's function. It turns a panic into an error, because a panic must end neither the other jobs nor an
// edge in the same process.
func (s *Scheduler) do(j Job, t Trigger) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("BUG: job panicked", "job", j.Name, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("job %s panicked: %v", j.Name, p)
		}
	}()
	// The function gets copies, because the trigger's slices are used again after an error.
	t.Due, t.Requested = slices.Clone(t.Due), slices.Clone(t.Requested)
	if err = j.Run(s.ctx, t); errors.Is(err, ErrStopped) {
		return nil // it triggered another job too late, which is no failure of its own
	}
	return err
}

// end records the outcome of a run. After an error it keeps the run's work for a retry.
func (s *Scheduler) end(q *queue, t Trigger, took time.Duration, err error) {
	s.metrics.ended(q.job.Name, took, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = true
	now := s.now().UTC()
	st := &q.status
	st.Running, st.LastEnd = false, now
	st.Runs++
	if err == nil {
		q.attempt, st.Attempt, st.LastError = 0, 0, ""
		s.log.Debug("job done", "job", q.job.Name, "took", took)
		return
	}
	q.failed, q.retryAt = t, now.Add(s.wait(t, now))
	st.Attempt++
	st.LastError = err.Error()
	st.Failures++
	s.log.Warn("job failed", "job", q.job.Name, "reason", st.LastReason, "attempt", t.Attempt, "retry_at", q.retryAt, "err", err)
}

// wait returns the wait after a failed run.
func (s *Scheduler) wait(t Trigger, now time.Time) time.Duration {
	w := blob.Backoff{First: s.cfg.RetryMin, Longest: s.cfg.RetryMax}.After(t.Attempt)
	for _, d := range t.Due {
		if !d.Until.IsZero() {
			w = max(min(w, d.Until.Sub(now)/4), s.cfg.RetryMin)
		}
	}
	return w
}

// Trigger starts a run of a job at the next tick at which the job is idle, with the given reason;
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
	s.changed = true
	return done, nil
}

// Status returns the state of each job, in the order given to New.
func (s *Scheduler) Status() []JobStatus {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]JobStatus, len(s.queues))
	for i, q := range s.queues {
		all[i] = q.status
		all[i].Pending = q.ready(s.current, now)
		if next, ok := q.next(s.current, now); ok {
			all[i].Next, all[i].NextReason, all[i].NextRound = next.At, next.Reason, next.Round
		}
	}
	return all
}

// Collector returns the metrics of the jobs, for a registry.
func (s *Scheduler) Collector() prometheus.Collector { return s.metrics.registry }

// Stop starts no more runs and waits for the running ones. When ctx ends first it cancels
// their context and waits StopGrace more. The error names the jobs that still run then, or is the error of
// ctx if Stop had to cancel runs. A waiter whose run never started gets ErrStopped.
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
	err := s.drain(ctx)
	if cronErr := s.cron.Shutdown(); cronErr != nil {
		err = errors.Join(err, fmt.Errorf("stop scheduler: %w", cronErr))
	}
	return err
}

// drain waits for the running jobs, and cancels them when ctx ends.
func (s *Scheduler) drain(ctx context.Context) error {
	defer s.cancel()
	idle := make(chan struct{})
	go func() { s.active.Wait(); close(idle) }()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	s.cancel()
	grace := time.NewTimer(s.cfg.StopGrace)
	defer grace.Stop()
	select {
	case <-idle:
		return fmt.Errorf("stop scheduler: runs cancelled: %w", ctx.Err())
	case <-grace.C:
	}
	var running []string
	for _, st := range s.Status() {
		if st.Running {
			running = append(running, st.Name)
		}
	}
	return fmt.Errorf("stop scheduler: jobs %v still run: %w", running, ctx.Err())
}

// quiet logs gocron's information at debug level, because operators do not need it.
type quiet struct{ *slog.Logger }

// Info implements [gocron.Logger].
func (q quiet) Info(msg string, args ...any) { q.Debug(msg, args...) }
