package edge

import (
	"net/http"

	"gridcast/edge/resident"
	"gridcast/schemas/wire"
)

// retrySoon is the Retry-After of a 503, in seconds: about what a start takes.
const retrySoon = 5

// The refusals that are always the same.
var (
	anonymousRefused = refusal(http.StatusUnauthorized, wire.Unauthorized, unauthorizedMessage,
		resident.NewField("WWW-Authenticate", `Bearer realm="gridcast"`))
	keyRefused = refusal(http.StatusUnauthorized, wire.Unauthorized, unauthorizedMessage,
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
	panicked = refusal(http.StatusInternalServerError, wire.InternalError,
		"something went wrong on our side")

	malformedRequest = refusal(http.StatusBadRequest, wire.BadRequest, "the request is not valid HTTP")
	slowRequest      = refusal(http.StatusRequestTimeout, wire.Timeout, "the request did not arrive in time")
	largeBody        = refusal(http.StatusRequestEntityTooLarge, wire.TooLarge, "the request body is too large; no path wants one")
	largeHeader      = refusal(http.StatusRequestHeaderFieldsTooLarge, wire.TooLarge, "request line and header are too large")
)

// One message, whatever is wrong with a key: it must not tell a guesser how close they are.
const unauthorizedMessage = "a valid API key is required, as Authorization: Bearer KEY or X-API-Key: KEY"

var (
	allow     = resident.NewField("Allow", "GET, HEAD, OPTIONS")
	preflight = resident.New(http.StatusNoContent, nil, resident.Common(
		allow,
		resident.NewField("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"),
		resident.NewField("Access-Control-Allow-Headers", "Authorization, X-API-Key, If-None-Match, Cache-Control, Content-Type"),
		resident.NewField("Access-Control-Max-Age", "7200"),
	), nil)
)

// refusal makes an error response.
func refusal(status int, code wire.Code, message string, fields ...resident.Field) *resident.Response {
	body, err := wire.Marshal(wire.NewError(code, message))
	if err != nil {
		panic("BUG: an error body can not be marshalled: " + err.Error())
	}
	return resident.New(status, nil, resident.Uncached(append([]resident.Field{resident.JSON}, fields...)...), body)
}
