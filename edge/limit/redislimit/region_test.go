package redislimit_test

import (
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge/limit"
	"gridcast/edge/limit/redislimit"
)

// ask sends requests of a key one after the other, and returns how many were allowed, and each wait.
func ask(c limit.Counter, requests, perMinute int) (allowed int, waits []time.Duration) {
	for range requests {
		began := time.Now()
		if take(c, perMinute).Allowed {
			allowed++
		}
		waits = append(waits, time.Since(began))
	}
	slices.Sort(waits)
	return allowed, waits
}

// TestAnotherRegion has an edge beside Redis and one that is 80 ms away. They share a limit as the mode promises. Then the
// link is cut: each edge counts for itself, and no client is refused below the limit. It prints the waits for region.md.
func TestAnotherRegion(t *testing.T) {
	const perMinute, requests = 60, 70
	for _, mode := range []redislimit.Mode{redislimit.Lease, redislimit.Strict} {
		s := newServer(t)
		var link sync.Mutex // held while the link is cut
		far := s.behind(&link).far(80 * time.Millisecond)
		var sources []*redislimit.Source
		for _, cfg := range []redislimit.Config{redislimit.Patient(s.config(mode)), redislimit.Patient(far.config(mode)), far.config(mode)} {
			cfg.Log = slog.New(slog.DiscardHandler)
			source := must.Get(redislimit.Open(t.Context(), cfg))(t)
			t.Cleanup(source.Close)
			sources = append(sources, source)
		}
		for _, source := range sources {
			must.Until(t, "Redis counts", func() bool { return metric(t, source, "gridcast_edge_limit_redis_up") == 1 })
			must.Until(t, "all edges known", func() bool { return metric(t, source, "gridcast_edge_limit_edges") == 3 })
		}
		offset := windowStart()
		sums, waits := [3]int{}, [3][]time.Duration{}
		together := func(key string, edges ...int) (sum int) {
			var running sync.WaitGroup
			for _, i := range edges {
				running.Go(func() { sums[i], waits[i] = ask(async(sources[i], key, offset), requests, perMinute) })
			}
			running.Wait()
			for _, i := range edges {
				sum += sums[i]
			}
			return sum
		}
		middle := func(i int) (half, longest time.Duration) {
			return waits[i][requests/2].Round(time.Microsecond), waits[i][requests-1].Round(time.Microsecond)
		}
		sum := together("linked", 0, 1)
		half, longest := middle(1)
		t.Logf("%s, linked: %d of %d allowed; at the far edge half waited %v, the longest %v", mode, sum, perMinute, half, longest)
		must.Hold(t, sum <= perMinute+1 && sum > perMinute/2 && (mode == redislimit.Lease || sum == perMinute), "%s: %d requests are allowed, want %d", mode, sum, perMinute)
		link.Lock()
		sum = together("cut", 0, 2)
		link.Unlock()
		half, longest = middle(2)
		t.Logf("%s, cut: %d allowed, %d of them at the far edge; there half waited %v, the longest %v", mode, sum, sums[2], half, longest)
		must.Hold(t, sums[2] == perMinute && sum <= 2*perMinute, "%s, cut: the far edge allows %d, both together %d, want %d and at most twice as many", mode, sums[2], sum, perMinute)
	}
}
