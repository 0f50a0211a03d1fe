package redislimit

import "gridcast/edge/limit/resp"

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

// reservation takes tokens from the windows of now. Each key holds the number of a window and
// its count. ARGV[1] is by how much what is left is divided for a share, or 0 where nobody gets
// more than he wants. For each key follow the second at which windows begin, the limit, the
// tokens wanted, the window and its count at the last answer, and the window and number of
// requests that were allowed without asking. For each key it returns window, tokens granted,
// and the count with them. The count of the last answer is of use to a Redis that has lost it.
var reservation = resp.NewScript(`
local now = tonumber(redis.call('TIME')[1])
local divisor = tonumber(ARGV[1])
local reply = {}
for i, key in ipairs(KEYS) do
  local offset, limit, wanted, known_window, known, debt_window, debt = unpack(ARGV, 7 * i - 5, 7 * i + 1)
  local window = math.floor((now - offset) / 60)
  local stored = redis.call('HMGET', key, 'window', 'count')
  local last, count = tonumber(stored[1] or -1), tonumber(stored[2] or 0)
  local fresh = last < window
  if fresh then
    count = 0
  else
    window = last -- Redis' clock may have been set back
  end
  if tonumber(known_window) == window then
    count = math.max(count, known)
  end
  if tonumber(debt_window) == window then
    count = count + debt
  end
  local left = math.max(0, limit - count)
  local granted = math.min(left, wanted)
  if divisor > 0 then
    granted = math.min(left, math.max(wanted, math.floor(left / divisor)))
  end
  redis.call('HSET', key, 'window', window, 'count', count + granted)
  if fresh then
    redis.call('EXPIRE', key, 130)
  end
  reply[3 * i - 2], reply[3 * i - 1], reply[3 * i] = window, granted, count + granted
end
return reply
`)
