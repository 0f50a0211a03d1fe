package servers

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"gridcast/scheduler"
)

const (
	// muchGarbage is the amount of allocated bytes from which returning garbage is worth a collection.
	muchGarbage = 16 << 20
	// quietSecond is the most that a process allocates in a second between two versions: it only polls the store.
	quietSecond = 1 << 20
)

// returnMemory returns the garbage of loading and building to the system, until ctx ends. The Go runtime keeps as much
// free memory as it has in use. A process that has allocated much since the last return, and hardly anything for a
// second, will not need it soon.
func returnMemory(ctx context.Context) error {
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	last, returned := uint64(0), uint64(0)
	return scheduler.Every(ctx, time.Second, func(context.Context) {
		metrics.Read(allocated)
		now := allocated[0].Value.Uint64()
		if now-last < quietSecond && now-returned > muchGarbage {
			runtime.GC() // a pool keeps its encoders until the second collection
			debug.FreeOSMemory()
			returned = now
		}
		last = now
	})
}
