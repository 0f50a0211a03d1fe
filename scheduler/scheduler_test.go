package scheduler_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/scheduler"
	"gridcast/scheduler/cadence"
)

func TestStopWaitsForRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{clock: newRaceClock(at(t, lightsOut), 1)}
		var s *scheduler.Scheduler
		s = start(t, w, scheduler.DefaultConfig(), w.record("build", 0, func(ctx context.Context, _ scheduler.Trigger) error {
			time.Sleep(20 * time.Second)
			_, err := s.Trigger("build", "after this one") // which is too late by then
			return errors.Join(ctx.Err(), err)
		}))
		running := trigger(t, s, "build", "operator")
		must.Advance(scheduler.DefaultConfig().Look)
		waiting := trigger(t, s, "build", "ledger")
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		must.Succeed(t, "stop", s.Stop(ctx))
		err := <-running
		must.Hold(t, err == nil, "run under way: %v, want it undisturbed", err)
		must.Fail(t, "run not begun", <-waiting, scheduler.ErrStopped)
		must.Fail(t, "trigger", must.Err(s.Trigger("build", "too late")), scheduler.ErrStopped)
		must.Advance(time.Hour)
		got := w.ran()
		must.Hold(t, len(got) == 1, "ran %q, want one run", got)
	})
}

func TestStopCancelsAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{clock: newRaceClock(at(t, lightsOut), 1)}
		s := start(t, w, scheduler.DefaultConfig(), w.record("build", 0, func(ctx context.Context, _ scheduler.Trigger) error {
			<-ctx.Done()
			return ctx.Err()
		}))
		running := trigger(t, s, "build", "operator")
		must.Advance(scheduler.DefaultConfig().Look)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		began := time.Now()
		must.Fail(t, "stop", s.Stop(ctx), context.DeadlineExceeded)
		took := time.Since(began)
		must.Hold(t, took == 30*time.Second, "stop took %v, want the 30 s of its deadline", took)
		must.Fail(t, "run", <-running, context.Canceled)
	})
}

// TestStopWaitsForTheLast: a run that ends a while after its context keeps no processor busy: a busy goroutine would stop the
// clock of the bubble.
func TestStopWaitsForTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{clock: newRaceClock(at(t, lightsOut), 1)}
		s := start(t, w, scheduler.DefaultConfig(), w.record("build", 0, func(ctx context.Context, _ scheduler.Trigger) error {
			<-ctx.Done()
			time.Sleep(2 * time.Second)
			return ctx.Err()
		}))
		trigger(t, s, "build", "operator")
		must.Advance(scheduler.DefaultConfig().Look)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		began := time.Now()
		must.Fail(t, "stop", s.Stop(ctx), scheduler.ErrCancelled)
		took := time.Since(began)
		must.Hold(t, took == 32*time.Second, "stop took %v, want 32 s", took)
	})
}

// Stop names a job that ignores its context.
func TestStopNamesWhatHangs(t *testing.T) {
	cfg := scheduler.DefaultConfig()
	cfg.StopGrace = time.Millisecond
	begun, release := make(chan bool), make(chan bool)
	s := start(t, &world{clock: newRaceClock(at(t, lightsOut), 1)}, cfg,
		scheduler.Job{Name: "poll", Run: func(context.Context, scheduler.Trigger) error { return nil }},
		scheduler.Job{Name: "build", Run: func(context.Context, scheduler.Trigger) error {
			close(begun)
			<-release
			return nil
		}})
	running := trigger(t, s, "build", "operator")
	<-begun
	killed, cancel := context.WithCancel(t.Context())
	cancel()
	golden.Sentence(t, "a job does not stop", s.Stop(killed))
	close(release)
	must.Succeed(t, "run", <-running)
}

func TestPanicIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{clock: newRaceClock(at(t, lightsOut), 1)}
		s := start(t, w, scheduler.DefaultConfig(),
			w.record("build", 0, func(context.Context, scheduler.Trigger) error { panic("no such driver") }),
			w.record("poll", 0, nil))
		golden.Sentence(t, "a job panics", <-trigger(t, s, "build", "operator"))
		must.Succeed(t, "another job", <-trigger(t, s, "poll", "operator"))
		stop(t, s)
	})
}

func TestUnknownJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, &world{clock: newRaceClock(at(t, lightsOut), 1)}, scheduler.DefaultConfig())
		must.Fail(t, "trigger", must.Err(s.Trigger("biuld", "typo")), scheduler.ErrUnknownJob)
		stop(t, s)
	})
}

func TestStatusAndMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, clock, start22 := raceDay(t, time.Hour, 60)
		build := w.record("build", cadence.Build, func(_ context.Context, tr scheduler.Trigger) error {
			time.Sleep(2 * time.Second)
			if tr.Attempt == 1 {
				return errors.New("store does not answer")
			}
			return nil
		})
		build.Since = clock.Now()
		cfg := scheduler.DefaultConfig()
		cfg.Look = 10 * time.Millisecond
		s := start(t, w, cfg, build)
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(s.Collector())

		want := []scheduler.JobStatus{{Name: "build", Next: start22, NextReason: cadence.LightsOut, NextRound: 2026022}}
		must.Equal(t, "at first", want, s.Status())
		clock.sleepUntil(start22.Add(time.Hour))
		synctest.Wait()
		got := s.Status()[0]
		want[0] = scheduler.JobStatus{
			Name: "build", Next: start22.Add(4 * time.Hour), NextReason: cadence.RaceWindowEnd, NextRound: 2026022,
			// Two seconds of work are two minutes of race time.
			LastEnd: start22.Add(4*time.Minute + 5*time.Second), LastReason: "lights_out 2026022",
			Runs: 2, Failures: 1,
		}
		got.LastEnd = got.LastEnd.Truncate(time.Second)
		must.Equal(t, "afterwards", want[0], got)
		wantMetrics := map[string]float64{
			"gridcast_job_runs_total": 2, "gridcast_job_failures_total": 1, "gridcast_job_duration_seconds": 4,
			"gridcast_job_running": 0, "gridcast_job_caught_up_total": 0,
			"gridcast_job_last_success_timestamp_seconds": float64(clock.real.Add(64*time.Second + 84*time.Millisecond).Unix()),
		}
		must.Equal(t, "metrics", wantMetrics, gather(t, registry))
		stop(t, s)
	})
}

// gather reads the values of metrics with one series each: for a histogram the sum, for an
// instant whole seconds.
func gather(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families := must.Get(registry.Gather())(t)
	values := make(map[string]float64)
	for _, f := range families {
		m := f.GetMetric()[0]
		v := m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetHistogram().GetSampleSum()
		values[f.GetName()] = float64(int64(v))
	}
	return values
}

// TestEvery: an interval with gocron's scheduler of its own, and three that share one. Each leaves out the calls that fall due
// during a call, ends by itself, and waits for a running call, however long that takes. Meanwhile it keeps no processor
// busy: a busy goroutine would stop the clock of the bubble.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var own *scheduler.Intervals
		shared := must.Get(scheduler.NewIntervals())(t)
		var beside sync.WaitGroup
		every := func(by *scheduler.Intervals, until, length time.Duration, want int) {
			beside.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), until)
				defer cancel()
				calls, ended := 0, 0
				must.Do(t, by.Every(ctx, time.Second, func(context.Context) {
					calls++
					time.Sleep(length)
					ended++
				}))
				must.Hold(t, calls == want && ended == want, "%d calls of %s began and %d ended, want %d of each", calls, length, ended, want)
			})
		}
		every(own, 1500*time.Millisecond, time.Minute, 1)
		every(shared, 1500*time.Millisecond, time.Minute, 1)
		every(shared, 9500*time.Millisecond, 2500*time.Millisecond, 3)
		every(shared, 9500*time.Millisecond, 0, 9)
		beside.Wait()
		must.Hold(t, len(shared.Jobs()) == 0, "gocron still has jobs of ended intervals")
		must.Do(t, shared.Stop())
	})
}
