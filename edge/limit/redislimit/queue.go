package redislimit

import (
	"sync"
	"time"
)

// queue gathers requests into calls: those that come while the callers are busy wait for the
// next call, and go together.
type queue struct {
	ready chan struct{} // wakes a caller for a call

	mu     sync.Mutex // guards what follows, and the groups of all calls until they are done
	calls  []*call    // that no caller has taken; the last may be joined
	closed bool
}

// call is one question to Redis, for all requests that joined it.
type call struct {
	begun  time.Time // when the first of them joined
	groups []group
	done   chan struct{} // closed when err and all answers are there
	err    error
	then   []func() // is called after that
}

// group is the requests of one key in a call.
type group struct {
	counter   *counter
	perMinute int
	wanted    int   // requests that joined
	credit    int64 // the window in which one of them was allowed before the answer, or 0
	debt      debt  // told with the call
	answer    answer
}

// debt is requests of a window that were allowed without Redis.
type debt struct {
	window int64
	n      int
}

// answer is what Redis says to a group: the window of now, tokens granted, and the count of
// the window with them.
type answer struct {
	window  int64
	granted int
	count   int
}

// place is that of a request in a call.
type place struct {
	call  *call
	group int
	index int // in the group, from 0
}

// mostGroups bounds a call: Redis does nothing else meanwhile, about 6 µs for each group.
const mostGroups = 64

func newQueue() queue { return queue{ready: make(chan struct{}, callers)} }

// join lets a request of the counter take part in a call that has not begun, unless the queue
// is closed.
func (q *queue) join(c *counter, perMinute int) (p place, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.add(c, perMinute)
}

// joinUntil is join for a request that goes on in then.
func (q *queue) joinUntil(c *counter, perMinute int, then func(place)) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	p, ok := q.add(c, perMinute)
	if ok {
		p.call.then = append(p.call.then, func() { then(p) })
	}
	return ok
}

// add is join where the lock is held.
func (q *queue) add(c *counter, perMinute int) (p place, ok bool) {
	if q.closed {
		return place{}, false
	}
	latest := q.latest()
	if c.call != latest || latest == nil || latest.groups[c.group].perMinute != perMinute {
		if latest == nil || len(latest.groups) == mostGroups {
			latest = q.begin()
		}
		c.call, c.group = latest, len(latest.groups)
		latest.groups = append(latest.groups, group{counter: c, perMinute: perMinute})
	}
	g := &latest.groups[c.group]
	g.wanted++
	return place{latest, c.group, g.wanted - 1}, true
}

// latest returns the call that may be joined, or nil.
func (q *queue) latest() *call {
	if len(q.calls) == 0 {
		return nil
	}
	return q.calls[len(q.calls)-1]
}

// begin opens a new call.
func (q *queue) begin() *call {
	c := &call{begun: time.Now(), done: make(chan struct{})}
	q.calls = append(q.calls, c)
	select {
	case q.ready <- struct{}{}:
	default: // all callers have been woken, and take it when they are free
	}
	return c
}

// next takes the oldest call, which nobody joins any more, or returns nil.
func (q *queue) next() *call {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.calls) == 0 {
		return nil
	}
	c := q.calls[0]
	q.calls = q.calls[1:]
	for i := range c.groups {
		g := &c.groups[i]
		g.debt.window, g.debt.n = g.counter.debt.drain()
	}
	return c
}

// finish hands a call with its answers, or with the reason why there are none, to whoever
// waits for it.
func (q *queue) finish(c *call, err error) {
	q.settle(c, err)
	for _, then := range c.then {
		then()
	}
}

// settle takes note of how a call ended. From then on nothing in it changes.
func (q *queue) settle(c *call, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c.err = err
	for i := range c.groups {
		g := &c.groups[i]
		if err == nil {
			g.counter.settle(g)
		} else {
			g.counter.fail(g)
		}
		if g.counter.call == c {
			g.counter.call = nil // not kept alive by a counter that is idle
		}
	}
	close(c.done)
}

// close answers all that wait, and lets nobody join any more.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	for c := q.next(); c != nil; c = q.next() {
		q.finish(c, errDown)
	}
}
