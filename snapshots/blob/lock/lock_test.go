package lock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob/lock"
)

// TestTimePasses: the clock of a bubble goes on while goroutines wait for a lock, one goroutine at a time has it, and each
// gets it.
func TestTimePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lock.Lock
		held, most, turns := 0, 0, 0
		for range 5 {
			go func() {
				l.Lock()
				defer l.Unlock()
				held++
				most = max(most, held)
				time.Sleep(time.Minute)
				held--
				turns++
			}()
		}
		must.Advance(6 * time.Minute)
		must.Hold(t, most == 1 && turns == 5, "%d goroutines held the lock at once, and %d had it; want 1 and 5", most, turns)
	})
}

// TestFreeUnlock: unlocking a free lock is a fault of the program.
func TestFreeUnlock(t *testing.T) {
	defer func() { must.Hold(t, recover() != nil, "the unlocking of a free lock did not panic") }()
	new(lock.Lock).Unlock()
}
