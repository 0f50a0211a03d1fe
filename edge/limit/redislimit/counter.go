package redislimit

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"gridcast/edge/limit"
)

// counter counts the requests of one key.
type counter struct {
	source *Source
	key    string // in Redis
	offset int64

	// local is this edge's knowledge of the count over all edges: the count of Redis' last answer, plus
	// the requests that this edge has allowed without Redis since.
	local *limit.Window
	// leased counts the unused tokens that Redis has given to this edge. They
	// are part of the count of local. In strict mode there are none.
	leased windowCount
	// unreported counts the requests that this edge allowed without Redis and has not reported
	// yet. They are part of the count of local.
	unreported windowCount
	// opened is the latest window in which a request has asked Redis.
	opened atomic.Int64

	mu     sync.Mutex // guards the following
	next   *call      // the next question, which requests can join until Redis is asked; or nil
	asking bool       // a goroutine runs ask
}

var _ limit.Counter = (*counter)(nil)

// call is one question to Redis, for all requests that joined it.
type call struct {
	started   time.Time // when the first of them joined
	perMinute int
	wanted    int // tokens, one for each request
	// early is the end of the window in which a request was allowed before the answer; 0: none.
	early      int64
	unreported struct { // reported with the call
		window int64
		n      int
	}

	// The answer, to be read when done is closed: the present window, the granted tokens, and the
	// count with them, unless err is set.
	window         int64
	granted, count int
	err            error
	done           chan struct{}
}

// Take implements [limit.Counter].
func (c *counter) Take(now time.Time, perMinute int) limit.Verdict {
	if d, ok := c.tryTake(now, perMinute); ok {
		return d
	}
	q, index := c.join(perMinute)
	if q == nil {
		return c.alone(now, perMinute)
	}
	if c.source.mode == Lease && c.opens(now) {
		timeout := time.NewTimer(firstTimeout)
		defer timeout.Stop()
		select {
		case <-q.done:
		case <-timeout.C:
			return c.leave(q, index, now, perMinute)
		}
	}
	<-q.done
	return c.answered(q, index, now, perMinute)
}

// tryTake is Take without a wait. It decides unless it must ask Redis, which strict
// mode always must. It takes no lock.
func (c *counter) tryTake(now time.Time, perMinute int) (limit.Verdict, bool) {
	if c.source.mode == Lease {
		number := c.number(now)
		if window, left, ok := c.leased.take(number); ok {
			d := limit.Verdict{Allowed: true, Limit: perMinute, Remaining: left, Reset: c.reset(window)}
			if reset, count := c.local.Latest(); reset == d.Reset {
				d.Remaining += max(0, perMinute-count)
			}
			return d, true
		}
		if d := c.local.Peek(c.source.inRedis(now), perMinute); !d.Allowed {
			return d, true
		}
	}
	if !c.source.answering.Load() {
		return c.alone(now, perMinute), true
	}
	return limit.Verdict{}, false
}

// join adds a request to the next call, and returns the index of the request in it, from
// 0; or nil after Close.
func (c *counter) join(perMinute int) (q *call, index int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asking {
		if !c.source.start(c.ask) {
			return nil, 0
		}
		c.asking = true
	}
	if c.next == nil {
		c.next = &call{started: time.Now(), done: make(chan struct{})}
	}
	q, index = c.next, c.next.wanted
	q.wanted++
	q.perMinute = perMinute // equal for all requests, but for a moment when the tier changes
	return q, index
}

// ask makes calls as long as requests wait for one.
func (c *counter) ask() {
	for {
		runtime.Gosched() // lets requests join that are about to
		c.mu.Lock()
		q := c.next
		if q == nil {
			c.asking = false
			c.mu.Unlock()
			return
		}
		c.next = nil
		c.mu.Unlock()
		q.unreported.window, q.unreported.n = c.unreported.drain()
		err := c.source.reserve(c, q)
		c.finish(q, err)
	}
}

