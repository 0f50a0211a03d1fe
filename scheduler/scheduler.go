// Package scheduler runs the named jobs it is handed, when they fall due.
//
// A job is a plain function. It falls due by the calendar (see package cadence), at an
// interval, or when somebody asks for it with Trigger. At every tick the scheduler asks what has
// fallen due since each job was last run. Whatever made it fall due while it was not looked at (a
// pause, a restart, a run that failed, a trigger during a run) is made good by one run, which is
// told of all of it; only a freeze is never made good after lights out.
//
// A job never overlaps itself; different jobs run side by side. After an error it is tried
// again with growing waits.
//
// Nothing here elects or locks. Two schedulers may run the same jobs on the same store, and
// the compare-and-swap of the store decides whose work counts; jobs must therefore be safe to
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
)

// The errors of Trigger, and of whoever waits for a run.
var (
	ErrUnknownJob = errors.New("unknown job")
	ErrStopped    = errors.New("scheduler is stopped")
)

// Config holds the settings of a Scheduler. Durations are race time unless they say otherwise.
type Config struct {
	// Tick is how often, in real time, the scheduler asks what is due. It bounds how late a run
	// can be, also after the machine was suspended or its clock was set.
	Tick time.Duration

	// RetryMin is the wait before the first retry of a run that failed. Every further failure
	// doubles it, up to RetryMax. What has an end, such as a freeze, waits at most a quarter of
	// the time left, but never less than RetryMin.
	RetryMin time.Duration
	RetryMax time.Duration

	// CatchUp is how far back a job whose Since is unknown is taken to have missed its runs
	// when the scheduler starts.
	CatchUp time.Duration

	// StopGrace is how long, in real time, Stop waits for running jobs once it has cancelled
	// their context.
	StopGrace time.Duration
}

// DefaultConfig returns the settings that suit a service in real time.
func DefaultConfig() Config {
	return Config{
		Tick:      50 * time.Millisecond,
		RetryMin:  5 * time.Second,
		RetryMax:  5 * time.Minute,
		CatchUp:   36 * time.Hour,
		StopGrace: 5 * time.Second,
	}
}

// Validate reports every setting that cannot be.
func (c Config) Validate() error {
	var faults []error
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"Tick", c.Tick}, {"RetryMin", c.RetryMin}, {"RetryMax", c.RetryMax}, {"CatchUp", c.CatchUp}, {"StopGrace", c.StopGrace},
	} {
		if f.value <= 0 {
			faults = append(faults, fmt.Errorf("scheduler: %s is %v, must be more than 0", f.name, f.value))
		}
	}
	if c.RetryMax < c.RetryMin {
		faults = append(faults, fmt.Errorf("scheduler: RetryMax %v is less than RetryMin %v", c.RetryMax, c.RetryMin))
	}
	return errors.Join(faults...)
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
	active sync.WaitGroup // runs; added to under mu, and not once stopped

	mu      sync.Mutex // guards the following and what the queues hold; never held during a run
	queues  []*queue   // of each job, in the order given to New
	current cadence.Calendar
	looked  time.Time // real time of the last look
	due     time.Time // the first instant known to be due after it
	changed bool      // since it: a trigger, or the end of a run
	stopped bool
}

