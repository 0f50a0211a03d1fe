package resident

import (
	"errors"
	"net/http"

	"gridcast/edge/negotiate"
	"gridcast/snapshots"
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

// fill makes the responses of a body and its codings.
func (p *Page) fill(body *snapshots.Body, fields *shelf) error {
	if body.Entry.ETag == "" {
		return errors.New("no etag")
	}
	for e := range negotiate.Encodings {
		bytes, tag := body.Identity, `"`+body.Entry.ETag+`"`
		if e != negotiate.Identity {
			bytes, tag = body.Encoded[e.Suffix()], `"`+body.Entry.ETag+"-"+e.Suffix()+`"`
		}
		if bytes == nil {
			continue
		}
		p.full[e] = &Response{Status: http.StatusOK, ETag: []byte(tag), Fields: fields.full[e], Body: bytes}
		p.notModified[e] = &Response{Status: http.StatusNotModified, ETag: []byte(tag), Fields: fields.notModified}
	}
	return nil
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