// finish records the end of a call, and releases its requests.
func (c *counter) finish(q *call, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q.err = err
	if err != nil {
		c.unreported.add(q.unreported.window, q.unreported.n)
		if q.early != 0 {
			c.unreported.add(c.window(q.early), 1)
		}
	} else {
		// Store the count first, so that nobody adds new tokens to the old ones.
		c.local.Raise(c.reset(q.window), q.count)
		if more := q.granted - q.wanted; more > 0 {
			c.leased.add(q.window, more)
		}
	}
	close(q.done)
}

// answered decides by the answer: the first requests of a call have its tokens.
func (c *counter) answered(q *call, index int, now time.Time, perMinute int) limit.Verdict {
	if q.err != nil {
		return c.alone(now, perMinute)
	}
	d := limit.Verdict{Limit: perMinute, Reset: c.reset(q.window)}
	if index < q.granted {
		d.Allowed = true
		d.Remaining = q.granted - 1 - index + max(0, perMinute-q.count)
	}
	return d
}

// leave decides before the answer. Redis counts the request anyway when the call
// arrives, so the request is unreported only if the call fails.
func (c *counter) leave(q *call, index int, now time.Time, perMinute int) limit.Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-q.done: // the answer arrived just now
		return c.answered(q, index, now, perMinute)
	default:
	}
	d := c.takeLocal(now, perMinute)
	if d.Allowed {
		q.early = d.Reset
	}
	return d
}

// alone decides without Redis.
func (c *counter) alone(now time.Time, perMinute int) limit.Verdict {
	d := c.takeLocal(now, perMinute)
	if d.Allowed {
		c.unreported.add(c.window(d.Reset), 1)
	}
	return d
}

func (c *counter) takeLocal(now time.Time, perMinute int) limit.Verdict {
	c.source.metrics.alone.Inc()
	return c.local.Take(c.source.inRedis(now), perMinute)
}

// opens reports whether this is the first request of its window to ask Redis.
func (c *counter) opens(now time.Time) bool {
	number, latest := c.number(now), c.opened.Load()
	return latest != number && c.opened.CompareAndSwap(latest, number)
}

// number is the number of the window at now.
func (c *counter) number(now time.Time) int64 {
	return (c.source.inRedis(now).Unix() - c.offset) / limit.Period
}

// window is the number of the window that ends at reset, in Unix seconds.
func (c *counter) window(reset int64) int64 { return (reset-c.offset)/limit.Period - 1 }

// reset is the end of a window in Unix seconds.
func (c *counter) reset(window int64) int64 { return (window+1)*limit.Period + c.offset }

// windowCount is a number of one window. The window is in the upper 32 bits and the
// number in the lower ones, so that one step changes both. It starts as 0 of a window long ago.
type windowCount struct{ state atomic.Uint64 }

// add adds n to the window, and drops the number of another window. It ignores n after the
// window's end.
func (w *windowCount) add(window int64, n int) {
	for {
		state := w.state.Load()
		last, had := unpack(state)
		if last == window+1 {
			return
		}
		if last != window {
			had = 0
		}
		if w.state.CompareAndSwap(state, pack(window, had+n)) {
			return
		}
	}
}

// take takes one, if the window with this number or the next has one, and returns the rest.
func (w *windowCount) take(number int64) (window int64, left int, ok bool) {
	for {
		state := w.state.Load()
		window, n := unpack(state)
		if window < number || window > number+1 || n == 0 {
			return window, n, false
		}
		if w.state.CompareAndSwap(state, pack(window, n-1)) {
			return window, n - 1, true
		}
	}
}

func (w *windowCount) drain() (window int64, n int) { return unpack(w.state.Swap(0)) }

func pack(window int64, n int) uint64 { return uint64(window)<<32 | uint64(n) }

func unpack(state uint64) (window int64, n int) { return int64(state >> 32), int(uint32(state)) }
