package scheduler_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
	"gridcast/scheduler"
	"gridcast/scheduler/cadence"
	"gridcast/scheduler/cadence/cadencetest"
)

// lightsOut is the start of the round in most of these tests.
const lightsOut = "2026-11-22 04:00:00"

// Triggers during a run cause one more run after it, however many there are; waiting triggers
// share a run.
func TestTriggersCoalesce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{clock: newRaceClock(at(t, lightsOut), 1)}
		finish := make(chan error)
		s := start(t, w, scheduler.DefaultConfig(), w.record("build", 0, func(context.Context, scheduler.Trigger) error {
			return <-finish
		}))
		first := trigger(t, s, "build", "source changed")
		synctest.Wait()
		during := []<-chan error{
			trigger(t, s, "build", "ledger"), trigger(t, s, "build", "operator"), trigger(t, s, "build", "ledger"),
		}
		synctest.Wait()
		st := s.Status()[0]
		must.Hold(t, st.Running && st.Pending && st.Runs == 0, "during the first run: %+v, want one running and one pending", st)
		finish <- nil
		must.Succeed(t, "first", <-first)
		finish <- nil
		for _, done := range during {
			must.Succeed(t, "during", <-done)
		}
		synctest.Wait()
		want := []string{
			"2026-11-22 04:00:00  build: source changed",
			"2026-11-22 04:00:00  build: ledger; operator",
		}
		must.Equal(t, "runs", want, w.ran())
		st = s.Status()[0]
		must.Hold(t, !st.Running && !st.Pending && st.Runs == 2, "afterwards: %+v, want two runs and nothing to do", st)
		stop(t, s)
	})
}

// The scheduler tries a failed run again with growing waits and the same reasons, and sends its
// waiters the first outcome only.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{clock: newRaceClock(at(t, lightsOut), 1)}
		cfg := scheduler.DefaultConfig()
		cfg.RetryMin, cfg.RetryMax = 10*time.Second, 30*time.Second
		broken := errors.New("store does not answer")
		s := start(t, w, cfg, w.record("build", 0, func(_ context.Context, tr scheduler.Trigger) error {
			if tr.Attempt < 5 {
				return broken
			}
			return nil
		}))
		must.Fail(t, "outcome", <-trigger(t, s, "build", "operator"), broken)
		synctest.Wait()
		if st := s.Status()[0]; st.NextReason != scheduler.Retry || !st.Next.Equal(at(t, "2026-11-22 04:00:10")) {
			t.Errorf("after the error: %+v, want a retry at 04:00:10", st)
		}
		must.Advance(time.Hour)
		want := []string{
			"2026-11-22 04:00:00  build: operator",
			"2026-11-22 04:00:10  build: operator",
			"2026-11-22 04:00:30  build: operator",
			"2026-11-22 04:01:00  build: operator",
			"2026-11-22 04:01:30  build: operator",
		}
		must.Equal(t, "runs", want, w.ran())
		st := s.Status()[0]
		must.Hold(t, st.LastError == "" && st.Runs == 5 && st.Failures == 4 && st.Next.IsZero(),
			"at last: %+v, want 5 runs, 4 failures and none to come", st)
		stop(t, s)
	})
}

// The scheduler repeats a failed freeze ever more often until lights out, and not once after.
func TestFreezeIsNotRetriedAfterLightsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, clock, start22 := raceDay(t, 6*time.Minute, 1)
		var last time.Time
		attempts := 0
		job := scheduler.Job{Name: "freeze", Work: cadence.Freeze, Since: clock.Now(), Run: func(_ context.Context, tr scheduler.Trigger) error {
			last, attempts = tr.At, tr.Attempt
			return errors.New("ledger does not answer")
		}}
		s := start(t, w, scheduler.DefaultConfig(), job)
		clock.sleepUntil(start22.Add(time.Hour))
		synctest.Wait()
		must.Hold(t, last.Before(start22) && start22.Sub(last) <= 5*time.Second,
			"last attempt %d was at %v, want one in the last 5 s before %v", attempts, last, start22)
		st := s.Status()[0]
		must.Hold(t, !st.Pending && st.Next.IsZero() && st.LastError != "",
			"after lights out: %+v, want nothing to come and the error still to be seen", st)
		stop(t, s)
	})
}

