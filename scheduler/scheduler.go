package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/prometheus/client_golang/prometheus"

	"gridcast/scheduler/cadence"
)

// The errors of Trigger, and of what waits for a run.
var (
	ErrUnknownJob = errors.New("unknown job")
	ErrStopped    = errors.New("scheduler is stopped")
)

// Scheduler runs jobs. Its methods are safe for concurrent use.
type Scheduler struct {
	cfg      Config
	clock    clockwork.Clock
	calendar func() cadence.Calendar
	log      *slog.Logger
	metrics  *metrics
	table    *timetable
	runners  []*runner // in the order given to New

	ctx    context.Context // of all runs
	cancel context.CancelFunc

	plan sync.Mutex // held while the schedule is made; taken before a runner's lock

	mu      sync.RWMutex // guards the following
	current cadence.Calendar
	stopped bool
	active  sync.WaitGroup // runs; added to under mu, and not once stopped
}

// New makes a scheduler that Start starts. The clock gives race time. The calendar is asked
// for often: it must answer at once, from memory, and must not call the scheduler.
func New(cfg Config, clock clockwork.Clock, calendar func() cadence.Calendar, log *slog.Logger, jobs ...Job) (*Scheduler, error) {
	if err := errors.Join(cfg.Validate(), validate(jobs)); err != nil {
		return nil, err
	}
	table, err := newTimetable(clock, log)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Scheduler{
		cfg: cfg, clock: clock, calendar: calendar, log: log,
		metrics: newMetrics(jobs), table: table, ctx: ctx, cancel: cancel,
	}
	for _, j := range jobs {
		r := &runner{Scheduler: s, agenda: agenda{job: j}, status: Status{Name: j.Name}}
		s.runners = append(s.runners, r)
		err = errors.Join(err, table.add(j.Name, r.run))
	}
	if err = errors.Join(err, table.every(cfg.Heartbeat, s.Refresh)); err != nil {
		return nil, errors.Join(err, table.stop())
	}
	return s, nil
}

// Start begins to run jobs, those first that have missed something. It does not block, and is
// called once.
func (s *Scheduler) Start() {
	now := s.clock.Now()
	s.mu.Lock()
	s.current = s.calendar()
	s.mu.Unlock()
	for _, r := range s.runners {
		r.begin(now)
	}
	s.table.start()
	s.Refresh()
}

// Trigger has a job run as soon as it is not running, for the reason given; triggers before
// the run begins share it. The channel tells the outcome of that run, once: nil, its error, or
// ErrStopped. A run that fails is tried again with the same reason, of which the channel does
// not tell.
func (s *Scheduler) Trigger(name, reason string) (<-chan error, error) {
	i := slices.IndexFunc(s.runners, func(r *runner) bool { return r.agenda.job.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("trigger %s: %w", name, ErrUnknownJob)
	}
	done := make(chan error, 1)
	if !s.runners[i].ask(request{reason, done}) {
		return nil, fmt.Errorf("trigger %s: %w", name, ErrStopped)
	}
	return done, nil
}

// Refresh makes the schedule anew from the calendar as it is now. It is called after every run
// and at every heartbeat; others need it only to be quicker than that.
func (s *Scheduler) Refresh() {
	s.plan.Lock()
	defer s.plan.Unlock()
	after := s.calendar()
	s.mu.Lock()
	before, stopped := s.current, s.stopped
	s.current = after
	s.mu.Unlock()
	if stopped {
		return
	}
	overtaken := cadence.Overtaken(before, after, s.clock.Now())
	for _, r := range s.runners {
		r.arm(after, overtaken)
	}
}

// Status tells how each job stands, in the order given to New.
func (s *Scheduler) Status() []Status {
	cal, now := s.known(), s.clock.Now()
	all := make([]Status, len(s.runners))
	for i, r := range s.runners {
		all[i] = r.report(cal, now)
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
	s.mu.Unlock()
	for _, r := range s.runners {
		r.dismiss()
	}
	idle := make(chan struct{})
	go func() { s.active.Wait(); close(idle) }()

	err := s.drain(ctx, idle)
	return errors.Join(err, s.table.stop())
}

// drain waits until idle is closed, and cancels the runs when ctx ends.
func (s *Scheduler) drain(ctx context.Context, idle <-chan struct{}) error {
	defer s.cancel()
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
	for _, r := range s.runners {
		if r.report(s.known(), s.clock.Now()).Running {
			running = append(running, r.agenda.job.Name)
		}
	}
	return fmt.Errorf("stop scheduler: jobs %v still run: %w", running, ctx.Err())
}

// known is the calendar as last seen.
func (s *Scheduler) known() cadence.Calendar {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.current
}

// enter counts a run, unless the scheduler is stopped.
func (s *Scheduler) enter() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.stopped {
		return false
	}
	s.active.Add(1)
	return true
}
