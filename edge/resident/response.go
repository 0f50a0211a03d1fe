package resident

import (
	"github.com/valyala/fasthttp"

	"gridcast/edge/negotiate"
)

// Field is one header field in its wire form.
type Field struct{ Name, Value []byte }

// Response is a finished response without the date and the rate fields. It is immutable and
// shared by all requests.
type Response struct {
	Status int
	ETag   []byte  // with its quotes; nil: none
	Header *Header // the other fields, shared between responses
	Body   []byte
}

// New makes a response. The body is not copied.
func New(status int, etag []byte, header *Header, body []byte) *Response {
	return &Response{Status: status, ETag: etag, Header: header, Body: body}
}

var etagName = []byte("ETag")

// Fill replaces the status and the header of dst by those of the response. It does not allocate.
func (r *Response) Fill(dst *fasthttp.ResponseHeader) {
	r.Header.finished.CopyTo(dst)
	dst.SetStatusCode(r.Status)
	if r.ETag != nil {
		dst.SetCanonical(etagName, r.ETag) // Set would spell it Etag
	}
}

// Header holds fields that several responses share, as fasthttp writes them, because copying them costs a third of
// setting each. It is immutable.
type Header struct {
	fields   []Field
	finished fasthttp.ResponseHeader
}

// newHeader makes a header. A tagged one has the place of an ETag before the fields.
func newHeader(tagged bool, fields []Field) *Header {
	h := &Header{fields: fields}
	h.finished.SetNoDefaultContentType(true)
	if tagged {
		h.finished.SetCanonical(etagName, nil)
	}
	for _, f := range fields {
		h.finished.SetCanonical(f.Name, f.Value)
	}
	return h
}

// The fields of the contract that several responses share.
var (
	JSON = Field{[]byte("Content-Type"), []byte("application/json; charset=utf-8")}

	noSniff     = Field{[]byte("X-Content-Type-Options"), []byte("nosniff")}
	anyOrigin   = Field{[]byte("Access-Control-Allow-Origin"), []byte("*")}
	exposed     = Field{[]byte("Access-Control-Expose-Headers"), []byte("Date, ETag, Retry-After, WWW-Authenticate, Allow, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Repr-Digest, Link, X-Gridcast-World, X-Gridcast-Clock")}
	noStore     = Field{[]byte("Cache-Control"), []byte("no-store")}
	variesByKey = Field{[]byte("Vary"), []byte("Accept-Encoding, Authorization, X-API-Key")} // a browser's cache must not answer for another key
	moving      = Field{[]byte("Cache-Control"), []byte("private, max-age=30, must-revalidate")}
	passing     = Field{[]byte("Cache-Control"), []byte("private, max-age=5, must-revalidate")}
	seasonOver  = Field{[]byte("Cache-Control"), []byte("private, max-age=300, must-revalidate")}
	// Simulated marks each success with data of a sandbox. A cache in front passes such answers on.
	Simulated   = Field{[]byte("X-Gridcast-World"), []byte("sandbox")}
	contentCode = []byte("Content-Encoding")
)

// NewField returns a field.
func NewField(name, value string) Field { return Field{[]byte(name), []byte(value)} }

// Common returns a header with extra fields and those of every response.
func Common(extra ...Field) *Header { return newHeader(false, common(extra)) }

// Uncached is Common for a response that no cache may keep, such as an error.
func Uncached(extra ...Field) *Header {
	return Common(append(extra[:len(extra):len(extra)], noStore)...)
}

func common(extra []Field) []Field {
	return append(extra[:len(extra):len(extra)], noSniff, anyOrigin, exposed)
}

// headerSet holds the headers of responses of one type and lifetime, by coding.
type headerSet struct {
	full        [negotiate.Encodings]*Header
	notModified *Header
}

func newHeaderSet(contentType, lifetime Field, more ...Field) *headerSet {
	always := append([]Field{lifetime, variesByKey}, more...)
	s := &headerSet{notModified: newHeader(true, common(always))}
	for e := range negotiate.Encodings {
		fields := []Field{contentType}
		if e != negotiate.Identity {
			fields = append(fields, Field{contentCode, []byte(e.Token())})
		}
		s.full[e] = newHeader(true, common(append(fields, always...)))
	}
	return s
}

var (
	passingHeaders    = newHeaderSet(JSON, passing)
	movingHeaders     = newHeaderSet(JSON, moving)
	seasonOverHeaders = newHeaderSet(JSON, seasonOver)
	sandboxHeaders    = newHeaderSet(JSON, passing, Simulated) // its time runs faster than a client's
)
