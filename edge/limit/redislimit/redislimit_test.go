package redislimit_test

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/redistest"
	"gridcast/edge/limit"
	"gridcast/edge/limit/redislimit"
	"gridcast/snapshots/blob/porttest"
)

// server is a real Redis on its own port, or the near end of a network before one.
type server struct {
	*redistest.Server

	t testing.TB
}

func newServer(t testing.TB, options ...string) *server {
	t.Helper()
	return &server{redistest.New(t, options...), t}
}

// do runs a command of words without spaces, and returns the first line of the reply, or that of a text.
func (s *server) do(words ...string) string {
	s.t.Helper()
	c := must.Get(net.Dial("tcp", s.Address))(s.t)
	defer c.Close()
	must.Get(fmt.Fprintf(c, "%s\r\n", strings.Join(words, " ")))(s.t)
	reader := bufio.NewReader(c)
	line, err := reader.ReadString('\n')
	if strings.HasPrefix(line, "$") {
		line, err = reader.ReadString('\n')
	}
	must.Require(s.t, err == nil && !strings.HasPrefix(line, "-"), "%s: %q, %v", words, line, err)
	return strings.TrimSpace(line)
}

// open returns the sources of several edges, all of which know their number and wait for late answers.
func (s *server) open(mode redislimit.Mode, edges int) []*redislimit.Source {
	s.t.Helper()
	return open(s.t, redislimit.Patient(s.config(mode)), edges)
}

func (s *server) config(mode redislimit.Mode) redislimit.Config {
	return redislimit.Config{URL: "redis://" + s.Address, Mode: mode}
}

// open returns the sources of several edges, all of which know their number.
func open(t testing.TB, cfg redislimit.Config, edges int) []*redislimit.Source {
	t.Helper()
	cfg.Log = slog.New(slog.DiscardHandler)
	var sources []*redislimit.Source
	for range edges {
		source := must.Get(redislimit.Open(t.Context(), cfg))(t)
		t.Cleanup(source.Close)
		sources = append(sources, source)
	}
	for _, source := range sources {
		must.Until(t, "Redis counts", func() bool { return metric(t, source, "gridcast_edge_limit_redis_up") == 1 })
		must.Until(t, "all edges known", func() bool { return metric(t, source, "gridcast_edge_limit_edges") == float64(edges) })
	}
	return sources
}

// counters returns a counter for the same key on each edge.
func counters(sources []*redislimit.Source) []limit.Counter {
	var counters []limit.Counter
	for offset := windowStart(); len(counters) < len(sources); {
		counters = append(counters, async(sources[len(counters)], "key", offset))
	}
	return counters
}

// windowStart is the offset of windows that began a moment ago: long enough for Redis' clock, which
// an edge knows up to the time of an answer, to have started them too.
func windowStart() int64 { return (time.Now().Unix() - 5) % limit.Period }

// async returns a counter of the source with its asynchronous methods.
func async(source *redislimit.Source, id string, offset int64) limit.Counter {
	return source.Counter(id, offset)
}

// metric returns the sum of a metric over its labels, or over the given values.
func metric(t testing.TB, source *redislimit.Source, name string, values ...string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(source)
	families := must.Get(registry.Gather())(t)
	sum, found := 0.0, false
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (len(values) == 0 || slices.Contains(values, m.GetLabel()[0].GetValue())) {
				sum, found = sum+m.GetCounter().GetValue()+m.GetGauge().GetValue(), true
			}
		}
	}
	must.Require(t, found, "no metric %s", name)
	return sum
}

// take counts a request without waiting, if possible.
func take(c limit.Counter, perMinute int) limit.Verdict {
	now := time.Now()
	if d, ok := redislimit.TryTake(c, now, perMinute); ok {
		return d
	}
	return c.Take(now, perMinute)
}

