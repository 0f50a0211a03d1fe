package snapshots_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// at returns a store that runs a function right before its nth call. did says whether that call came.
func at(s blob.Store, n int64, do func()) (store blob.Store, did func() bool) {
	var calls atomic.Int64 // a rollback and a prune have several at once
	return faultblob.Wrap(s, func(context.Context, faultblob.Call) faultblob.Fate {
		if calls.Add(1) == n {
			do()
		}
		return faultblob.Fate{}
	}), func() bool { return calls.Load() >= n }
}

// twoOperators prepares a store with three old versions, and the action of each operator.
func twoOperators(t *testing.T) (s blob.Store, rollback, prune func(blob.Store) error) {
	clock := &clock{now: time.Now()}
	s = memblob.New(memblob.Clock(clock.Now))
	for _, body := range []string{"d1", "d2", "d3"} {
		publish(t, s, bodies{"drivers": body, "calendar/2024": "c1"})
	}
	clock.now = clock.now.Add(2 * snapshots.PruneAge)
	rollback = func(s blob.Store) error {
		p := snapshots.Publisher{Store: s, Workers: 1}
		_, err := p.Rollback(t.Context(), 1, "operator", "wrong result", raceDay)
		return err
	}
	prune = func(s blob.Store) error {
		_, err := snapshots.Prune(t.Context(), s, 1, clock.now, false)
		return err
	}
	return s, rollback, prune
}

// One operator prunes while another rolls back to a version that the prune removes. The current version stays whole,
// whichever of them is first at any call.
func TestRollbackAndPrune(t *testing.T) {
	for _, test := range []struct {
		name  string
		outer func(rollback, prune func(blob.Store) error) (outer, inner func(blob.Store) error)
	}{
		{"prune during rollback", func(rollback, prune func(blob.Store) error) (_, _ func(blob.Store) error) { return rollback, prune }},
		{"rollback during prune", func(rollback, prune func(blob.Store) error) (_, _ func(blob.Store) error) { return prune, rollback }},
	} {
		t.Run(test.name, func(t *testing.T) {
			refused, done := 0, 0
			for n := int64(1); ; n++ {
				s, rollback, prune := twoOperators(t)
				outer, inner := test.outer(rollback, prune)
				var innerErr error
				interrupted, did := at(s, n, func() { innerErr = inner(s) })
				outerErr := outer(interrupted)
				if !did() {
					break
				}
				if outerErr != nil || innerErr != nil {
					refused++
				} else {
					done++
				}
				result, err := snapshots.Verify(t.Context(), s, 0, nil)
				if err != nil || len(result.Faults) > 0 {
					t.Errorf("call %d: version %d is current with faults %v, %v", n, result.Version, result.Faults, err)
				}
			}
			if done == 0 || refused == 0 {
				t.Errorf("%d interruptions were refused and %d were not: want some of both", refused, done)
			}
			t.Logf("%d interruptions: one operator refused in %d", refused+done, refused)
		})
	}
}
