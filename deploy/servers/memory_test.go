package servers

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
)

// TestReturnMemory: a process returns much garbage once, in its first quiet second, and little garbage never.
func TestReturnMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			must.Succeed(t, "returnMemory", returnMemory(ctx))
		}()
		defer synctest.Wait()
		defer cancel()
		collections := func(after time.Duration) uint32 {
			var before, now runtime.MemStats
			runtime.ReadMemStats(&before)
			must.Advance(after)
			runtime.ReadMemStats(&now)
			return now.NumForcedGC - before.NumForcedGC
		}
		collections(time.Minute) // other tests may have left garbage
		for _, test := range []struct {
			name      string
			allocated int
			after     time.Duration
			want      uint32
		}{
			{"much garbage in a busy second", 2 * muchGarbage, time.Second, 0},
			{"a quiet second after it", 0, time.Second, 2},
			{"later", 0, time.Minute, 0},
			{"little garbage", muchGarbage / 2, time.Minute, 0},
		} {
			held = make([]byte, test.allocated)
			if got := collections(test.after); got != test.want {
				t.Errorf("%s: got %d collections, want %d", test.name, got, test.want)
			}
		}
	})
}

var held []byte // so that the compiler does not omit the allocation
