package edge

import (
	"gridcast/edge/express"
	"gridcast/edge/limit"
	"gridcast/edge/resident"
)

// OnLane returns the number of requests that the express lane has answered.
func (e *Edge) OnLane() uint64 { return e.lane.(*express.Lane).Answered() }

// AppendHead appends the lane's head of an answer.
func AppendHead(dst []byte, r *resident.Response, rate limit.Verdict, retryAfter int, date []byte) []byte {
	return appendHead(dst, &answer{response: r, rate: rate, retryAfter: retryAfter}, &express.Request{Date: date})
}
