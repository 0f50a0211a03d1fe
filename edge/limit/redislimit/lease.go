package redislimit

import (
	"sync"
	"sync/atomic"
	"time"

	"gridcast/edge/limit"
)

// portions is into how many shares an edge divides its part of what is left.
const portions = 8

// lease decides with tokens that it has reserved.
type lease struct {
	shared

	// held has the number of a window in the upper 32 bits and the tokens for it in the lower
	// ones; left is what Redis had after granting them.
	held atomic.Uint64
	left atomic.Int64

	mu     sync.Mutex // guards what follows, and is held while Redis is asked
	window int64      // of the last answer, or of what was spent since
	empty  bool       // Redis has nothing left in that window
	spent  int        // requests allowed in that window without asking
}

var _ limit.Counter = (*lease)(nil)

// Take implements [limit.Counter].
func (c *lease) Take(now time.Time, perMinute int) limit.Decision {
	number := (c.source.inRedis(now).Unix() - c.offset) / limit.Period
	if d, ok := c.spend(number, perMinute); ok {
		return d
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if d, ok := c.decide(now, number, perMinute); ok {
		return d
	}
	return c.ask(now, number, perMinute)
}

// TryTake implements [limit.Counter]. It decides unless Redis has to be asked, or is being asked
// for this key.
func (c *lease) TryTake(now time.Time, perMinute int) (limit.Decision, bool) {
	number := (c.source.inRedis(now).Unix() - c.offset) / limit.Period
	if d, ok := c.spend(number, perMinute); ok {
		return d, true
	}
	if !c.mu.TryLock() {
		return limit.Decision{}, false
	}
	defer c.mu.Unlock()
	return c.decide(now, number, perMinute)
}

// decide does what can be done without asking Redis. The caller holds the lock.
func (c *lease) decide(now time.Time, number int64, perMinute int) (limit.Decision, bool) {
	if d, ok := c.spend(number, perMinute); ok { // another request has asked meanwhile
		return d, true
	}
	if c.empty && c.window >= number {
		return limit.Decision{Limit: perMinute, Reset: c.reset(c.window)}, true
	}
	if !c.source.answers() {
		return c.alone(now, number, perMinute), true
	}
	return limit.Decision{}, false
}

// spend uses a token, if there is one for the window. A later window than asked for counts too:
// Redis knows what time it is.
func (c *lease) spend(number int64, perMinute int) (limit.Decision, bool) {
	for {
		held := c.held.Load()
		window, tokens := int64(held>>32), int64(uint32(held))
		if window < number || tokens == 0 {
			return limit.Decision{}, false
		}
		left := c.left.Load()
		if c.held.CompareAndSwap(held, held-1) {
			return limit.Decision{
				Allowed: true, Limit: perMinute, Remaining: int(tokens - 1 + left), Reset: c.reset(window),
			}, true
		}
	}
}

// ask reserves a share and uses a token of it.
func (c *lease) ask(now time.Time, number int64, perMinute int) limit.Decision {
	g, err := c.reserve(leasePatience, perMinute, portions*c.source.edges.Load(), c.window, c.spent)
	if err != nil {
		return c.alone(now, number, perMinute)
	}
	c.window, c.spent, c.empty = g.window, 0, g.left == 0
	// Nobody else stores while the lock is held. Left goes first, so that it never is that of
	// an earlier answer than the tokens.
	c.left.Store(int64(g.left))
	d := limit.Decision{Limit: perMinute, Remaining: g.left, Reset: c.reset(g.window)}
	if g.granted > 0 {
		c.held.Store(uint64(g.window)<<32 | uint64(g.granted-1))
		d.Allowed, d.Remaining = true, g.left+g.granted-1
	}
	return d
}

// alone counts without Redis, and keeps in mind what it must be told when it is back.
func (c *lease) alone(now time.Time, number int64, perMinute int) limit.Decision {
	c.source.counts.alone.Inc()
	if c.window < number {
		c.window, c.spent, c.empty = number, 0, false
	}
	d := c.own.Take(c.source.inRedis(now), perMinute)
	if d.Allowed {
		c.spent++
	}
	return d
}
