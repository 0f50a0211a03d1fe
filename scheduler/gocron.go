package scheduler

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
)

// timetable is what the scheduler needs of gocron: for every name one instant, at which a
// function is called, and never two calls for one name at a time.
//
// A call may come when there is nothing to do, and setting a name may lose a call that is just
// on its way. So functions must look for themselves what there is to do, and whoever sets a
// name looks afterwards whether a call is needed.
type timetable struct {
	cron    gocron.Scheduler
	clock   clockwork.Clock
	stopped atomic.Bool

	mu   sync.Mutex // serialises set and call, so that no call meets a job being replaced
	jobs map[string]entry
}

type entry struct {
	job  gocron.Job
	call func()
}

// stopTimeout bounds how long gocron waits, in a busy loop, for what is still running when it
// is stopped. The scheduler has waited before, so this is spent only if a job hangs.
const stopTimeout = time.Second

func newTimetable(clock clockwork.Clock, log *slog.Logger) (*timetable, error) {
	cron, err := gocron.NewScheduler(
		gocron.WithClock(clock),
		gocron.WithLocation(time.UTC),
		gocron.WithLogger(quiet{log}),
		gocron.WithStopTimeout(stopTimeout),
	)
	if err != nil {
		return nil, fmt.Errorf("make timetable: %w", err)
	}
	return &timetable{cron: cron, clock: clock, jobs: make(map[string]entry)}, nil
}

// add enters a name that is never called until it is set.
func (t *timetable) add(name string, call func()) error {
	definition, options := t.plan(name, time.Time{})
	job, err := t.cron.NewJob(definition, gocron.NewTask(call), options...)
	if err != nil {
		return fmt.Errorf("enter job %s: %w", name, err)
	}
	t.jobs[name] = entry{job, call}
	return nil
}

// every has a function called at an interval. It needs no name, for it is never set.
func (t *timetable) every(interval time.Duration, call func()) error {
	_, err := t.cron.NewJob(gocron.DurationJob(interval), gocron.NewTask(call),
		gocron.WithSingletonMode(gocron.LimitModeReschedule))
	if err != nil {
		return fmt.Errorf("enter heartbeat: %w", err)
	}
	return nil
}

// set replaces the instant of a name; the zero time means never.
func (t *timetable) set(name string, at time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.jobs[name]
	definition, options := t.plan(name, at)
	if _, err := t.cron.Update(e.job.ID(), definition, gocron.NewTask(e.call), options...); err != nil {
		return fmt.Errorf("set job %s to %v: %w", name, at, err)
	}
	return nil
}

// call has the function of a name called as soon as it is not running.
func (t *timetable) call(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		err := t.jobs[name].job.RunNow()
		// gocron gives up when its own loop is busy for 100 ms; a call too many does no harm.
		if !errors.Is(err, gocron.ErrJobRunNowFailed) || t.stopped.Load() {
			return err
		}
	}
}

func (t *timetable) start() { t.cron.Start() }

func (t *timetable) stop() error {
	t.stopped.Store(true)
	if err := t.cron.Shutdown(); err != nil {
		return fmt.Errorf("stop timetable: %w", err)
	}
	return nil
}

func (t *timetable) plan(name string, at time.Time) (gocron.JobDefinition, []gocron.JobOption) {
	return gocron.CronJob("", false), []gocron.JobOption{
		gocron.WithName(name),
		gocron.WithCronImplementation(once{at, t.clock}),
		gocron.WithSingletonMode(gocron.LimitModeWait),
		// Otherwise gocron plans the next run before this one, from a calendar that it changes.
		gocron.WithIntervalFromCompletion(),
	}
}

// once is a cron expression that holds for a single instant.
type once struct {
	at    time.Time
	clock clockwork.Clock
}

var _ gocron.Cron = once{}

// never is far enough ahead not to be met, and near enough for any clock's arithmetic.
const never = 10 * 365 * 24 * time.Hour

// IsValid has nothing to check: there is no crontab.
func (once) IsValid(string, *time.Location, time.Time) error { return nil }

// Next is the instant itself from any time before it. gocron asks again from the instant it
// was told when it sees that it has it planned already, and drops the plan for the answer:
// while that instant is ahead, the answer stays as good as the same.
func (o once) Next(last time.Time) time.Time {
	if last.Before(o.at) {
		return o.at
	}
	if now := o.clock.Now(); !o.at.IsZero() && last.After(now) && last.Sub(o.at) < time.Second {
		return last.Add(1)
	}
	return last.Add(never)
}

// quiet hands gocron's messages on as what they are to an operator: details.
type quiet struct{ log *slog.Logger }

func (q quiet) Debug(msg string, args ...any) { q.log.Debug(msg, args...) }
func (q quiet) Info(msg string, args ...any)  { q.log.Debug(msg, args...) }
func (q quiet) Warn(msg string, args ...any)  { q.log.Warn(msg, args...) }
func (q quiet) Error(msg string, args ...any) { q.log.Error(msg, args...) }
