package edge

import (
	"gridcast/edge/express"
	"gridcast/edge/limit"
	"gridcast/edge/resident"
)

// OnLane returns how many requests the express lane has answered.
func (e *Edge) OnLane() uint64 { return e.lane.(*express.Lane).Answered() }

// AppendHead appends the head of an answer as the lane sends it.
func AppendHead(dst []byte, r *resident.Response, rate limit.Decision, retryAfter int, date []byte) []byte {
	return appendHead(dst, &answer{response: r, rate: rate, retryAfter: retryAfter}, &express.Request{Date: date})
}
