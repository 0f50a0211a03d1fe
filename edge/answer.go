package edge

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"gridcast/edge/limit"
	"gridcast/edge/resident"
)

// answer is a decided response: a finished one and what is the request's own.
type answer struct {
	response   *resident.Response
	retryAfter int // seconds; 0: no such header
	rate       limit.Decision

	endpoint int // label of the metrics: index into catalog.Endpoints, unrouted or outside
	tier     int // label of the metrics: index into keys.Tiers.Names, or noTier
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
	response.SetBodyRaw(a.response.Body)
}

func setInt(h *fasthttp.ResponseHeader, name []byte, value int64) {
	var digits [20]byte
	h.SetCanonical(name, strconv.AppendInt(digits[:0], value, 10))
}

// appendHead appends the bytes that the server would send before the body. It does not
// allocate.
func (a *answer) appendHead(dst, date []byte) []byte {
	return a.response.AppendHead(dst, &resident.Open{
		Date:  date,
		Limit: a.rate.Limit, Remaining: a.rate.Remaining, Reset: a.rate.Reset, RetryAfter: a.retryAfter,
	})
}
