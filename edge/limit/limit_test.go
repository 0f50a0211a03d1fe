package limit_test

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge/limit"
)

var minute = time.Unix(1_800_000_000, 0) // a multiple of 60

func TestWindowsBeginAtTheOffset(t *testing.T) {
	for offset := range int64(limit.Period) {
		w := limit.NewWindow(offset)
		for second := range int64(2 * limit.Period) {
			for _, part := range []time.Duration{0, 999 * time.Millisecond} {
				now := minute.Add(time.Duration(second)*time.Second + part)
				d := w.Peek(now, 10)
				begin := d.Reset - limit.Period
				if begin%limit.Period != offset || now.Unix() < begin || now.Unix() >= d.Reset {
					t.Fatalf("offset %d at %d s: got the window from %d to %d", offset, second, begin, d.Reset)
				}
			}
		}
	}
}

func TestTake(t *testing.T) {
	w := limit.NewWindow(0)
	for i := range 3 {
		want := limit.Verdict{Allowed: true, Limit: 3, Remaining: 2 - i, Reset: minute.Unix() + 60}
		got := w.Take(minute, 3)
		must.Hold(t, got == want, "request %d: got %+v, want %+v", i+1, got, want)
	}
	refused := limit.Verdict{Limit: 3, Reset: minute.Unix() + 60}
	for range 2 {
		got := w.Take(minute.Add(time.Second), 3)
		must.Hold(t, got == refused, "over the limit: got %+v, want %+v", got, refused)
	}
	got := w.Take(minute.Add(2*time.Second), 5)
	must.Hold(t, got.Allowed && got.Remaining == 1, "the tier was raised: got %+v, want the fourth of five: refusals do not count", got)
	got = w.Take(minute.Add(3*time.Second), 2)
	must.Hold(t, !got.Allowed && got.Remaining == 0, "the tier was lowered: got %+v, want a refusal", got)
	got = w.Take(minute.Add(time.Minute), 3)
	must.Hold(t, got.Allowed && got.Remaining == 2 && got.Reset == minute.Unix()+120, "the next window: got %+v", got)
	got = w.Take(minute, 3)
	must.Hold(t, got.Allowed && got.Remaining == 1 && got.Reset == minute.Unix()+120, "the clock was set back: got %+v, want the same window", got)
}

// TestClockJumps uses a clock that is wrong for one request, by every distance in both directions. Before,
// during and after it each window allows its limit at once.
func TestClockJumps(t *testing.T) {
	const perMinute = 30
	for _, jump := range []time.Duration{
		time.Minute, 2 * time.Minute, time.Hour, 10 * 365 * 24 * time.Hour, -time.Minute, -2 * time.Minute, -time.Hour, -10 * 365 * 24 * time.Hour,
	} {
		w := limit.NewWindow(0)
		fill := func(now time.Time) (allowed int, last limit.Verdict) {
			for range 2 * perMinute {
				if last = w.Take(now, perMinute); last.Allowed {
					allowed++
				}
			}
			return allowed, last
		}
		fill(minute)
		wrong, _ := fill(minute.Add(jump))
		want := jump > 0 || jump < -time.Minute
		must.Hold(t, (wrong == perMinute) == want, "while the clock is %v wrong: allowed %d", jump, wrong)
		// The clock is right again. A window that began by mistake ends soon, if it was near; any
		// other is forgotten.
		windows := time.Duration(1)
		if jump == time.Minute || jump == 2*time.Minute {
			windows += jump / time.Minute
		}
		for i := range windows + 1 {
			now := minute.Add(i * time.Minute)
			allowed, d := fill(now)
			must.Hold(t, i != windows || allowed == perMinute, "%d minutes after the clock was %v wrong: allowed %d of %d", i, jump, allowed, perMinute)
			retry := d.RetryAfter(now)
			must.Hold(t, retry <= 120 && (i != windows || retry <= 60), "%d minutes after the clock was %v wrong: retry after %d s", i, jump, retry)
		}
	}
}

// TestRaise takes over the count of other edges in a window that the counter left, uses or has not reached. The counter
// stays where it is only in the next window, as after a clock that was set back a little, and where its count is higher.
func TestRaise(t *testing.T) {
	const offset, perMinute = 7, 10
	now := minute.Add(offset * time.Second)
	for _, ahead := range []int{-2, -1, 0, 1, 2, 60} {
		for _, known := range []int{0, 2, 3, 4} {
			w := limit.NewWindow(offset)
			for range known {
				w.Take(now.Add(time.Duration(ahead)*time.Minute), perMinute)
			}
			end, count := now.Unix()+limit.Period, 3
			w.Raise(end, count)
			switch {
			case ahead == 0:
				count = max(known, count)
			case ahead == 1 && known > 0:
				end, count = end+limit.Period, known
			}
			gotEnd, got := w.Latest()
			must.Hold(t, gotEnd == end && got == count, "%d windows ahead with %d: got %d until %d, want %d until %d", ahead, known, got, gotEnd, count, end)
			want := limit.Verdict{Allowed: true, Limit: perMinute, Remaining: perMinute - count, Reset: end}
			must.Equal(t, fmt.Sprintf("%d windows ahead with %d: peek", ahead, known), want, w.Peek(now, perMinute))
		}
	}
}

