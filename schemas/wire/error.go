package wire

// Code is the machine-readable reason in an error body.
type Code string

// Every error code of the contract, with the HTTP status it comes with.
const (
	BadRequest       Code = "bad_request"        // 400, refused by the HTTP layer
	Unauthorized     Code = "unauthorized"       // 401
	OriginNotAllowed Code = "origin_not_allowed" // 403
	NotFound         Code = "not_found"          // 404
	MethodNotAllowed Code = "method_not_allowed" // 405
	Timeout          Code = "timeout"            // 408
	TooLarge         Code = "too_large"          // 413 and 431
	BadParam         Code = "bad_param"          // 422
	RateLimited      Code = "rate_limited"       // 429
	InternalError    Code = "internal_error"     // 500
	Unavailable      Code = "unavailable"        // 503
)

// Error is the body of every response that is not a success.
type Error struct {
	OK      bool   `json:"ok"` // always false
	Error   Code   `json:"error"`
	Message string `json:"message"` // for people: the fault, and the allowed values
}

// NewError returns an error body.
func NewError(code Code, message string) Error { return Error{Error: code, Message: message} }
