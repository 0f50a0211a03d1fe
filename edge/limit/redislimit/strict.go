package redislimit

import (
	"errors"
	"time"

	"gridcast/edge/limit"
)

var errDown = errors.New("redis does not answer")

// strict asks Redis for every request.
type strict struct{ shared }

var _ limit.Counter = (*strict)(nil)

// Take implements [limit.Counter].
func (c *strict) Take(now time.Time, perMinute int) limit.Decision {
	g, err := c.reserve(strictPatience, perMinute, 0, 0, 0)
	if err != nil {
		return c.alone(now, perMinute)
	}
	return limit.Decision{Allowed: g.granted > 0, Limit: perMinute, Remaining: g.left, Reset: c.reset(g.window)}
}

// TryTake implements [limit.Counter]. It decides only while Redis does not answer.
func (c *strict) TryTake(now time.Time, perMinute int) (limit.Decision, bool) {
	if c.source.answers() {
		return limit.Decision{}, false
	}
	return c.alone(now, perMinute), true
}

// alone counts without Redis.
func (c *strict) alone(now time.Time, perMinute int) limit.Decision {
	c.source.counts.alone.Inc()
	return c.own.Take(c.source.inRedis(now), perMinute)
}
