package edge

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"gridcast/edge/limit"
	"gridcast/edge/resident"
	"gridcast/schemas/wire"
)

// answer is a decided response: a finished one, and the fields of this request.
type answer struct {
	response   *resident.Response
	retryAfter int           // seconds; 0: no such header
	clock      int64         // race time, Unix seconds; 0: it is real time, and there is no such header
	file       *openFile     // the body; nil: the response's own
	rate       limit.Verdict // zero: nothing is limited here, and the answer has no rate fields

	endpoint int // label of the metrics: index into catalog.Endpoints, unrouted or outside
	tier     int // label of the metrics: index into keys.Tiers.Names, or noTier
}

// The names of the fields of a single request, in their wire spelling.
var (
	rateLimit     = []byte("X-RateLimit-Limit")
	rateRemaining = []byte("X-RateLimit-Remaining")
	rateReset     = []byte("X-RateLimit-Reset")
	retryAfter    = []byte("Retry-After")
	raceClock     = []byte("X-Gridcast-Clock")
)

// write puts the answer into the server's response. It does not allocate.
func (a *answer) write(response *fasthttp.Response) {
	h := &response.Header
	a.response.Fill(h)
	if a.rate.Limit > 0 {
		setInt(h, rateLimit, int64(a.rate.Limit))
		setInt(h, rateRemaining, int64(a.rate.Remaining))
		setInt(h, rateReset, a.rate.Reset)
	}
	if a.retryAfter > 0 {
		setInt(h, retryAfter, int64(a.retryAfter))
	}
	if a.clock != 0 {
		setInt(h, raceClock, a.clock)
	}
	if a.file != nil {
		response.SetBodyStream(a.file, a.file.size) // closes it
		return
	}
	response.SetBodyRaw(a.response.Body)
}

func setInt(h *fasthttp.ResponseHeader, name []byte, value int64) {
	var digits [20]byte
	h.SetCanonical(name, strconv.AppendInt(digits[:0], value, 10))
}

// retrySoon is the Retry-After of a 503, in seconds: about the time of a start.
const retrySoon = 5

// The constant refusals.
var (
	keyMissing = refusal(http.StatusUnauthorized, wire.Unauthorized,
		"no API key arrived: send it as Authorization: Bearer KEY or X-API-Key: KEY; a key in the query is not read",
		resident.NewField("WWW-Authenticate", `Bearer realm="gridcast"`))
	keyRefused = refusal(http.StatusUnauthorized, wire.Unauthorized, // one message for every fault of a key, because a guesser must not learn how close a guess is
		"this API key is not valid: check that all of it was copied, and that it has neither expired nor been revoked",
		resident.NewField("WWW-Authenticate", `Bearer realm="gridcast", error="invalid_token"`))
	originRefused = refusal(http.StatusForbidden, wire.OriginNotAllowed,
		"this key may not be used from this origin")
	overLimit = refusal(http.StatusTooManyRequests, wire.RateLimited,
		"too many requests in this minute; Retry-After says when the next one is allowed")
	noRoute = refusal(http.StatusNotFound, wire.NotFound,
		"no such path; /openapi.json lists what there is")
	noRace = refusal(http.StatusNotFound, wire.NotFound,
		"no coming race is known")
	wrongMethod = refusal(http.StatusMethodNotAllowed, wire.MethodNotAllowed,
		"this path answers GET, HEAD and OPTIONS", allow)
	noKeysYet = refusal(http.StatusServiceUnavailable, wire.Unavailable,
		"the service is starting; try again in a few seconds")
	noVersionYet = refusal(http.StatusServiceUnavailable, wire.Unavailable,
		"no data has been loaded yet; try again in a few seconds")
	notInVersion = refusal(http.StatusServiceUnavailable, wire.Unavailable,
		"this has not been published yet; the next version will have it")
	notOnDisk = refusal(http.StatusServiceUnavailable, wire.Unavailable,
		"this edge has no copy of the file yet; try again in a few seconds")
	tooManyDownloads = refusal(http.StatusServiceUnavailable, wire.Unavailable,
		"too many downloads at once; try again in a few seconds")
	panicked = refusal(http.StatusInternalServerError, wire.InternalError,
		"something went wrong on our side")

	malformedRequest = refusal(http.StatusBadRequest, wire.BadRequest, "the request is not valid HTTP")
	codedRequest     = refusal(http.StatusBadRequest, wire.BadRequest,
		"no path accepts Transfer-Encoding: send the request without a body, or its size in Content-Length")
	twoOrigins = refusal(http.StatusBadRequest, wire.BadRequest,
		"the request has more than one Origin: send one, because a proxy may read another one than this service")
	slowRequest = refusal(http.StatusRequestTimeout, wire.Timeout, "the request did not arrive in time")
	largeBody   = refusal(http.StatusRequestEntityTooLarge, wire.TooLarge, "the request body is too large; no path wants one")
	largeHeader = refusal(http.StatusRequestHeaderFieldsTooLarge, wire.TooLarge, "request line and header are too large")
)

var (
	allow     = resident.NewField("Allow", "GET, HEAD, OPTIONS")
	preflight = resident.New(http.StatusNoContent, nil, resident.Common(
		allow,
		resident.NewField("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"),
		resident.NewField("Access-Control-Allow-Headers", "Authorization, X-API-Key, If-None-Match, Cache-Control, Content-Type, X-Requested-With, traceparent, tracestate, baggage"),
		resident.NewField("Access-Control-Max-Age", "7200"),
	), nil)
)

// refusal makes an error response. Its field Link leads to the row of its code in the documentation.
func refusal(status int, code wire.Code, message string, fields ...resident.Field) *resident.Response {
	help := resident.NewField("Link", "</docs/errors#"+string(code)+`>; rel="help"`)
	return resident.New(status, nil, resident.Uncached(append([]resident.Field{resident.JSON, help}, fields...)...), marshal(wire.NewError(code, message)))
}

// marshal returns the bytes of a body that the edge itself makes.
func marshal(body any) []byte {
	text, err := wire.Marshal(body)
	if err != nil {
		panic("BUG: a body cannot be marshalled: " + err.Error())
	}
	return text
}

// countdown makes the responses of the computed endpoint.
//
// Cache, by the round's body and the second, from which the response is made: a request shares it with all of its second,
// and allocates nothing.
type countdown struct {
	header *resident.Header
	latest atomic.Pointer[second]
}

// second is the response of one round in one second of race time.
type second struct {
	round    *wire.CountdownRound
	unix     int64
	response *resident.Response
}

var (
	countdownHeader        = resident.Uncached(resident.JSON)
	sandboxCountdownHeader = resident.Uncached(resident.JSON, resident.Simulated)
)

// answer returns the response with the first round that starts after now, in race time.
func (c *countdown) answer(rounds *wire.Countdown, now time.Time) *resident.Response {
	round := rounds.Next(now)
	if round == nil {
		return noRace
	}
	if s := c.latest.Load(); s != nil && *s.round == *round && s.unix == now.Unix() {
		return s.response
	}
	s := &second{
		round: round, unix: now.Unix(),
		response: resident.New(http.StatusOK, nil, c.header, round.Append(nil, now)),
	}
	c.latest.Store(s)
	return s.response
}
