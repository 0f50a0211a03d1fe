package resident

import (
	"net/http"
	"strconv"

	"gridcast/edge/negotiate"
)

// Field is one header field, spelled as it goes over the wire.
type Field struct{ Name, Value []byte }

// Response is a finished response but for the values in [Open]. It is immutable and shared by
// all requests. There are two ways to send it: field by field through an HTTP library, or as
// the block of bytes that [Response.AppendHead] copies, which are the same ones in the same order.
type Response struct {
	Status int
	ETag   []byte  // with its quotes; nil: none
	Fields []Field // the others, shared between responses
	Body   []byte

	// head is everything from the status line to the name of the first rate field. The date,
	// which begins at dateAt, is blank.
	head   []byte
	dateAt int
}

// New makes a response and its block. The body is not copied.
func New(status int, etag []byte, fields []Field, body []byte) *Response {
	r := &Response{Status: status, ETag: etag, Fields: fields, Body: body}
	r.dateAt = len("HTTP/1.1 200 ") + len(http.StatusText(status)) + len(beforeDate)
	r.head = r.render()
	return r
}

// Open holds the values that are the request's own.
type Open struct {
	Date []byte // an HTTP date

	Limit, Remaining int
	Reset            int64 // Unix seconds
	RetryAfter       int   // seconds; 0: no such field
}

// The parts of a block around the open values.
const (
	beforeDate = "\r\nServer: gridcast\r\nDate: "
	blankDate  = "Thu, 01 Jan 1970 00:00:00 GMT"
	limit      = "X-RateLimit-Limit: "
	remaining  = "\r\nX-RateLimit-Remaining: "
	reset      = "\r\nX-RateLimit-Reset: "
	retryAfter = "\r\nRetry-After: "
	headEnd    = "\r\n\r\n"
)

// render returns the head. The order of the fields is that of fasthttp, so that both ways of
// sending a response give the same bytes.
func (r *Response) render() []byte {
	head := strconv.AppendInt([]byte("HTTP/1.1 "), int64(r.Status), 10)
	head = append(append(head, ' '), http.StatusText(r.Status)...)
	head = append(append(append(head, beforeDate...), blankDate...), "\r\n"...)
	for _, name := range []string{"Content-Type", "Content-Encoding"} {
		for _, f := range r.Fields {
			if string(f.Name) == name {
				head = appendField(head, f)
			}
		}
	}
	if r.Status != http.StatusNotModified && r.Status != http.StatusNoContent {
		head = appendField(head, Field{[]byte("Content-Length"), strconv.AppendInt(nil, int64(len(r.Body)), 10)})
	}
	if r.ETag != nil {
		head = appendField(head, Field{[]byte("ETag"), r.ETag})
	}
	for _, f := range r.Fields {
		if name := string(f.Name); name != "Content-Type" && name != "Content-Encoding" {
			head = appendField(head, f)
		}
	}
	return append(head, limit...)[: len(head)+len(limit) : len(head)+len(limit)]
}

func appendField(head []byte, f Field) []byte {
	head = append(append(head, f.Name...), ": "...)
	return append(append(head, f.Value...), "\r\n"...)
}

// AppendHead appends status line and header, to which the body belongs.
func (r *Response) AppendHead(dst []byte, open *Open) []byte {
	date := len(dst) + r.dateAt
	dst = append(dst, r.head...)
	copy(dst[date:date+len(blankDate)], open.Date)
	dst = strconv.AppendInt(dst, int64(open.Limit), 10)
	dst = append(dst, remaining...)
	dst = strconv.AppendInt(dst, int64(open.Remaining), 10)
	dst = append(dst, reset...)
	dst = strconv.AppendInt(dst, open.Reset, 10)
	if open.RetryAfter > 0 {
		dst = append(dst, retryAfter...)
		dst = strconv.AppendInt(dst, int64(open.RetryAfter), 10)
	}
	return append(dst, headEnd...)
}

// The fields of the contract that several responses share.
var (
	JSON = Field{[]byte("Content-Type"), []byte("application/json; charset=utf-8")}

	noSniff     = Field{[]byte("X-Content-Type-Options"), []byte("nosniff")}
	anyOrigin   = Field{[]byte("Access-Control-Allow-Origin"), []byte("*")}
	exposed     = Field{[]byte("Access-Control-Expose-Headers"), []byte("Date, ETag, Retry-After, WWW-Authenticate, Allow, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset")}
	noStore     = Field{[]byte("Cache-Control"), []byte("no-store")}
	variesByAE  = Field{[]byte("Vary"), []byte("Accept-Encoding")}
	moving      = Field{[]byte("Cache-Control"), []byte("private, max-age=30, must-revalidate")}
	seasonOver  = Field{[]byte("Cache-Control"), []byte("private, max-age=300, must-revalidate")}
	contentCode = []byte("Content-Encoding")
)

// NewField returns a field.
func NewField(name, value string) Field { return Field{[]byte(name), []byte(value)} }

// Common returns extra fields followed by those that every response has.
func Common(extra ...Field) []Field {
	return append(extra[:len(extra):len(extra)], noSniff, anyOrigin, exposed)
}

// Uncached is Common for a response that nobody may keep, such as an error.
func Uncached(extra ...Field) []Field {
	return Common(append(extra[:len(extra):len(extra)], noStore)...)
}

// shelf holds the fields of responses of one type and lifetime, by coding.
type shelf struct {
	full        [negotiate.Encodings][]Field
	notModified []Field
}

func newShelf(contentType, lifetime Field) *shelf {
	s := &shelf{notModified: Common(lifetime, variesByAE)}
	for e := range negotiate.Encodings {
		fields := []Field{contentType}
		if e != negotiate.Identity {
			fields = append(fields, Field{contentCode, []byte(e.Token())})
		}
		s.full[e] = Common(append(fields, lifetime, variesByAE)...)
	}
	return s
}

var (
	movingShelf     = newShelf(JSON, moving)
	seasonOverShelf = newShelf(JSON, seasonOver)
)
