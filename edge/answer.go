package edge

import (
	"net/http"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"gridcast/edge/limit"
	"gridcast/edge/resident"
	"gridcast/schemas/wire"
)

// answer is a decided response: a finished one and what is the request's own.
type answer struct {
	response   *resident.Response
	round      *wire.CountdownRound // body of the response as of instant, if not nil
	instant    time.Time
	retryAfter int // seconds; 0: no such header
	rate       limit.Decision

	endpoint int // label of the metrics: index into catalog.Endpoints, unrouted or outside
	tier     int // label of the metrics: index into keys.Tiers.Names, or noTier
}

// counting is the response of the computed endpoint, but for its body.
var counting = &resident.Response{Status: http.StatusOK, Fields: resident.Uncached(resident.JSON)}

// count answers with the first round that starts after now, which is race time.
func (a *answer) count(countdown *wire.Countdown, now time.Time) {
	a.round = countdown.Next(now)
	if a.round == nil {
		a.response = noRace
		return
	}
	a.response, a.instant = counting, now
}

// The names of the fields that are the request's own, in their spelling on the wire.
var (
	rateLimit     = []byte("X-RateLimit-Limit")
	rateRemaining = []byte("X-RateLimit-Remaining")
	rateReset     = []byte("X-RateLimit-Reset")
	retryAfter    = []byte("Retry-After")
	etag          = []byte("ETag")
)

// write puts the answer into the server's response. It does not allocate.
func (a *answer) write(response *fasthttp.Response) {
	h := &response.Header
	h.SetStatusCode(a.response.Status)
	if a.response.ETag != nil {
		h.SetCanonical(etag, a.response.ETag) // Set would spell it Etag
	}
	for _, f := range a.response.Fields {
		h.SetCanonical(f.Name, f.Value)
	}
	setInt(h, rateLimit, int64(a.rate.Limit))
	setInt(h, rateRemaining, int64(a.rate.Remaining))
	setInt(h, rateReset, a.rate.Reset)
	if a.retryAfter > 0 {
		setInt(h, retryAfter, int64(a.retryAfter))
	}
	if a.round == nil {
		response.SetBodyRaw(a.response.Body)
		return
	}
	var body [4 << 10]byte
	response.SetBody(a.round.Append(body[:0], a.instant))
}

func setInt(h *fasthttp.ResponseHeader, name []byte, value int64) {
	var digits [20]byte
	h.SetCanonical(name, strconv.AppendInt(digits[:0], value, 10))
}