// TestSums lets edges share a limit under even load and compares the sum with the promise of the
// mode.
func TestSums(t *testing.T) {
	redis := newServer(t)
	for _, tt := range []struct {
		name        string
		mode        redislimit.Mode
		delay       time.Duration // of each question
		edges       int
		limit, low  int
		mostAskedOf float64 // questions to Redis, as a multiple of the limit
	}{
		{"strict over four", redislimit.Strict, 0, 4, 600, 600, 4},
		{"strict over one", redislimit.Strict, 0, 1, 120, 120, 4},
		{"strict over four, slow", redislimit.Strict, 20 * time.Millisecond, 4, 600, 600, 4},
		{"lease over four", redislimit.Lease, 0, 4, 600, 570, 0.6},
		{"lease over four of a small limit", redislimit.Lease, 0, 4, 30, 29, 2},
		{"lease over one", redislimit.Lease, 0, 1, 600, 600, 0.2},
		{"lease over four, slow", redislimit.Lease, 20 * time.Millisecond, 4, 600, 570, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server, connections := redis, 4
			if tt.delay > 0 {
				server, connections = redis.far(tt.delay), 30
			}
			sources := server.open(tt.mode, tt.edges)
			var allowed atomic.Int64
			var running sync.WaitGroup
			offset := windowStart()
			for i, source := range sources {
				c := async(source, tt.name, offset)
				for range connections {
					running.Go(func() {
						for range 2 * tt.limit / len(sources) / connections { // twice the limit
							if d := take(c, tt.limit); d.Allowed {
								allowed.Add(1)
							} else if d.Remaining != 0 {
								t.Errorf("edge %d: refused with %d remaining", i, d.Remaining)
							}
						}
					})
				}
			}
			running.Wait()
			asked, alone := 0.0, 0
			for _, source := range sources {
				asked += metric(t, source, "gridcast_edge_limit_redis_asks_total")
				alone += int(metric(t, source, "gridcast_edge_limit_alone_total"))
			}
			// On a busy machine a first request does not wait for Redis, and comes on top.
			if got := int(allowed.Load()); got-alone > tt.limit || got < tt.low || alone > tt.edges || tt.mode == redislimit.Strict && tt.delay > 0 && alone > 0 {
				t.Errorf("allowed %d of %d, %d of them without Redis, want at least %d and never more", got, tt.limit, alone, tt.low)
			}
			must.Hold(t, asked <= tt.mostAskedOf*float64(tt.limit), "asked Redis %v times for %d tokens", asked, tt.limit)
			t.Logf("allowed %d of %d with %v questions to Redis, %d without", allowed.Load(), tt.limit, asked, alone)
			closeAll(sources)
		})
	}
}

// TestRemainingRunsDown shows the numbers of one client at one edge.
func TestRemainingRunsDown(t *testing.T) {
	redis := newServer(t)
	for _, mode := range []redislimit.Mode{redislimit.Strict, redislimit.Lease} {
		source := redis.open(mode, 1)[0]
		c := async(source, "key-"+string(mode), windowStart())
		for want := 39; want >= 0; want-- {
			d := c.Take(time.Now(), 40)
			if !d.Allowed || d.Remaining != want || d.Limit != 40 {
				t.Fatalf("%s: got %+v, want %d remaining", mode, d, want)
			}
			if left := time.Until(time.Unix(d.Reset, 0)); left < 30*time.Second || left > time.Minute {
				t.Fatalf("%s: window ends in %s, want nearly a minute", mode, left)
			}
			if mode == redislimit.Lease && want == 39 {
				// The client did not wait for its share if Redis was slow; another share would be asked for.
				var ok bool
				must.Until(t, "the share has come", func() bool { d, ok = redislimit.TryTake(c, time.Now(), 40); return ok })
				if want--; d.Remaining != want {
					t.Fatalf("%s: got %+v, want %d remaining", mode, d, want)
				}
			}
		}
		d := c.Take(time.Now(), 40)
		must.Require(t, !d.Allowed && d.Remaining == 0, "%s: beyond the limit: got %+v", mode, d)
		source.Close()
	}
}

// inModes runs a test in each mode.
func inModes(t *testing.T, test func(t *testing.T, mode redislimit.Mode)) {
	for _, mode := range []redislimit.Mode{redislimit.Strict, redislimit.Lease} {
		t.Run(string(mode), func(t *testing.T) { test(t, mode) })
	}
}

