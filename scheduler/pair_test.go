package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
	"gridcast/scheduler"
	"gridcast/scheduler/cadence"
	"gridcast/scheduler/cadence/cadencetest"
)

// store is shared by two schedulers: a list of the work done, whose length is the
// version. A write names the version it was made from, and only the first one counts.
type store struct {
	mu      sync.Mutex
	done    []deed
	refused int
}

type deed struct {
	what string // the reason and the round
	by   string
	at   time.Time
}

func (s *store) read() []deed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.done)
}

func (s *store) swap(version int, d ...deed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version != len(s.done) {
		s.refused++
		return false
	}
	s.done = append(s.done, d...)
	return true
}

// node is a process that schedules on a store. A test can kill it during its work, and can
// lose the answer to its write.
type node struct {
	name  string
	store *store
	clock *raceClock
	takes time.Duration
	lose  bool
}

// do does the work that no node has done yet. It is the same for every kind of work.
func (n *node) do(ctx context.Context, t scheduler.Trigger) error {
	for {
		done := n.store.read()
		var todo []deed
		for _, d := range t.Due {
			what := fmt.Sprintf("%s %d", d.Reason, d.Round)
			if !slices.ContainsFunc(done, func(d deed) bool { return d.what == what }) {
				todo = append(todo, deed{what, n.name, n.clock.Now()})
			}
		}
		if len(todo) == 0 {
			return nil
		}
		select {
		case <-time.After(n.takes):
		case <-ctx.Done():
			return ctx.Err()
		}
		if n.store.swap(len(done), todo...) {
			if n.lose {
				n.lose = false
				return errors.New("answer lost")
			}
			return nil
		}
	}
}

// start starts the node as a new process that reads the store.
func (n *node) start(t *testing.T, rounds []cadence.Round) *scheduler.Scheduler {
	t.Helper()
	since := n.clock.Now()
	if done := n.store.read(); len(done) > 0 {
		since = done[len(done)-1].at
	}
	cfg := scheduler.DefaultConfig()
	cfg.Look = time.Minute
	s := must.Get(scheduler.New(cfg, n.clock, func() cadence.Calendar { return n.calendar(rounds) }, discard,
		scheduler.Job{Name: "freeze", Work: cadence.Freeze, Run: n.do, Since: since},
		scheduler.Job{Name: "build", Work: cadence.Build, Run: n.do, Since: since}))(t)
	s.Start()
	return s
}

// calendar returns the rounds with the picks in the store.
func (n *node) calendar(rounds []cadence.Round) cadence.Calendar {
	rounds = slices.Clone(rounds)
	done := n.store.read()
	for i, r := range rounds {
		pick := fmt.Sprintf("%s %d", cadence.GridKnown, r.Key)
		rounds[i].Frozen = slices.ContainsFunc(done, func(d deed) bool { return d.what == pick })
	}
	return cadencetest.Calendar(rounds...)
}

// Two schedulers do everything once. The test kills the quicker one in the middle of a build, so the
// other's build counts. The first comes back and loses the answer to a write: nothing is done again.
func TestTwoSchedulers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newRaceClock(at(t, "2026-03-06 12:00:00"), 1)
		shared := &store{}
		rounds := []cadence.Round{
			cadencetest.Weekend(2026001, at(t, "2026-03-08 04:00:00")),
			cadencetest.Weekend(2026002, at(t, "2026-03-15 07:00:00")),
		}
		quick := &node{name: "quick", store: shared, clock: clock, takes: 20 * time.Second}
		slow := &node{name: "slow", store: shared, clock: clock, takes: 30 * time.Second}
		first, second := quick.start(t, rounds), slow.start(t, rounds)

		clock.sleepUntil(at(t, "2026-03-15 07:00:10"))
		killed, cancel := context.WithCancel(t.Context())
		cancel()
		err := first.Stop(killed)
		must.Hold(t, errors.Is(err, context.Canceled), "kill: %v, want the build to be cancelled", err)
		clock.sleepUntil(at(t, "2026-03-15 08:00:00"))
		quick.lose = true
		first = quick.start(t, rounds)
		clock.sleepUntil(at(t, "2026-03-16 12:00:00"))
		stop(t, first)
		stop(t, second)

		done := shared.read()
		got := make([]string, len(done))
		for i, d := range done {
			got[i] = fmt.Sprintf("%s  %s by %s", d.at.Format(time.DateTime), d.what, d.by)
		}
		want := []string{
			"2026-03-07 06:00:00  grid_known 2026001 by quick",
			"2026-03-08 04:00:00  lights_out 2026001 by quick",
			"2026-03-08 08:00:00  race_window_end 2026001 by quick",
			"2026-03-14 09:00:00  grid_known 2026002 by quick",
			"2026-03-15 07:00:00  lights_out 2026002 by slow",
			"2026-03-15 11:00:00  race_window_end 2026002 by quick",
		}
		must.Equal(t, "done", want, got)
		must.Hold(t, shared.refused == 5, "%d writes were refused, want the 5 of the slow one that came second", shared.refused)
		st := first.Status()[1]
		must.Hold(t, st.Failures == 1 && st.LastError == "", "quick, whose answer was lost: %+v, want one failure and then none", st)
	})
}
