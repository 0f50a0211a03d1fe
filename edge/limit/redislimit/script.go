package redislimit

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// edgesKey is the sorted set of edges by the time of their last sign of life.
const edgesKey = "gridcast:edges"

// script is a program that Redis runs about one key. Its last argument is the number of the question, which ends the
// answer: an answer with another number belongs to another question.
type script struct{ text, sha string }

func newScript(text string) script { return script{text, redis.NewScript(text).Hash()} }

// run runs the script, and returns its answer of n numbers. It sends the text if Redis does not know the script.
func (s script) run(ctx context.Context, client *client, n int, key string, args ...any) ([]int64, error) {
	used, number := client.next()
	words := append(append([]any{"evalsha", s.sha, 1, key}, args...), number)
	reply, err := client.do(ctx, words...)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		words[0], words[1] = "eval", s.text
		reply, err = client.do(ctx, words...)
	}
	if err != nil {
		return nil, err
	}
	values, _ := reply.([]any)
	if len(values) != n+1 || values[n] != strconv.FormatInt(number, 10) {
		client.renew(used, false)
		return nil, fmt.Errorf("%w: got %.80v, want %d numbers and %d", errShifted, reply, n, number)
	}
	numbers := make([]int64, n)
	for i := range numbers {
		var ok bool
		if numbers[i], ok = values[i].(int64); !ok {
			return nil, fmt.Errorf("got %.80v, want %d numbers", values, n)
		}
	}
	return numbers, nil
}

// registration notes a sign of life of ARGV[1], removes the edges without one for 5 s, and returns the number
// of the rest and the time in milliseconds.
var registration = newScript(`
local t = redis.call('TIME')
redis.call('ZADD', KEYS[1], t[1], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', t[1] - 6)
redis.call('EXPIRE', KEYS[1], 60)
return {redis.call('ZCARD', KEYS[1]), t[1] * 1000 + math.floor(t[2] / 1000), ARGV[2]}
`)

// reservation takes tokens of a key from the present window. The key holds the number of a window and its
// count. The arguments are: the divisor of the rest for a share, or 0 for no more than the wanted tokens;
// the second at which windows begin; the limit; the wanted tokens; the window and the count that the edge
// knows, which restore a lost count; the window and the number of requests that the edge allowed without
// asking, which its count includes. It returns the window, the tokens granted, and the count with them.
var reservation = newScript(`
local divisor, offset, limit, wanted, known_window, known, unreported_window, unreported =
  tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]),
  tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local window = math.floor((redis.call('TIME')[1] - offset) / 60)
local stored = redis.call('HMGET', KEYS[1], 'window', 'count')
local last, count = tonumber(stored[1] or -1), tonumber(stored[2] or 0)
local fresh = last < window or last > window + 1 -- the clock was wrong when it was stored
if fresh then
  count = 0
else
  window = last -- the clock may have been set back a little
end
if unreported_window == window then
  count = count + unreported
end
if known_window == window then
  count = math.max(count, known)
end
local left = math.max(0, limit - count)
local granted = math.min(left, wanted)
if divisor > 0 then
  granted = math.min(left, math.max(wanted, math.floor(left / divisor)))
end
redis.call('HSET', KEYS[1], 'window', window, 'count', count + granted)
if fresh then
  redis.call('EXPIRE', KEYS[1], 130)
end
return {window, granted, count + granted, ARGV[9]}
`)
