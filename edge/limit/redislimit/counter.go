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

	// local is what this edge knows of the count over all edges: Redis' at its last answer, and
	// what this edge has allowed without Redis since.
	local *limit.Window
	// leased are the tokens that Redis has given to this edge and that are not used yet. They
	// are in the count of local. In strict mode there are none.
	leased windowCount
	// unreported are the requests that were allowed without Redis and that it has not been told
	// of. They are in the count of local.
	unreported windowCount
	// opened is the latest window of which a request has asked Redis.
	opened atomic.Int64

	mu     sync.Mutex // guards what follows
	next   *call      // that Redis has not been asked yet, so that requests can join it; or nil
	asking bool       // a goroutine runs ask
}

var _ limit.AsyncCounter = (*counter)(nil)

// call is one question to Redis, for all requests that joined it.
type call struct {
	begun     time.Time // when the first of them joined
	perMinute int
	wanted    int // tokens, one for each request
	// early is the end of the window in which a request was allowed before the answer; 0: none.
	early      int64
	unreported struct { // told with the call
		window int64
		n      int
	}

	// The answer, to be read when done is closed: the window of now, the tokens granted, and the
	// count with them, unless err says why there is none.
	window         int64
	granted, count int
	err            error
	done           chan struct{}
	then           []func() // called after that
}

// Take implements [limit.Counter].
func (c *counter) Take(now time.Time, perMinute int) limit.Decision {
	if d, ok := c.TryTake(now, perMinute); ok {
		return d
	}
	q, index := c.join(perMinute, nil)
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

// TryTake implements [limit.AsyncCounter]. It decides unless Redis has to be asked, as in strict
// mode it always has to be. It takes no lock.
func (c *counter) TryTake(now time.Time, perMinute int) (limit.Decision, bool) {
	if c.source.mode == Lease {
		number := c.number(now)
		if window, left, ok := c.leased.take(number); ok {
			d := limit.Decision{Allowed: true, Limit: perMinute, Remaining: left, Reset: c.reset(window)}
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
	return limit.Decision{}, false
}

// TakeAsync implements [limit.AsyncCounter].
func (c *counter) TakeAsync(now time.Time, perMinute int, then func(limit.Decision)) {
	if d, ok := c.TryTake(now, perMinute); ok {
		then(d)
		return
	}
	if c.source.mode == Lease {
		go func() { then(c.Take(now, perMinute)) }() // seldom, and with a timeout of its own
		return
	}
	decide := func(q *call, index int) { then(c.answered(q, index, now, perMinute)) }
	if q, _ := c.join(perMinute, decide); q == nil {
		then(c.alone(now, perMinute))
	}
}

// join lets a request take part in the next call, and returns which of its requests it is, from
// 0; or nil after Close. Unless then is nil it is called with the same when there is an answer.
func (c *counter) join(perMinute int, then func(q *call, index int)) (q *call, index int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asking {
		if !c.source.start(c.ask) {
			return nil, 0
		}
		c.asking = true
	}
	if c.next == nil {
		c.next = &call{begun: time.Now(), done: make(chan struct{})}
	}
	q, index = c.next, c.next.wanted
	q.wanted++
	q.perMinute = perMinute // the same for all, but for a moment when the tier changes
	if then != nil {
		q.then = append(q.then, func() { then(q, index) })
	}
	return q, index
}

// ask makes calls as long as requests wait for one.
func (c *counter) ask() {
	for {
		runtime.Gosched() // requests that are about to join do so
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

// finish takes note of how a call ended, and lets its requests go on.
func (c *counter) finish(q *call, err error) {
	c.mu.Lock()
	q.err = err
	if err != nil {
		c.unreported.add(q.unreported.window, q.unreported.n)
		if q.early != 0 {
			c.unreported.add(c.window(q.early), 1)
		}
	} else {
		// The count goes first: nobody adds new tokens to what was left before them.
		c.local.Raise(c.reset(q.window), q.count)
		if more := q.granted - q.wanted; more > 0 {
			c.leased.add(q.window, more)
		}
	}
	close(q.done)
	c.mu.Unlock()
	for _, then := range q.then {
		then()
	}
}

// answered decides by the answer, which has come: the first requests of a call have its tokens.
func (c *counter) answered(q *call, index int, now time.Time, perMinute int) limit.Decision {
	if q.err != nil {
		return c.alone(now, perMinute)
	}
	d := limit.Decision{Limit: perMinute, Reset: c.reset(q.window)}
	if index < q.granted {
		d.Allowed = true
		d.Remaining = q.granted - 1 - index + max(0, perMinute-q.count)
	}
	return d
}

// leave decides before the answer. Redis counts the request all the same when it comes to the
// call, so that it is unreported only if the call fails.
func (c *counter) leave(q *call, index int, now time.Time, perMinute int) limit.Decision {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-q.done: // just now
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
func (c *counter) alone(now time.Time, perMinute int) limit.Decision {
	d := c.takeLocal(now, perMinute)
	if d.Allowed {
		c.unreported.add(c.window(d.Reset), 1)
	}
	return d
}

func (c *counter) takeLocal(now time.Time, perMinute int) limit.Decision {
	c.source.metrics.alone.Inc()
	return c.local.Take(c.source.inRedis(now), perMinute)
}

// opens reports whether this is the first request of its window to ask Redis.
func (c *counter) opens(now time.Time) bool {
	number, latest := c.number(now), c.opened.Load()
	return latest != number && c.opened.CompareAndSwap(latest, number)
}

// number is that of the window at now.
func (c *counter) number(now time.Time) int64 {
	return (c.source.inRedis(now).Unix() - c.offset) / limit.Period
}

// window is the number of the window that ends at reset, in Unix seconds.
func (c *counter) window(reset int64) int64 { return (reset-c.offset)/limit.Period - 1 }

// reset is the end of a window in Unix seconds.
func (c *counter) reset(window int64) int64 { return (window+1)*limit.Period + c.offset }

// windowCount is a number that belongs to one window: the window is in the upper 32 bits and the
// number in the lower ones, so that both change in one step. It begins as 0 of a window long ago.
type windowCount struct{ state atomic.Uint64 }

// add adds n of the window, and forgets what there was of another one. What comes after the
// window's end is ignored.
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

// take takes one, if there is one of the window with this number or of the next, and returns how
// many it leaves there.
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

// drain takes everything.
func (w *windowCount) drain() (window int64, n int) { return unpack(w.state.Swap(0)) }

func pack(window int64, n int) uint64 { return uint64(window)<<32 | uint64(n) }

func unpack(state uint64) (window int64, n int) { return int64(state >> 32), int(uint32(state)) }
