package edge

import (
	"net/http"
	"sync/atomic"
	"time"

	"gridcast/edge/resident"
	"gridcast/schemas/wire"
)

// countdown makes the responses of the computed endpoint. Its body is a function of the round
// and the second, so that all requests of one second share a response.
type countdown struct {
	latest atomic.Pointer[second]
}

// second is the response of one round in one second of race time.
type second struct {
	round    *wire.CountdownRound
	unix     int64
	response *resident.Response
}

var countdownFields = resident.Uncached(resident.JSON)

// answer returns the response with the first round that starts after now, which is race time.
func (c *countdown) answer(rounds *wire.Countdown, now time.Time) *resident.Response {
	round := rounds.Next(now)
	if round == nil {
		return noRace
	}
	if s := c.latest.Load(); s != nil && s.round == round && s.unix == now.Unix() {
		return s.response
	}
	s := &second{
		round: round, unix: now.Unix(),
		response: resident.New(http.StatusOK, nil, countdownFields, round.Append(nil, now)),
	}
	c.latest.Store(s)
	return s.response
}
