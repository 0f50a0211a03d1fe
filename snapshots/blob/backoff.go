package blob

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is the wait before another attempt. It doubles with every failure in a row, from First to
// Longest.
type Backoff struct{ First, Longest time.Duration }

// After returns the wait after a number of failures in a row.
func (b Backoff) After(failures int) time.Duration {
	wait := b.First
	for n := 1; n < failures && wait < b.Longest; n++ {
		wait *= 2
	}
	return min(wait, b.Longest)
}

// Jittered is After less a random part of at most a half, so that processes do not meet again.
func (b Backoff) Jittered(failures int) time.Duration {
	wait := b.After(failures)
	return wait - rand.N(wait/2+1) //nolint:gosec // G404: jitter
}

// Pause waits as long as Jittered says. It returns false if ctx ends first.
func (b Backoff) Pause(ctx context.Context, failures int) bool {
	return Sleep(ctx, b.Jittered(failures))
}

// Sleep waits. It returns false if ctx ends first.
func Sleep(ctx context.Context, wait time.Duration) bool {
	select {
	case <-time.After(wait):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
