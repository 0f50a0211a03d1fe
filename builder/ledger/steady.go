package ledger

import (
	"context"
	"sync"
	"time"
)

// StepAccepted is the time after which Steady accepts a step of the wall clock.
const StepAccepted = 10 * time.Minute

// Steady returns a clock that cannot be set, for Ledger.UseClock where the store has none. It starts at the time
// of wall and advances by elapsed, which reads a monotonic clock. A wall clock that is set while the process runs
// therefore differs from it.
//
// If a step of the wall clock lasts for StepAccepted, Steady accepts it: the machine may have slept, while its
// monotonic clock stood still, or the wall clock may have been wrong before.
func Steady(wall func() time.Time, elapsed func() time.Duration) Clock {
	var (
		mu      sync.Mutex
		zero    = wall().Round(0).Add(-elapsed()) // the instant at which elapsed was 0
		step    time.Duration                     // by how much the wall clock was found off; 0: it was not
		stepped time.Duration                     // elapsed when it was first found so
	)
	return func(context.Context) (time.Time, time.Duration, error) {
		mu.Lock()
		defer mu.Unlock()
		now := elapsed()
		off := wall().Round(0).Sub(zero.Add(now))
		switch {
		case off.Abs() <= MaxAhead:
			step = 0
		case step == 0 || (off-step).Abs() > MaxAhead:
			step, stepped = off, now
		case now-stepped >= StepAccepted:
			zero, step = zero.Add(off), 0
		}
		return zero.Add(now), 0, nil
	}
}
