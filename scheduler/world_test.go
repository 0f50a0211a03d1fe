package scheduler_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/scheduler"
	"gridcast/scheduler/cadence"
	"gridcast/scheduler/cadence/cadencetest"
)

// world is a calendar that changes and a record of the runs.
type world struct {
	clock *raceClock

	mu     sync.Mutex
	rounds []cadence.Round
	runs   []string
}

// raceDay returns a world of one weekend, its clock and lights out, from so long before the start at a speed.
func raceDay(t *testing.T, before time.Duration, speed int) (w *world, clock *raceClock, start time.Time) {
	t.Helper()
	start = at(t, lightsOut)
	clock = newRaceClock(start.Add(-before), speed)
	return &world{clock: clock, rounds: []cadence.Round{cadencetest.Weekend(2026022, start)}}, clock, start
}

func (w *world) calendar() cadence.Calendar {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cadencetest.Calendar(w.rounds...)
}

// change applies news about a round.
func (w *world) change(round int, apply func(*cadence.Round)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	apply(&w.rounds[round])
}

// freeze freezes the pick of every round the trigger names.
func (w *world) freeze(t scheduler.Trigger) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range t.Due {
		for i := range w.rounds {
			if w.rounds[i].Key == d.Round {
				w.rounds[i].Frozen = true
			}
		}
	}
}

// record makes a job that records time and reason of each run and then calls f.
func (w *world) record(name string, work cadence.Work, do func(context.Context, scheduler.Trigger) error) scheduler.Job {
	return scheduler.Job{Name: name, Work: work, Run: func(ctx context.Context, t scheduler.Trigger) error {
		w.note("%s  %s: %s", t.At.Format(time.DateTime), name, t)
		if do == nil {
			return nil
		}
		return do(ctx, t)
	}}
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs = append(w.runs, fmt.Sprintf(format, args...))
}

// ran lists the record and clears it.
func (w *world) ran() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	runs := w.runs
	w.runs = nil
	return runs
}

var discard = slog.New(slog.NewTextHandler(io.Discard, nil))

func start(t *testing.T, w *world, cfg scheduler.Config, jobs ...scheduler.Job) *scheduler.Scheduler {
	t.Helper()
	s := must.Get(scheduler.New(cfg, w.clock, w.calendar, discard, jobs...))(t)
	s.Start()
	return s
}

// stop stops a scheduler whose jobs end by themselves.
func stop(t *testing.T, s *scheduler.Scheduler) {
	t.Helper()
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func trigger(t *testing.T, s *scheduler.Scheduler, name, reason string) <-chan error {
	t.Helper()
	return must.Get(s.Trigger(name, reason))(t)
}

// at parses an instant such as "2026-11-22 04:00:00".
func at(t *testing.T, s string) time.Time {
	t.Helper()
	return must.Get(time.Parse(time.DateTime, s))(t)
}

// raceClock runs speed times as fast as real time, from race on.
type raceClock struct {
	race, real time.Time
	speed      time.Duration

	mu     sync.Mutex
	jumped time.Duration
}

func newRaceClock(race time.Time, speed int) *raceClock {
	return &raceClock{race: race, real: time.Now(), speed: time.Duration(speed)}
}

func (c *raceClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.race.Add(c.jumped + time.Since(c.real)*c.speed)
}

// Speed is race seconds in a real second.
func (c *raceClock) Speed() float64 { return float64(c.speed) }

// jump moves the clock, as the suspension of a machine does.
func (c *raceClock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jumped += d
}

// sleepUntil waits for an instant of race time.
func (c *raceClock) sleepUntil(t time.Time) {
	for now := c.Now(); now.Before(t); now = c.Now() {
		time.Sleep(t.Sub(now)/c.speed + 1)
	}
}

// summary joins a record, with one line for consecutive polls of the same reason. It sorts runs that
// started in the same second by name, because jobs run side by side.
func summary(runs []string) string {
	slices.Sort(runs)
	var out strings.Builder
	for i := 0; i < len(runs); {
		when, what, _ := strings.Cut(runs[i], "  ")
		n := 1
		for strings.HasPrefix(what, "poll: ") && i+n < len(runs) && strings.HasSuffix(runs[i+n], "  "+what) {
			n++
		}
		fmt.Fprintf(&out, "%s  %s", when, what)
		if n > 1 {
			last, _, _ := strings.Cut(runs[i+n-1], "  ")
			fmt.Fprintf(&out, ", %d to %s", n, last)
		}
		out.WriteByte('\n')
		i += n
	}
	return out.String()
}
