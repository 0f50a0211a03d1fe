package redislimit

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"gridcast/edge/limit"
	"gridcast/edge/limit/resp"
)

// edgesKey is the sorted set of edges by the time of their last sign of life.
const edgesKey = "gridcast:edges"

// greeting notes a sign of life of ARGV[1], forgets who gave none for 5 s, and returns how many
// are left and the time in milliseconds.
var greeting = resp.NewScript(`
local t = redis.call('TIME')
redis.call('ZADD', KEYS[1], t[1], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', t[1] - 6)
redis.call('EXPIRE', KEYS[1], 60)
return {redis.call('ZCARD', KEYS[1]), t[1] * 1000 + math.floor(t[2] / 1000)}
`)

// reservation takes tokens from the window of now. KEYS[1] holds the number of a window and
// its count. ARGV: the second at which windows begin, the limit, by how much what is left is
// divided for a share, 0 for a single token, and the window and number of requests that were
// allowed without asking. It returns window, tokens granted, and tokens left.
var reservation = resp.NewScript(`
local now = tonumber(redis.call('TIME')[1])
local window = math.floor((now - ARGV[1]) / 60)
local limit, divisor = tonumber(ARGV[2]), tonumber(ARGV[3])
local stored = redis.call('HMGET', KEYS[1], 'window', 'count')
local count = 0
if tonumber(stored[1] or -1) >= window then -- Redis' clock may have been set back
  window, count = tonumber(stored[1]), tonumber(stored[2])
end
if tonumber(ARGV[4]) == window then
  count = math.min(limit, count + ARGV[5])
end
local left = math.max(0, limit - count)
local granted = math.min(left, 1)
if divisor > 0 then
  granted = math.min(left, math.max(1, math.floor(left / divisor)))
end
redis.call('HSET', KEYS[1], 'window', window, 'count', count + granted)
redis.call('EXPIRE', KEYS[1], 130)
return {window, granted, left - granted}
`)

// grant is what Redis answered.
type grant struct {
	window  int64
	granted int
	left    int
}

// shared is what counters of both modes have.
type shared struct {
	source *Source
	key    string
	offset int64
	own    *limit.Window // the last known count, to go on from when Redis does not answer
}

// reserve asks Redis. Spent requests of a window were allowed without asking.
func (c *shared) reserve(patience time.Duration, perMinute int, divisor, window int64, spent int) (grant, error) {
	s := c.source
	client := s.client.Load()
	if client == nil || !s.answers() {
		return grant{}, errDown
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	reply, err := reservation.Ints(ctx, client, []string{c.key}, []string{
		strconv.FormatInt(c.offset, 10), strconv.Itoa(perMinute), strconv.FormatInt(divisor, 10),
		strconv.FormatInt(window, 10), strconv.Itoa(spent),
	})
	if err != nil {
		s.counts.failed.Inc()
		s.fail(err)
		return grant{}, fmt.Errorf("ask Redis: %w", err)
	}
	s.counts.answered.Inc()
	g := grant{window: reply[0], granted: int(reply[1]), left: int(reply[2])}
	c.own.Raise(c.reset(g.window), perMinute-g.left)
	return g, nil
}

// reset is the end of a window in Unix seconds.
func (c *shared) reset(window int64) int64 { return (window+1)*limit.Period + c.offset }