func TestRetryAfter(t *testing.T) {
	d := limit.Verdict{Reset: minute.Unix()}
	for _, tt := range []struct {
		before time.Duration
		want   int
	}{
		{60 * time.Second, 60},
		{59*time.Second + 1, 60},
		{time.Second + 1, 2},
		{time.Second, 1},
		{1, 1},
		{0, 1},
		{-time.Hour, 1},
	} {
		must.Equal(t, fmt.Sprintf("%v before the end", tt.before), tt.want, d.RetryAfter(minute.Add(-tt.before)))
	}
}

// TestExactUnderConcurrency counts from many goroutines over window changes: each window
// allows exactly the limit. Their clocks are apart by one window at most, because a clock two windows
// behind the counter's counts as set right.
func TestExactUnderConcurrency(t *testing.T) {
	const goroutines, requests, perMinute = 16, 4000, 1000
	w := limit.NewWindow(17)
	var clock atomic.Int64 // seconds
	clock.Store(minute.Unix())
	var (
		mu      sync.Mutex
		allowed = map[int64]int{} // by end of the window
		refused = map[int64]int{}
		lowest  = map[int64]int{}
		wg      sync.WaitGroup
	)
	seen := make([]*atomic.Int64, goroutines) // the time of each goroutine
	for g := range seen {
		seen[g] = new(atomic.Int64)
	}
	for g := range goroutines {
		wg.Go(func() {
			own, none, low := map[int64]int{}, map[int64]int{}, map[int64]int{}
			for i := range requests {
				now := clock.Load()
				if i%20 == 19 && !slices.ContainsFunc(seen, func(s *atomic.Int64) bool { return s.Load() < now }) {
					clock.CompareAndSwap(now, now+limit.Period)
				}
				seen[g].Store(now)
				d := w.Take(time.Unix(now, 0), perMinute)
				if d.Allowed {
					own[d.Reset]++
				} else {
					none[d.Reset]++
				}
				if n, seen := low[d.Reset]; !seen || d.Remaining < n {
					low[d.Reset] = d.Remaining
				}
			}
			seen[g].Store(math.MaxInt64)
			mu.Lock()
			defer mu.Unlock()
			for end := range low {
				allowed[end] += own[end]
				refused[end] += none[end]
				if n, seen := lowest[end]; !seen || low[end] < n {
					lowest[end] = low[end]
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for end := range lowest {
		total += allowed[end] + refused[end]
		if refused[end] > 0 && allowed[end] != perMinute {
			t.Errorf("window to %d: got %d allowed and %d refused, want %d before the first refusal",
				end, allowed[end], refused[end], perMinute)
		}
		must.Hold(t, allowed[end]+lowest[end] == perMinute, "window to %d: got %d allowed, but %d remaining", end, allowed[end], lowest[end])
	}
	t.Logf("%d windows", len(lowest))
	must.Hold(t, total == goroutines*requests, "got %d decisions, want %d", total, goroutines*requests)
}

func TestAnonymous(t *testing.T) {
	a := limit.NewAnonymous(2, 1<<16)
	take := func(addr string) int { return a.Take(netip.MustParseAddr(addr), minute).Remaining }
	for _, tt := range []struct {
		addr string
		want int
	}{
		{"203.0.113.9", 1},
		{"::ffff:203.0.113.9", 0}, // the same
		{"203.0.113.9", 0},
		{"2001:db8:0:1::1", 1},
		{"2001:db8:0:1:ffff::2", 0}, // the same network
		{"2001:db8:0:1::3", 0},
	} {
		got := take(tt.addr)
		must.Hold(t, got == tt.want, "%s: got %d remaining, want %d", tt.addr, got, tt.want)
	}
	d := a.Peek(netip.MustParseAddr("203.0.113.9"), minute)
	must.Hold(t, !d.Allowed && d.Remaining == 0, "peek: got %+v", d)
	// An unknown address, such as that of a connection in memory, has a window too.
	got := a.Take(netip.Addr{}, minute)
	must.Hold(t, got.Limit == 2, "no address: got %+v", got)
	// Other addresses have other windows, but for a collision in 65536 slots.
	fresh, ends := 0, map[int64]bool{}
	for i := range 100 {
		d := a.Take(netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}), minute)
		ends[d.Reset] = true
		if d.Remaining == 1 {
			fresh++
		}
	}
	must.Hold(t, fresh >= 95, "of 100 new addresses %d had a fresh window", fresh)
	must.Hold(t, len(ends) > 10, "the windows of 100 addresses end at %d times: they come back together", len(ends))
}

func TestOffsetsAreSpread(t *testing.T) {
	seen := map[int64]bool{}
	for i := range uint64(1000) {
		offset := limit.Offset(i * 0x9e3779b97f4a7c15)
		if offset < 0 || offset >= limit.Period {
			t.Fatalf("got offset %d", offset)
		}
		seen[offset] = true
	}
	must.Hold(t, len(seen) == limit.Period, "1000 keys begin at %d different seconds, want all 60", len(seen))
}
