package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"gridcast/scheduler/cadence"
)

// distant returns an instant that no clock reaches. gocron needs it in two places: a job that runs only when it is asked
// to needs an instant, and a one-time job whose only instant passes while gocron adds it keeps gocron busy for ever.
func distant(now time.Time) time.Time { return now.AddDate(200, 0, 0) }

// leastInterval is the real time between two runs by a duration job at least. A fast clock has more instants than that,
// and a run catches up with all that have passed.
const leastInterval = 10 * time.Millisecond

// cron is gocron's scheduler.
type cron struct{ gocron.Scheduler }

// newCron makes gocron's scheduler in race time.
func newCron(cfg Config, clock Clock, m *metrics, log *slog.Logger) (cron, error) {
	c, err := gocron.NewScheduler(gocron.WithClock(raceTime{race: clock, look: cfg.Look}), gocron.WithLocation(time.UTC),
		gocron.WithStopTimeout(cfg.StopGrace), gocron.WithMonitor(monitor{m}), gocron.WithLogger(quiet{log}))
	return cron{c}, err
}

// events are the functions that gocron calls around a run.
type events struct {
	before   func() error // an error skips the run
	run      func(context.Context) error
	panicked func(any)
	after    func(error)
}

// timetable is the set of gocron's jobs for one Job. Scheduler.mu guards it.
//
// The lasting job in singleton mode runs the Job's function when it is asked to. Each coming instant has a one-time job
// of its own, and each interval a duration job. They come and go with the calendar, and only ask the lasting job to run.
// A function must not run in them, because gocron cancels the context of a job that it removes, and keeps the
// goroutine of each singleton.
type timetable struct {
	cron    cron
	name    string
	least   time.Duration // leastInterval in race time
	lasting gocron.Job
	planned map[cadence.Due]planned // by the instant; by reason and interval if it has an interval
}

type planned struct {
	id uuid.UUID
	at time.Time // the coming instant
}

func newTimetable(c cron, name string, clock Clock, e events) (*timetable, error) {
	t := &timetable{cron: c, name: name, planned: make(map[cadence.Due]planned)}
	t.least = time.Duration(float64(leastInterval) * clock.Speed())
	var err error
	t.lasting, err = c.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(distant(clock.Now()))), gocron.NewTask(e.run),
		gocron.WithName(name), gocron.WithSingletonMode(gocron.LimitModeWait),
		gocron.WithEventListeners(
			gocron.BeforeJobRunsSkipIfBeforeFuncErrors(func(uuid.UUID, string) error { return e.before() }),
			gocron.AfterJobRuns(func(uuid.UUID, string) { e.after(nil) }),
			gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { e.after(err) }),
			gocron.AfterJobRunsWithPanic(func(_ uuid.UUID, _ string, value any) { e.panicked(value) })))
	return t, err
}

// run asks the lasting job to run as soon as it does not.
func (t *timetable) run() error { return t.lasting.RunNow() }

// update gives each coming instant a job that calls wake, and removes the jobs of instants that have passed or moved.
// An instant that passes meanwhile may have no job.
func (t *timetable) update(coming []cadence.Due, now time.Time, wake func()) error {
	want := make(map[cadence.Due]time.Time, len(coming))
	for _, d := range coming {
		key := d
		if d.Every > 0 {
			key.At = time.Time{}
		}
		want[key] = d.At
	}
	var faults []error
	for key, p := range t.planned {
		if at, ok := want[key]; ok && !at.Before(p.at) {
			t.planned[key] = planned{p.id, at} // a duration job has gone on by itself
			continue
		}
		delete(t.planned, key) // passed, or the clock was set back
		if err := t.cron.RemoveJob(p.id); err != nil && !errors.Is(err, gocron.ErrJobNotFound) {
			faults = append(faults, err)
		}
	}
	for key, at := range want {
		if _, ok := t.planned[key]; ok {
			continue
		}
		options := []gocron.JobOption{gocron.WithName(fmt.Sprintf("%s at %s", t.name, key.Reason)), gocron.WithTags(strconv.FormatInt(key.Round, 10))}
		definition := gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(at, distant(now)))
		if key.Every > 0 {
			times := max(1, math.Ceil(float64(t.least)/float64(key.Every)))
			definition = gocron.DurationJob(time.Duration(times) * key.Every)
			options = append(options, gocron.WithStartAt(gocron.WithStartDateTimePast(at)))
		} else {
			options = append(options, gocron.WithLimitedRuns(1))
		}
		job, err := t.cron.NewJob(definition, gocron.NewTask(wake), options...)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		t.planned[key] = planned{job.ID(), at}
	}
	return errors.Join(faults...)
}

// Intervals calls functions at intervals by one scheduler of gocron. Each stop of gocron keeps a processor busy until the
// goroutines that it waits for have run, so a process stops one scheduler, not one for each function. It is safe for
// concurrent use. A nil *Intervals uses a scheduler of its own for each function.
type Intervals struct{ cron gocron.Scheduler }

// NewIntervals starts a scheduler of gocron. Call Stop once no Every runs.
func NewIntervals() (*Intervals, error) {
	c, err := gocron.NewScheduler(gocron.WithLocation(time.UTC))
	if err != nil {
		return nil, err
	}
	c.Start()
	return &Intervals{c}, nil
}

// Stop stops the scheduler of gocron.
func (i *Intervals) Stop() error { return i.cron.Shutdown() }

// Every calls f at an interval of real time until ctx ends. It leaves out a call while another runs, and waits for the
// running one before it returns. The end of ctx cancels the context of f.
func (i *Intervals) Every(ctx context.Context, interval time.Duration, f func(context.Context)) error {
	if i == nil {
		own, err := NewIntervals()
		if err != nil {
			return err
		}
		return errors.Join(own.Every(ctx, interval, f), own.Stop())
	}
	calling := make(chan struct{}, 1)
	call := func() {
		select {
		case calling <- struct{}{}:
			f(ctx)
			<-calling
		default:
		}
	}
	job, err := i.cron.NewJob(gocron.DurationJob(interval), gocron.NewTask(call)) // not a singleton: gocron would keep its goroutine after the job
	if err != nil {
		return fmt.Errorf("call a function each %v: %w", interval, err)
	}
	<-ctx.Done()
	calling <- struct{}{} // for ever, once the last call has ended: until then gocron's stop would keep a processor busy
	return i.cron.RemoveJob(job.ID())
}

// monitor hands gocron's measurements of the lasting jobs to the metrics.
type monitor struct{ *metrics }

var _ gocron.Monitor = monitor{}

// IncrementJob implements [gocron.Monitor].
func (m monitor) IncrementJob(_ uuid.UUID, name string, _ []string, status gocron.JobStatus) {
	if m.names[name] {
		m.ended(name, status == gocron.Fail)
	}
}

// RecordJobTiming implements [gocron.Monitor].
func (m monitor) RecordJobTiming(began, ended time.Time, _ uuid.UUID, name string, _ []string) {
	if m.names[name] {
		m.duration.WithLabelValues(name).Observe(ended.Sub(began).Seconds())
	}
}

// quiet logs gocron's information at debug level, because operators do not need it.
type quiet struct{ *slog.Logger }

// Info implements [gocron.Logger].
func (q quiet) Info(msg string, args ...any) { q.Debug(msg, args...) }