// clients sends requests of one key to some edges, and counts the allowed ones of each.
type clients struct {
	edges     []limit.Counter
	perMinute int
	allowed   []int
}

func clientsOf(sources []*redislimit.Source, perMinute int) *clients {
	return &clients{edges: counters(sources), perMinute: perMinute, allowed: make([]int, len(sources))}
}

// take sends so many requests to each edge, one after the other. It returns the allowed ones until now.
func (c *clients) take(times int) (sum int) {
	for range times {
		for i, edge := range c.edges {
			if edge.Take(time.Now(), c.perMinute).Allowed {
				c.allowed[i]++
			}
		}
	}
	for _, n := range c.allowed {
		sum += n
	}
	return sum
}

// failed returns the number of failed questions to Redis.
func failed(t testing.TB, source *redislimit.Source) int {
	return int(metric(t, source, "gridcast_edge_limit_redis_asks_total", "failed"))
}

// awaitCounting waits until every edge counts in Redis again.
func awaitCounting(t *testing.T, sources []*redislimit.Source) {
	t.Helper()
	for _, source := range sources {
		must.Until(t, "Redis counts again", func() bool { return metric(t, source, "gridcast_edge_limit_redis_up") == 1 })
	}
}

// TestRedisGone kills Redis in the middle of a window and starts an empty one later.
func TestRedisGone(t *testing.T) {
	inModes(t, func(t *testing.T, mode redislimit.Mode) {
		redis := newServer(t)
		sources := redis.open(mode, 2)
		c := clientsOf(sources, 100)
		sum := c.take(20)
		must.Require(t, sum == 40, "with Redis: allowed %d", c.allowed)
		redis.Kill()
		before := []int{failed(t, sources[0]), failed(t, sources[1])}
		if sum := c.take(200); sum > 200 || c.allowed[0] <= 20 || c.allowed[1] <= 20 {
			t.Errorf("without Redis: allowed %d, want more on each edge, and at most 200", c.allowed)
		}
		for i, source := range sources {
			n := failed(t, source) - before[i]
			must.Hold(t, n <= 2, "edge %d: %d of 200 requests waited for a Redis that is gone, want the first alone", i, n)
			if got, want := source.String(), "each edge for itself, because Redis does not answer"; got != want || source.Fault() == "" {
				t.Errorf("got %q and fault %q, want %q and a fault", got, source.Fault(), want)
			}
			if metric(t, source, "gridcast_edge_limit_redis_up") != 0 || metric(t, source, "gridcast_edge_limit_alone_total") == 0 {
				t.Error("the metrics do not say that Redis is gone")
			}
		}
		redis.Start(t)
		awaitCounting(t, sources)
		d := async(sources[0], "another key", windowStart()).Take(time.Now(), 100)
		must.Hold(t, d.Allowed && d.Remaining == 99, "after its return: got %+v", d)
	})
}

// TestSpentAloneIsTold lets an edge count for itself while Redis hangs: the requests it allowed are not
// allowed again.
func TestSpentAloneIsTold(t *testing.T) {
	redis := newServer(t)
	sources := open(t, redis.config(redislimit.Lease), 1)
	c := clientsOf(sources, 50)
	c.take(1)
	redis.Signal(t, syscall.SIGSTOP)
	before := failed(t, sources[0])
	c.take(20)
	n := failed(t, sources[0]) - before
	must.Hold(t, n <= 2, "%d of 20 requests waited for a Redis that hangs, want the timeout once", n)
	redis.Signal(t, syscall.SIGCONT)
	awaitCounting(t, sources)
	allowed := c.take(100)
	lost := 6 * failed(t, sources[0]) // a share is 6 at most
	must.Hold(t, allowed <= 50 && allowed >= 50-lost, "allowed %d of 50, and at most %d were lost: what was allowed without Redis was forgotten", allowed, lost)
}

