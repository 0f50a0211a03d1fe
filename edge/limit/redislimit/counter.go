package redislimit

import (
	"sync/atomic"
	"time"

	"gridcast/edge/limit"
)

// counter counts the requests of one key.
type counter struct {
	source *Source
	key    string // in Redis
	offset int64

	held  tally         // tokens reserved for this edge and not used yet; none in strict mode
	known tally         // what Redis had counted at its last answer
	own   *limit.Window // that, and what this edge allowed since without Redis: to go on from alone
	debt  tally         // requests allowed alone that Redis has not been told of
	begun atomic.Int64  // the latest window of which a request has asked Redis

	// The last call that a request joined, and where, until it is answered. Guarded by the
	// lock of the queue.
	call  *call
	group int
}

var _ limit.AsyncCounter = (*counter)(nil)

// Take implements [limit.Counter].
func (c *counter) Take(now time.Time, perMinute int) limit.Decision {
	if d, ok := c.TryTake(now, perMinute); ok {
		return d
	}
	p, ok := c.source.queue.join(c, perMinute)
	if !ok {
		return c.alone(now, perMinute)
	}
	if c.source.mode == Lease && c.begins(now) {
		patience := time.NewTimer(leasePatience)
		defer patience.Stop()
		select {
		case <-p.call.done:
		case <-patience.C:
			return c.leave(p, now, perMinute)
		}
	}
	<-p.call.done
	return c.answered(p, now, perMinute)
}

// TakeAsync implements [limit.AsyncCounter].
func (c *counter) TakeAsync(now time.Time, perMinute int, then func(limit.Decision)) {
	if d, ok := c.TryTake(now, perMinute); ok {
		then(d)
		return
	}
	if c.source.mode == Lease {
		go func() { then(c.Take(now, perMinute)) }() // seldom, and with a patience of its own
		return
	}
	if !c.source.queue.joinUntil(c, perMinute, func(p place) { then(c.answered(p, now, perMinute)) }) {
		then(c.alone(now, perMinute))
	}
}

// TryTake implements [limit.AsyncCounter]. It decides unless Redis has to be asked, as it always has
// to be in strict mode while it answers. It takes no lock.
func (c *counter) TryTake(now time.Time, perMinute int) (limit.Decision, bool) {
	if c.source.mode == Lease {
		number := c.number(now)
		if window, left, ok := c.held.take(number); ok {
			return limit.Decision{
				Allowed: true, Limit: perMinute, Remaining: left + c.left(window, perMinute), Reset: c.reset(window),
			}, true
		}
		if window, count := c.known.load(); window >= number && count >= perMinute {
			return limit.Decision{Limit: perMinute, Reset: c.reset(window)}, true
		}
	}
	if !c.source.answers() {
		return c.alone(now, perMinute), true
	}
	return limit.Decision{}, false
}

// answered decides by the answer, which has come.
func (c *counter) answered(p place, now time.Time, perMinute int) limit.Decision {
	if p.call.err != nil {
		return c.alone(now, perMinute)
	}
	a := p.call.groups[p.group].answer
	d := limit.Decision{Limit: perMinute, Reset: c.reset(a.window)}
	if p.index < a.granted {
		d.Allowed = true
		d.Remaining = a.granted - 1 - p.index + max(0, perMinute-a.count)
	}
	return d
}

// leave decides before the answer. Redis counts the request all the same when it comes to the
// call, and so the request is owed only if the call fails.
func (c *counter) leave(p place, now time.Time, perMinute int) limit.Decision {
	q := &c.source.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-p.call.done: // just now
		return c.answered(p, now, perMinute)
	default:
	}
	d := c.without(now, perMinute)
	if d.Allowed {
		p.call.groups[p.group].credit = c.window(d)
	}
	return d
}

// alone counts without Redis, and keeps in mind what it must be told when it is back.
func (c *counter) alone(now time.Time, perMinute int) limit.Decision {
	d := c.without(now, perMinute)
	if d.Allowed {
		c.debt.add(c.window(d), 1)
	}
	return d
}

// without decides by the last known count.
func (c *counter) without(now time.Time, perMinute int) limit.Decision {
	c.source.counts.alone.Inc()
	return c.own.Take(c.source.inRedis(now), perMinute)
}

// settle takes note of an answer. Who waited for it has the first tokens, and what is more is
// held.
func (c *counter) settle(g *group) {
	// The count goes first, so that nobody adds new tokens to what was left before them.
	c.known.raise(g.answer.window, g.answer.count)
	c.own.Raise(c.reset(g.answer.window), g.answer.count)
	if more := g.answer.granted - g.wanted; more > 0 {
		c.held.add(g.answer.window, more)
	}
}

// fail takes note that there is no answer.
func (c *counter) fail(g *group) {
	c.debt.add(g.debt.window, g.debt.n)
	if g.credit != 0 {
		c.debt.add(g.credit, 1)
	}
}

// begins reports whether this is the first request of its window to ask Redis.
func (c *counter) begins(now time.Time) bool {
	number, latest := c.number(now), c.begun.Load()
	return latest < number && c.begun.CompareAndSwap(latest, number)
}

// left is what Redis had left of the window at its last answer.
func (c *counter) left(window int64, perMinute int) int {
	if last, count := c.known.load(); last == window {
		return max(0, perMinute-count)
	}
	return 0
}

// number is that of the window at now.
func (c *counter) number(now time.Time) int64 {
	return (c.source.inRedis(now).Unix() - c.offset) / limit.Period
}

// window is the number of the window of a decision.
func (c *counter) window(d limit.Decision) int64 { return (d.Reset-c.offset)/limit.Period - 1 }

// reset is the end of a window in Unix seconds.
func (c *counter) reset(window int64) int64 { return (window+1)*limit.Period + c.offset }
