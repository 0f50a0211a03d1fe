package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
	"gridcast/scheduler"
	"gridcast/scheduler/cadence"
)

// Each run starts at its instant, at any speed: at the first real nanosecond at which the clock has reached it.
func TestRunsStartAtTheirInstant(t *testing.T) {
	for _, speed := range []int{1, 7, 300, 20_000, 1_000_000} {
		t.Run(fmt.Sprintf("speed %d", speed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, clock, start22 := raceDay(t, time.Hour, speed)
				var late []time.Duration
				precise := func(job scheduler.Job) scheduler.Job {
					run := job.Run
					job.Since = clock.Now()
					job.Run = func(ctx context.Context, tr scheduler.Trigger) error {
						late = append(late, tr.At.Sub(tr.Due[0].At))
						return run(ctx, tr)
					}
					return job
				}
				s := start(t, w, scheduler.DefaultConfig(), precise(w.record("freeze", cadence.Freeze, nil)), precise(w.record("build", cadence.Build, nil)))
				clock.sleepUntil(start22.Add(5 * time.Hour))
				stop(t, s)
				want := []string{
					"2026-11-22 03:55:00  freeze: freeze_latest 2026022",
					"2026-11-22 04:00:00  build: lights_out 2026022",
					"2026-11-22 08:00:00  build: race_window_end 2026022",
				}
				must.Equal(t, "runs", want, w.ran())
				for i, d := range late {
					must.Hold(t, d >= 0 && d < time.Duration(speed),
						"run %d started %v of race time after its instant, want less than a real nanosecond", i, d)
				}
			})
		})
	}
}

// A clock that is set back while the scheduler runs delays no job until the old time: polls go on, and an instant that
// comes again is due again.
func TestClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, clock, start22 := raceDay(t, 10*time.Minute, 1)
		jobs := []scheduler.Job{w.record("build", cadence.Build, nil), w.record("note", 0, nil), w.record("poll", cadence.Poll, nil)}
		jobs[1].Every = 10 * time.Minute
		w.rounds[0].WeekendFrom, w.rounds[0].WeekendUntil = start22.Add(24*time.Hour), start22.Add(25*time.Hour) // polls each hour
		w.rounds[0].Frozen, w.rounds[0].Verified = true, true
		for i := range jobs {
			jobs[i].Since = clock.Now()
		}
		s := start(t, w, scheduler.DefaultConfig(), jobs...)
		var parts [][]string
		clock.sleepUntil(start22.Add(30 * time.Second))
		clock.jump(-5 * 24 * time.Hour)
		must.Advance(time.Second)
		s.Update() // as after a change of the calendar
		parts = append(parts, w.ran(), []string{"set back"})
		clock.sleepUntil(start22.Add(-5*24*time.Hour + 20*time.Minute + time.Second))
		clock.jump(5*24*time.Hour - 21*time.Minute)
		parts = append(parts, w.ran(), []string{"set forward"})
		clock.sleepUntil(start22.Add(time.Minute))
		stop(t, s)
		want := "2026-11-22 04:00:00  build: lights_out 2026022\n" +
			"2026-11-22 04:00:00  note: interval\n" +
			"2026-11-22 04:00:00  poll: poll_week\n" +
			"set back  \n" +
			"2026-11-17 04:10:00  note: interval\n" +
			"2026-11-17 04:20:00  note: interval\n" +
			"set forward  \n" +
			"2026-11-22 03:59:02  note: interval\n" +
			"2026-11-22 03:59:02  poll: poll_week\n" +
			"2026-11-22 04:00:00  build: lights_out 2026022\n" +
			"2026-11-22 04:00:00  note: interval\n" +
			"2026-11-22 04:00:00  poll: poll_week\n"
		var got strings.Builder
		for _, part := range parts {
			got.WriteString(summary(part))
		}
		got.WriteString(summary(w.ran()))
		must.Equal(t, "runs", want, got.String())
	})
}

// A retry waits no longer than RetryMax after the clock was set back.
func TestRetryAfterTheClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, clock, start22 := raceDay(t, 10*time.Minute, 1)
		failed := false
		job := w.record("build", cadence.Build, func(context.Context, scheduler.Trigger) error {
			if failed {
				return nil
			}
			failed = true
			return errors.New("the disk is full")
		})
		job.Since = clock.Now()
		cfg := scheduler.DefaultConfig()
		s := start(t, w, cfg, job)
		clock.sleepUntil(start22.Add(time.Second))
		clock.jump(-5 * 24 * time.Hour)
		s.Update() // as after a change of the calendar
		must.Advance(cfg.RetryMax + time.Second)
		status := s.Status()[0]
		must.Hold(t, failed && status.LastError == "" && status.Runs == 2, "after %v: %+v", cfg.RetryMax, status)
		stop(t, s)
	})
}

// A restart in the middle of a run leads to the same work: the second process does the unfinished run of the first at
// its start.
func TestRestartInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, clock, start22 := raceDay(t, time.Minute, 300)
		since := clock.Now()
		job := w.record("build", cadence.Build, func(ctx context.Context, _ scheduler.Trigger) error {
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
			}
			return ctx.Err()
		})
		job.Since = since
		first := start(t, w, scheduler.DefaultConfig(), job)
		clock.sleepUntil(start22.Add(time.Minute))
		killed, cancel := context.WithCancel(t.Context())
		cancel()
		must.Fail(t, "stop: no error, want the run to be cancelled", first.Stop(killed))
		second := start(t, w, scheduler.DefaultConfig(), job)
		clock.sleepUntil(start22.Add(time.Hour))
		stop(t, second)
		want := []string{"2026-11-22 04:00:00  build: lights_out 2026022", "2026-11-22 04:01:00  build: lights_out 2026022"}
		must.Equal(t, "runs", want, w.ran())
	})
}

// Timers run in race time, also when the clock is set.
func TestTimersOfRaceTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newRaceClock(at(t, lightsOut), 60)
		race := scheduler.NewRaceTime(clock, time.Second)
		for _, tt := range []struct {
			name        string
			wait, jump  time.Duration // of race time
			least, most time.Duration // of real time
		}{
			{"90 s", 90 * time.Second, 0, 1500 * time.Millisecond, 1500 * time.Millisecond},
			{"the past", -time.Minute, 0, 0, 0},
			{"a clock that is set forward", time.Hour, time.Hour, 0, time.Second},
			{"a clock that is set back", time.Hour, -time.Hour, 2 * time.Minute, 2 * time.Minute},
		} {
			began, fired := time.Now(), make(chan bool)
			timer := race.AfterFunc(tt.wait, func() { close(fired) })
			clock.jump(tt.jump)
			<-fired
			took := time.Since(began)
			must.Hold(t, took >= tt.least && took <= tt.most,
				"%s: fired after %v of real time, want %v to %v", tt.name, took, tt.least, tt.most)
			must.Hold(t, !timer.Stop(), "%s: a timer that has fired was active", tt.name)
		}
		timer := race.AfterFunc(time.Hour, func() { t.Error("a stopped timer fires") })
		must.Hold(t, timer.Stop() && !timer.Stop(), "a timer is not stopped once")
		must.Advance(2 * time.Minute)
	})
}