// At the start the scheduler catches up with the work that was missed while nothing ran, from the
// instant up to which the job is known to be done.
func TestCatchUpAfterRestart(t *testing.T) {
	tests := []struct {
		name, since, now string
		want             []string
	}{
		{"before the freeze", "2026-11-22 03:00:00", "2026-11-22 03:54:59", nil},
		{"between freeze and start", "2026-11-22 03:00:00", "2026-11-22 03:59:58", []string{
			"2026-11-22 03:59:58  freeze: freeze_latest 2026022",
		}},
		{"at the start", "2026-11-22 03:00:00", lightsOut, []string{
			"2026-11-22 04:00:00  build: lights_out 2026022",
		}},
		{"after the race", "2026-11-22 03:00:00", "2026-11-22 09:00:00", []string{
			"2026-11-22 09:00:00  build: lights_out 2026022; race_window_end 2026022",
		}},
		{"built since", lightsOut, "2026-11-22 07:00:00", nil},
		{"done ahead of a clock set back", "2026-11-22 05:00:00", "2026-11-22 03:50:00", nil},
		{"unknown for how long", "", "2026-11-22 03:50:00", []string{
			"2026-11-22 03:50:00  freeze: grid_known 2026022",
		}},
		{"a year later", "2026-11-22 03:00:00", "2027-10-02 00:00:00", []string{
			"2027-10-02 00:00:00  build: lights_out 2026022; race_window_end 2026022; year_turn; calendar_known",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{clock: newRaceClock(at(t, tt.now), 1), rounds: []cadence.Round{cadencetest.Weekend(2026022, at(t, lightsOut))}}
				jobs := []scheduler.Job{w.record("freeze", cadence.Freeze, nil), w.record("build", cadence.Build, nil)}
				if tt.since != "" {
					jobs[0].Since, jobs[1].Since = at(t, tt.since), at(t, tt.since)
				}
				s := start(t, w, scheduler.DefaultConfig(), jobs...)
				synctest.Wait()
				stop(t, s)
				must.Equal(t, "runs", tt.want, w.ran())
			})
		})
	}
}

// A machine that slept through lights out runs the due jobs as soon as it is awake.
func TestCatchUpAfterSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, clock, _ := raceDay(t, 3*time.Hour, 1)
		jobs := []scheduler.Job{w.record("freeze", cadence.Freeze, nil), w.record("build", cadence.Build, nil)}
		jobs[0].Since, jobs[1].Since = clock.Now(), clock.Now()
		s := start(t, w, scheduler.DefaultConfig(), jobs...)
		must.Advance(30*time.Second + scheduler.DefaultConfig().Look/2) // between two looks at the clock
		clock.jump(8 * time.Hour)
		must.Advance(scheduler.DefaultConfig().Look)
		want := []string{"2026-11-22 09:00:31  build: lights_out 2026022; race_window_end 2026022"}
		must.Equal(t, "runs", want, w.ran())
		stop(t, s)
	})
}

// An interval counts in UTC alone, and one run follows a long run, not many.
func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newRaceClock(at(t, "2026-11-22 04:00:07"), 1)
		w := &world{clock: clock}
		job := w.record("prune", 0, func(_ context.Context, tr scheduler.Trigger) error {
			if tr.At.Minute() == 20 {
				time.Sleep(25 * time.Minute)
			}
			return nil
		})
		job.Every, job.Since = 10*time.Minute, clock.Now()
		s := start(t, w, scheduler.DefaultConfig(), job)
		clock.sleepUntil(at(t, "2026-11-22 05:00:30"))
		stop(t, s)
		want := []string{
			"2026-11-22 04:10:00  prune: interval",
			"2026-11-22 04:20:00  prune: interval",
			"2026-11-22 04:45:00  prune: interval",
			"2026-11-22 04:50:00  prune: interval",
			"2026-11-22 05:00:00  prune: interval",
		}
		must.Equal(t, "runs", want, w.ran())
	})
}
