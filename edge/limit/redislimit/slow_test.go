package redislimit_test

import (
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/deploy/redistest"
	"gridcast/edge/limit"
	"gridcast/edge/limit/redislimit"
)

// listening returns a server that serves each connection in a goroutine of the group, and then closes it.
// The test ends after the whole group.
func listening(t testing.TB, serve func(near net.Conn, group *sync.WaitGroup)) *server {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var group sync.WaitGroup
	t.Cleanup(func() { l.Close(); group.Wait() })
	group.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer near.Close()
				serve(near, &group)
			})
		}
	})
	return &server{&redistest.Server{Address: l.Addr().String()}, t}
}

// far puts a network in front of the server that delays every byte on its way there,
// and returns a server at its near end.
func (s *server) far(delay time.Duration) *server {
	s.t.Helper()
	return s.proxy(func(to io.Writer, from io.Reader) { keep(to, from, delay) })
}

// behind puts a network in front of the server that holds every byte on its way there while the test holds the lock, and
// returns a server at its near end.
func (s *server) behind(held *sync.Mutex) *server {
	s.t.Helper()
	return s.proxy(func(to io.Writer, from io.Reader) {
		for buffer := make([]byte, 4096); ; {
			n, err := from.Read(buffer)
			held.Lock()
			held.Unlock() //nolint:staticcheck // SA2001: it waits for the test
			if err != nil {
				return
			}
			_, _ = to.Write(buffer[:n]) // the reader also sees its end
		}
	})
}

// proxy puts a network in front of the server that forwards all bytes, and returns a server at its near end.
func (s *server) proxy(forward func(to io.Writer, from io.Reader)) *server {
	s.t.Helper()
	return listening(s.t, func(near net.Conn, group *sync.WaitGroup) {
		far, err := net.Dial("tcp", s.Address)
		if err != nil {
			return
		}
		group.Go(func() {
			_, _ = io.Copy(near, far)
			near.Close()
		})
		forward(far, near)
		far.Close()
	})
}

// keep copies, but delays each piece.
func keep(to io.Writer, from io.Reader, delay time.Duration) {
	type piece struct {
		bytes []byte
		due   time.Time
	}
	pieces := make(chan piece, 1024)
	var writer sync.WaitGroup
	writer.Go(func() {
		for p := range pieces {
			<-time.After(time.Until(p.due))
			_, _ = to.Write(p.bytes) // the reader also sees its end
		}
	})
	for {
		buffer := make([]byte, 4096)
		n, err := from.Read(buffer)
		if err != nil {
			break
		}
		pieces <- piece{buffer[:n], time.Now().Add(delay)}
	}
	close(pieces)
	writer.Wait()
}

// TestFirstRequestWaitsBriefly uses a Redis that answers only after the first request was decided.
func TestFirstRequestWaitsBriefly(t *testing.T) {
	var held sync.Mutex
	source := newServer(t).behind(&held).open(redislimit.Lease, 1)[0]
	c := async(source, "key", windowStart())
	held.Lock()
	first := make(chan limit.Verdict, 1)
	go func() { first <- c.Take(time.Now(), 50) }()
	select {
	case d := <-first:
		must.Hold(t, d.Allowed && d.Remaining == 49, "first request: got %+v", d)
	case <-time.After(time.Minute):
		t.Error("the first request waits for Redis")
	}
	held.Unlock()
	allowed := 1
	for range 100 {
		if take(c, 50).Allowed {
			allowed++
		}
	}
	must.Hold(t, allowed == 50, "allowed %d of 50", allowed)
	alone := metric(t, source, "gridcast_edge_limit_alone_total")
	must.Hold(t, alone == 1, "decided %v requests without Redis, want only the first", alone)
}

// TestWaitingRequestsGoTogether shows the answer of each of many simultaneous requests.
func TestWaitingRequestsGoTogether(t *testing.T) {
	const requests, perMinute = 100, 80
	const delay = 20 * time.Millisecond
	source := newServer(t).far(delay).open(redislimit.Strict, 1)[0]
	offset := windowStart()
	keys := []limit.Counter{async(source, "one", offset), async(source, "two", offset)}
	var mu sync.Mutex
	remaining, refused := make([][]int, len(keys)), make([]int, len(keys))
	began := time.Now()
	var running sync.WaitGroup
	for range requests {
		for i, c := range keys {
			running.Go(func() {
				d := c.Take(time.Now(), perMinute)
				mu.Lock()
				defer mu.Unlock()
				if d.Allowed {
					remaining[i] = append(remaining[i], d.Remaining)
				} else {
					refused[i]++
				}
			})
		}
	}
	running.Wait()
	turns := float64(time.Since(began)/delay) + 1 // in which late requests could ask
	for i := range keys {
		slices.Sort(remaining[i])
		for n := range perMinute {
			if len(remaining[i]) != perMinute || remaining[i][n] != n {
				t.Fatalf("key %d: %d were allowed, with %d remaining, want each number below %d once",
					i, len(remaining[i]), remaining[i], perMinute)
			}
		}
		if refused[i] != requests-perMinute {
			t.Errorf("key %d: refused %d, want %d", i, refused[i], requests-perMinute)
		}
	}
	asked := metric(t, source, "gridcast_edge_limit_redis_asks_total")
	must.Hold(t, !(asked > max(requests/4, 2*turns)), "asked Redis %v times for %d requests", asked, 2*requests)
}

// TestLargeCallsAreDivided has more waiting keys than one call may hold.
func TestLargeCallsAreDivided(t *testing.T) {
	source := newServer(t).far(10*time.Millisecond).open(redislimit.Strict, 1)[0]
	const keys = 150
	var running sync.WaitGroup
	for i := range keys {
		c := async(source, strconv.Itoa(i), int64(i%limit.Period))
		running.Go(func() {
			d := c.Take(time.Now(), i+1)
			must.Hold(t, d.Allowed && d.Remaining == i, "key %d: got %+v", i, d)
		})
	}
	running.Wait()
	asked := metric(t, source, "gridcast_edge_limit_redis_asks_total")
	must.Hold(t, !(asked < 3), "asked Redis %v times for %d keys", asked, keys)
}

// TestNobodyWaitsForLong has so many keys that their calls would take turns for seconds.
func TestNobodyWaitsForLong(t *testing.T) {
	source := open(t, newServer(t).far(100*time.Millisecond).config(redislimit.Strict), 1)[0]
	var running sync.WaitGroup
	began := time.Now()
	for i := range 8000 {
		c := async(source, strconv.Itoa(i), 0)
		running.Go(func() {
			d := c.Take(time.Now(), 1)
			must.Hold(t, d.Allowed, "key %d: got %+v", i, d)
		})
	}
	running.Wait()
	t.Logf("took %s", time.Since(began))
	alone := metric(t, source, "gridcast_edge_limit_alone_total")
	must.Hold(t, alone != 0, "no request was decided alone")
}

// TestCloseLetsNobodyWait closes the source during a question to Redis.
func TestCloseLetsNobodyWait(t *testing.T) {
	source := newServer(t).far(100*time.Millisecond).open(redislimit.Strict, 1)[0]
	c := async(source, "key", 0)
	var running sync.WaitGroup
	for range 10 {
		running.Go(func() {
			d := c.Take(time.Now(), 20)
			must.Hold(t, d.Allowed, "got %+v", d)
		})
	}
	source.Close()
	running.Wait()
	d := c.Take(time.Now(), 20)
	must.Hold(t, d.Allowed, "after Close: got %+v", d)
}
