package resident

import "gridcast/edge/negotiate"

// Field is one header field in its wire form.
type Field struct{ Name, Value []byte }

// Response is a finished response without the date and the rate fields. It is immutable and
// shared by all requests.
type Response struct {
	Status int
	ETag   []byte  // with its quotes; nil: none
	Fields []Field // the others, shared between responses
	Body   []byte
}

// New makes a response. The body is not copied.
func New(status int, etag []byte, fields []Field, body []byte) *Response {
	return &Response{Status: status, ETag: etag, Fields: fields, Body: body}
}

// The fields of the contract that several responses share.
var (
	JSON = Field{[]byte("Content-Type"), []byte("application/json; charset=utf-8")}

	noSniff     = Field{[]byte("X-Content-Type-Options"), []byte("nosniff")}
	anyOrigin   = Field{[]byte("Access-Control-Allow-Origin"), []byte("*")}
	exposed     = Field{[]byte("Access-Control-Expose-Headers"), []byte("Date, ETag, Retry-After, WWW-Authenticate, Allow, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Repr-Digest")}
	noStore     = Field{[]byte("Cache-Control"), []byte("no-store")}
	variesByKey = Field{[]byte("Vary"), []byte("Accept-Encoding, Authorization, X-API-Key")} // a browser's cache must not answer for another key
	moving      = Field{[]byte("Cache-Control"), []byte("private, max-age=30, must-revalidate")}
	passing     = Field{[]byte("Cache-Control"), []byte("private, max-age=5, must-revalidate")}
	seasonOver  = Field{[]byte("Cache-Control"), []byte("private, max-age=300, must-revalidate")}
	contentCode = []byte("Content-Encoding")
)

// NewField returns a field.
func NewField(name, value string) Field { return Field{[]byte(name), []byte(value)} }

// Common returns extra fields followed by the fields of every response.
func Common(extra ...Field) []Field {
	return append(extra[:len(extra):len(extra)], noSniff, anyOrigin, exposed)
}

// Uncached is Common for a response that no cache may keep, such as an error.
func Uncached(extra ...Field) []Field {
	return Common(append(extra[:len(extra):len(extra)], noStore)...)
}

// headerSet holds the header fields of responses of one type and lifetime, by coding.
type headerSet struct {
	full        [negotiate.Encodings][]Field
	notModified []Field
}

func newHeaderSet(contentType, lifetime Field, more ...Field) *headerSet {
	always := append([]Field{lifetime, variesByKey}, more...)
	s := &headerSet{notModified: Common(always...)}
	for e := range negotiate.Encodings {
		fields := []Field{contentType}
		if e != negotiate.Identity {
			fields = append(fields, Field{contentCode, []byte(e.Token())})
		}
		s.full[e] = Common(append(fields, always...)...)
	}
	return s
}

var (
	passingHeaders    = newHeaderSet(JSON, passing)
	movingHeaders     = newHeaderSet(JSON, moving)
	seasonOverHeaders = newHeaderSet(JSON, seasonOver)
)
