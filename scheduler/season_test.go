package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/scheduler"
	"gridcast/scheduler/cadence"
	"gridcast/scheduler/cadence/cadencetest"
)

// A season with a cancelled round, a postponed round that comes back, a round whose
// start moves forward so late that the freeze is overdue at once, and a round whose source
// fails when the grid is known. The list of runs is the same at any speed of the clock.
func TestSeason(t *testing.T) {
	for _, speed := range []int{2000, 100} {
		t.Run(fmt.Sprintf("speed %d", speed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testSeason(t, speed) })
		})
	}
}

func testSeason(t *testing.T, speed int) {
	clock := newRaceClock(at(t, "2026-03-05 00:00:00"), speed)
	w := &world{clock: clock, rounds: []cadence.Round{
		cadencetest.Weekend(2026001, at(t, "2026-03-08 04:00:00")),
		cadencetest.Weekend(2026002, at(t, "2026-03-12 07:00:00")),
		cadencetest.Weekend(2026003, at(t, "2026-03-15 05:00:00")),
		cadencetest.Weekend(2026004, at(t, "2026-03-22 15:00:00")),
	}}
	down := false // the source, when a grid is known
	freeze := w.record("freeze", cadence.Freeze, func(_ context.Context, tr scheduler.Trigger) error {
		if down && tr.Due[0].Reason == cadence.GridKnown && tr.Attempt < 4 {
			return errors.New("source is down")
		}
		clock.sleepUntil(tr.At.Add(20 * time.Second))
		w.freeze(tr)
		return nil
	})
	cfg := scheduler.DefaultConfig()
	cfg.CatchUp = time.Minute

	s := start(t, w, cfg,
		w.record("poll", cadence.Poll, nil), freeze,
		w.record("build", cadence.Build, nil), w.record("verify", cadence.Verify, nil))

	for _, news := range []struct {
		at    string
		text  string
		round int
		apply func(*cadence.Round)
	}{
		{"2026-03-08 06:20:10", "result verified", 0, func(r *cadence.Round) { r.Verified = true }},
		{"2026-03-10 08:00:10", "cancelled", 1, cadencetest.Off},
		{"2026-03-14 02:00:10", "postponed", 2, cadencetest.Off},
		{"2026-03-16 12:00:10", "comes back on 2026-03-18", 2, func(r *cadence.Round) { *r = cadencetest.Weekend(2026003, at(t, "2026-03-18 05:00:00")) }},
		{"2026-03-16 12:30:10", "source goes down", 2, func(*cadence.Round) { down = true }},
		{"2026-03-18 12:00:10", "result verified", 2, func(r *cadence.Round) { r.Verified = true }},
		{"2026-03-20 09:00:10", "grid will not be known", 3, func(r *cadence.Round) { r.GridKnown = time.Time{} }},
		{"2026-03-22 13:57:10", "start brought forward to 14:00", 3, func(r *cadence.Round) { cadencetest.StartAt(r, at(t, "2026-03-22 14:00:00")) }},
	} {
		clock.sleepUntil(at(t, news.at))
		synctest.Wait()
		w.change(news.round, news.apply)
		w.note("%s  -- %d %s", news.at, w.rounds[news.round].Key, news.text)
		trigger(t, s, "build", news.text)
		synctest.Wait()
	}
	clock.sleepUntil(at(t, "2026-03-24 03:00:00"))
	stop(t, s)

	runs, nights := w.ran(), 0
	runs = slices.DeleteFunc(runs, func(run string) bool {
		night := strings.HasSuffix(run, " 02:30:00  verify: nightly")
		if night {
			nights++
		}
		return night
	})
	must.Hold(t, nights == 20, "verified in %d nights, want 20", nights)
	golden.File(t, "testdata/season.txt", summary(runs))
}