// New makes a scheduler that Start starts. now gives race time. The calendar is asked for every
// second and more often: it must answer at once, from memory, and must not call the scheduler.
func New(cfg Config, now func() time.Time, calendar func() cadence.Calendar, log *slog.Logger, jobs ...Job) (*Scheduler, error) {
	if err := errors.Join(cfg.Validate(), validate(jobs)); err != nil {
		return nil, err
	}
	s := &Scheduler{cfg: cfg, now: now, calendar: calendar, log: log, metrics: newMetrics(jobs)}
	for _, j := range jobs {
		s.queues = append(s.queues, &queue{job: j, status: Status{Name: j.Name}})
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

// Start begins to run jobs, those first that have missed something. It does not block, and is
// called once.
func (s *Scheduler) Start() {
	now := s.now()
	s.mu.Lock()
	s.current = s.calendar()
	for _, q := range s.queues {
		q.seen = q.job.Since
		if q.seen.IsZero() {
			q.seen = now.Add(-s.cfg.CatchUp)
		}
		if now.Before(q.seen) { // a clock set back since must not make the job deaf until it is where it was
			q.seen = now
		}
	}
	s.mu.Unlock()
	s.cron.Start()
}

// lookEvery is how often, in real time, the calendar is looked at when nothing is known to be due.
const lookEvery = time.Second

// tick looks for due jobs when there may be one: something was asked for, a run has ended, the
// next known instant has come, or the calendar has not been looked at for a while.
func (s *Scheduler) tick() {
	now := s.now()
	s.mu.Lock()
	look := s.changed || !now.Before(s.due) || time.Since(s.looked) >= lookEvery
	s.mu.Unlock()
	if look {
		s.look(s.calendar(), now)
	}
}

// look begins a run of every job that is not running and for which something is due at now.
func (s *Scheduler) look(calendar cadence.Calendar, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.changed, s.looked, s.due = false, time.Now(), now.Add(s.cfg.CatchUp)
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

// madeGoodAfter is how late a run is, in race time, that counts as made good instead of on time.
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
	q.status.Running, q.status.Attempt = true, t.Attempt
	q.status.LastStart, q.status.LastReason = t.At, t.String()
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

// do runs a job's function. A panic in it is an error: it must not take the other jobs, nor an
// edge in the same process, with it.
func (s *Scheduler) do(j Job, t Trigger) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("BUG: job panicked", "job", j.Name, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("job %s panicked: %v", j.Name, p)
		}
	}()
	// The function gets slices of its own: those of the trigger come back after an error.
	t.Due, t.Requested = slices.Clone(t.Due), slices.Clone(t.Requested)
	return j.Run(s.ctx, t)
}

// end notes the outcome of a run. After an error all it was to do is tried again after a wait.
func (s *Scheduler) end(q *queue, t Trigger, took time.Duration, err error) {
	s.metrics.ended(q.job.Name, took, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = true
	now := s.now().UTC()
	st := &q.status
	st.Running, st.LastEnd, st.LastDuration = false, now, took
	st.Runs++
	if err == nil {
		q.attempt, st.Attempt, st.LastError, st.LastSuccess = 0, 0, "", now
		s.log.Debug("job done", "job", q.job.Name, "took", took)
		return
	}
	q.failed, q.retryAt = t, now.Add(s.wait(t, now))
	st.Attempt++
	st.LastError = err.Error()
	st.Failures++
	s.log.Warn("job failed", "job", q.job.Name, "reason", st.LastReason, "attempt", t.Attempt, "retry_at", q.retryAt, "err", err)
}

// wait is how long to wait after a run that failed.
func (s *Scheduler) wait(t Trigger, now time.Time) time.Duration {
	w := s.cfg.RetryMin
	for i := 1; i < t.Attempt && w < s.cfg.RetryMax; i++ {
		w *= 2
	}
	w = min(w, s.cfg.RetryMax)
	for _, d := range t.Due {
		if !d.Until.IsZero() {
			w = max(min(w, d.Until.Sub(now)/4), s.cfg.RetryMin)
		}
	}
	return w
}

// Trigger has a job run at the next tick at which it is not running, for the reason given;
// triggers before the run begins share it. The channel tells the outcome of that run, once: nil,
// its error, or ErrStopped. A run that fails is tried again with the same reason, of which the
// channel does not tell.
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

// Status tells how each job stands, in the order given to New.
func (s *Scheduler) Status() []Status {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Status, len(s.queues))
	for i, q := range s.queues {
		all[i] = q.status
		all[i].Pending = q.ready(s.current, now)
		if next, ok := q.next(s.current, now); ok {
			all[i].Next, all[i].NextReason, all[i].NextRound = next.At, next.Reason, next.Round
		}
	}
	return all
}

// Collector gives the metrics of the jobs, for a registry.
func (s *Scheduler) Collector() prometheus.Collector { return s.metrics }

// Stop begins no more runs and waits for those under way. When ctx ends first it cancels
// their context and waits StopGrace more. The error names what still runs then, or is that of
// ctx if runs had to be cancelled. Whoever waits for a run that never began gets ErrStopped.
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

// drain waits for the runs under way, and cancels them when ctx ends.
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

// quiet hands gocron's messages on as what they are to an operator: details.
type quiet struct{ log *slog.Logger }

func (q quiet) Debug(msg string, args ...any) { q.log.Debug(msg, args...) }
func (q quiet) Info(msg string, args ...any)  { q.log.Debug(msg, args...) }
func (q quiet) Warn(msg string, args ...any)  { q.log.Warn(msg, args...) }
func (q quiet) Error(msg string, args ...any) { q.log.Error(msg, args...) }
