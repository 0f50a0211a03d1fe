package redislimit

import (
	"context"
	"crypto/sha1" //nolint:gosec // G505: Redis names scripts by it
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// edgesKey is the sorted set of edges by the time of their last sign of life.
const edgesKey = "gridcast:edges"

// script is a program that Redis runs about one key.
type script struct{ text, sha string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // G401: the same
	return script{text, hex.EncodeToString(sum[:])}
}

// ask runs the script, and returns its answer of n numbers. It sends the text if Redis does not know the script.
func (s script) ask(ctx context.Context, client *client, n int, key string, args []string, numbers ...int64) ([]value, error) {
	words := append(append(make([]string, 0, 5), "EVALSHA", s.sha, "1", key), args...)
	reply, err := client.do(ctx, key, words, numbers...)
	if refused, ok := errors.AsType[refusal](err); ok && strings.HasPrefix(string(refused), "NOSCRIPT") {
		words[0], words[1] = "EVAL", s.text
		reply, err = client.do(ctx, key, words, numbers...)
	}
	if err == nil && len(reply) != n {
		err = fmt.Errorf("got %d numbers, want %d", len(reply), n)
	}
	return reply, err
}

// slot is the number of the share of a cluster's keys that has key: CRC-16 over the key, or over its part in braces.
func slot(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
	}
	return strconv.Itoa(int(crc % 16384))
}

// greeting notes a sign of life of ARGV[1], removes the edges without one for 5 s, and returns the number
// of the rest and the time in milliseconds.
var greeting = newScript(`
local t = redis.call('TIME')
redis.call('ZADD', KEYS[1], t[1], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', t[1] - 6)
redis.call('EXPIRE', KEYS[1], 60)
return {redis.call('ZCARD', KEYS[1]), t[1] * 1000 + math.floor(t[2] / 1000)}
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
return {window, granted, count + granted}
`)