// TestRedisComesBackEmpty uses an edge that knows more than Redis.
func TestRedisComesBackEmpty(t *testing.T) {
	inModes(t, func(t *testing.T, mode redislimit.Mode) {
		redis := newServer(t)
		sources := redis.open(mode, 1)
		c := clientsOf(sources, 100)
		c.take(20)
		redis.Kill()
		must.Until(t, "Redis is missed", func() bool { return metric(t, sources[0], "gridcast_edge_limit_redis_up") == 0 })
		allowed := c.take(30)
		must.Require(t, allowed == 50, "allowed %d of 50 requests", allowed)
		redis.Start(t)
		awaitCounting(t, sources)
		must.Equal(t, "allowed of 100", 100, c.take(200))
	})
}

func TestBadConfig(t *testing.T) {
	for _, cfg := range []redislimit.Config{
		{URL: "redis://127.0.0.1:1", Mode: "loose"},
		{URL: "http://user:secret@host", Mode: redislimit.Lease},
	} {
		golden.Sentence(t, "open "+cfg.URL, must.Err(redislimit.Open(t.Context(), cfg)))
	}
}

// TestHeldTokensCostNothing takes the path of nearly all requests.
func TestHeldTokensCostNothing(t *testing.T) {
	redis := newServer(t)
	c := counters(redis.open(redislimit.Lease, 1))[0]
	c.Take(time.Now(), 1e6)
	now := time.Now()
	n := testing.AllocsPerRun(1000, func() { c.Take(now, 1e6) })
	must.Hold(t, n == 0, "Take: got %v allocations, want 0", n)
	if n := testing.AllocsPerRun(1000, func() {
		_, ok := redislimit.TryTake(c, now, 1e6)
		must.Hold(t, ok, "TryTake did not decide with a token at hand")
	}); n != 0 {
		t.Errorf("TryTake: got %v allocations, want 0", n)
	}
}

// TestTryTakeNeverAsks takes the request path that must not wait.
func TestTryTakeNeverAsks(t *testing.T) {
	inModes(t, func(t *testing.T, mode redislimit.Mode) {
		source := newServer(t).open(mode, 1)[0]
		c := async(source, "key-"+string(mode), windowStart())
		before := metric(t, source, "gridcast_edge_limit_redis_asks_total")
		d, ok := redislimit.TryTake(c, time.Now(), 2)
		must.Require(t, !ok, "the first request: got %+v without a question to Redis", d)
		must.Equal(t, "questions to Redis", before, metric(t, source, "gridcast_edge_limit_redis_asks_total"))
		for want := 1; want >= 0; want-- {
			if d := c.Take(time.Now(), 2); !d.Allowed || d.Remaining != want {
				t.Fatalf("got %+v, want %d remaining: the attempt counted", d, want)
			}
		}
		if d, ok := redislimit.TryTake(c, time.Now(), 2); d.Allowed || ok != (mode == redislimit.Lease) {
			t.Fatalf("window known to be empty: got %+v, %t", d, ok)
		}
	})
}

// TestStartWithoutRedis counts in memory while there is no Redis, without a wait.
func TestStartWithoutRedis(t *testing.T) {
	inModes(t, func(t *testing.T, mode redislimit.Mode) {
		var log bytes.Buffer
		source := must.Get(redislimit.Open(t.Context(), redislimit.Config{
			URL: "redis://" + porttest.Address(t), Mode: mode, Log: slog.New(slog.NewTextHandler(&log, nil)),
		}))(t)
		c, other, now := async(source, "key", 0), async(source, "other", 0), time.Now()
		for want := 2; want >= -1; want-- {
			d, ok := redislimit.TryTake(c, now, 3)
			must.Hold(t, ok && d.Allowed == (want >= 0) && d.Remaining == max(0, want), "at once: got %+v, %t, want %d remaining", d, ok, want)
			d = other.Take(now, 3)
			must.Hold(t, d.Allowed == (want >= 0) && d.Remaining == max(0, want), "got %+v, want %d remaining", d, want)
		}
		must.Equal(t, "allocations", 0., testing.AllocsPerRun(1000, func() { redislimit.TryTake(c, now, 1e6) }))
		must.Hold(t, source.Fault() != "", "an operator who asks is not told")
		source.Close()
		if n := strings.Count(log.String(), `msg="redis does not answer, this edge counts for itself"`); n != 1 {
			t.Errorf("the log says %d times that Redis does not answer:\n%s", n, log.String())
		}
	})
}
