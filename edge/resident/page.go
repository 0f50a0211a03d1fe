package resident

import (
	"net/http"

	"gridcast/edge/negotiate"
)

// Page is one variant in every form it can be served in.
type Page struct {
	// Endpoint is the index into catalog.Endpoints.
	Endpoint int
	// Computed says that the edge completes the body, so that Answer must not be asked.
	Computed bool

	// By coding; nil where the variant is not stored in it. The identity is always there.
	full        [negotiate.Encodings]*Response
	notModified [negotiate.Encodings]*Response
}

// newPage makes the responses of a body and its encoded forms, of which any but the identity
// may be nil.
func newPage(endpoint int, etag string, bodies [negotiate.Encodings][]byte, fields *shelf) *Page {
	p := &Page{Endpoint: endpoint}
	for e := range negotiate.Encodings {
		if bodies[e] == nil {
			continue
		}
		tag := `"` + etag + `"`
		if e != negotiate.Identity {
			tag = `"` + etag + "-" + e.Suffix() + `"`
		}
		p.full[e] = &Response{Status: http.StatusOK, ETag: []byte(tag), Fields: fields.full[e], Body: bodies[e]}
		p.notModified[e] = &Response{Status: http.StatusNotModified, ETag: []byte(tag), Fields: fields.notModified}
	}
	return p
}

// Answer returns the response to a request with these headers: the best form the client
// takes, or 304 if it holds the content in any form. The 304 carries the tag that matched:
// that of the best form if it is among them.
func (p *Page) Answer(acceptEncoding, ifNoneMatch []byte) *Response {
	best := p.best(acceptEncoding)
	if len(ifNoneMatch) == 0 {
		return p.full[best]
	}
	forms := [negotiate.Encodings]negotiate.Encoding{best}
	tags := [negotiate.Encodings][]byte{p.full[best].ETag}
	n := 1
	for e := range negotiate.Encodings {
		if e != best && p.full[e] != nil {
			forms[n], tags[n] = e, p.full[e].ETag
			n++
		}
	}
	switch i := negotiate.NoneMatch(ifNoneMatch, tags[:n]); i {
	case negotiate.None:
		return p.full[best]
	case negotiate.Any:
		return p.notModified[best]
	default:
		return p.notModified[forms[i]]
	}
}

func (p *Page) best(acceptEncoding []byte) negotiate.Encoding {
	order := negotiate.AcceptEncoding(acceptEncoding)
	for _, e := range order.All() {
		if p.full[e] != nil {
			return e
		}
	}
	return negotiate.Identity
}
