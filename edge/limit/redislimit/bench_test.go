package redislimit_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge/limit"
	"gridcast/edge/limit/redislimit"
)

// BenchmarkTake runs 64 requests at a time, of one key and of a thousand.
func BenchmarkTake(b *testing.B) {
	redis := newServer(b)
	for _, mode := range []redislimit.Mode{redislimit.Strict, redislimit.Lease} {
		for _, keys := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%s/keys=%d", mode, keys), func(b *testing.B) {
				source := redis.open(mode, 1)[0]
				defer source.Close()
				counters := make([]limit.Counter, keys)
				for i := range counters {
					counters[i] = source.Counter(fmt.Sprintf("%s of %d in %d", b.Name(), i, b.N), int64(i%limit.Period))
				}
				b.SetParallelism(64 / runtime.GOMAXPROCS(0))
				b.ReportAllocs()
				b.ResetTimer()
				before := cpu(b)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						must.Hold(b, counters[rand.IntN(keys)].Take(time.Now(), 1<<30).Allowed, "refused")
					}
				})
				b.StopTimer()
				b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
				b.ReportMetric(metric(b, source, "gridcast_edge_limit_alone_total")/float64(b.N), "alone/op")
				b.ReportMetric(metric(b, source, "gridcast_edge_limit_redis_asks_total")/float64(b.N), "asks/op")
			})
		}
	}
}

// cpu returns the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
