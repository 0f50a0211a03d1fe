package blob_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/snapshots/blob"
)

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := blob.Backoff{First: 30 * time.Second, Longest: 5 * time.Minute}
		var waits []time.Duration
		for failures := range 7 {
			wait := b.After(failures)
			waits = append(waits, wait)
			for range 100 {
				if got := b.Jittered(failures); got < wait/2 || got > wait {
					t.Errorf("after %d failures: got a wait of %s, want one from %s to %s", failures, got, wait/2, wait)
				}
			}
		}
		s := time.Second
		if want := []time.Duration{30 * s, 30 * s, 60 * s, 120 * s, 240 * s, 300 * s, 300 * s}; !slices.Equal(waits, want) {
			t.Errorf("got the waits %v, want %v", waits, want)
		}
		if got := b.After(1 << 62); got != b.Longest {
			t.Errorf("after many failures: got %s, want %s", got, b.Longest)
		}
		if got := (blob.Backoff{}).Jittered(1); got != 0 {
			t.Errorf("the zero value waits %s, want no wait", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*s)
		defer cancel()
		began := time.Now()
		if b.Pause(ctx, 1) || time.Since(began) != 10*s {
			t.Errorf("a cancelled pause of 30 seconds: got true or %s, want false after 10s", time.Since(began))
		}
		if !b.Pause(t.Context(), 1) || time.Since(began) < 25*s {
			t.Errorf("a pause of 30 seconds took %s", time.Since(began)-10*s)
		}
	})
}
