package resident

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"gridcast/edge/negotiate"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// Page is one variant in every servable form.
type Page struct {
	// Endpoint is the index into catalog.Endpoints.
	Endpoint int
	// Countdown completes the body for each request; then do not call Answer. It
	// is nil for every other page.
	Countdown *wire.Countdown

	// By coding; nil if the variant is not stored in it. The identity is always there.
	full        [negotiate.Encodings]*Response
	notModified [negotiate.Encodings]*Response

	// Of a lean page: where its identity is kept, and the response with it, nil until a client asks.
	kept  *identities
	plain atomic.Pointer[Response]

	// The source of the page, by which the next version knows whether it can keep the page.
	body    *snapshots.Body
	headers *headerSet
}

// NewPage makes the page of a document that is constant for the life of the process.
func NewPage(body *snapshots.Body, contentType, lifetime Field, more ...Field) *Page {
	p := &Page{}
	if err := p.fill(body, newHeaderSet(contentType, lifetime, more...)); err != nil {
		panic("BUG: a page of the program: " + err.Error())
	}
	return p
}

// fill makes the responses of a body and its codings.
func (p *Page) fill(body *snapshots.Body, fields *headerSet) error {
	if body.Entry.ETag == "" {
		return errors.New("no etag")
	}
	p.body, p.headers = body, fields
	for e := range negotiate.Encodings {
		content, tag := body.Identity, `"`+body.Entry.ETag+`"`
		if e != negotiate.Identity {
			content, tag = body.Encoded[e.Suffix()], `"`+body.Entry.ETag+"-"+e.Suffix()+`"`
			if content == nil {
				continue
			}
		}
		etag := []byte(tag)
		p.full[e] = New(http.StatusOK, etag, fields.full[e], content)
		p.notModified[e] = New(http.StatusNotModified, etag, fields.notModified, nil)
	}
	return nil
}

// Answer returns the response to a request with these headers: the client's best
// form, or 304 if the client holds the content in any form. The 304 carries the matching tag,
// the best form's tag if it is among them. It allocates only for the first request for the identity of a lean page.
func (p *Page) Answer(acceptEncoding, ifNoneMatch []byte) *Response {
	best := p.best(acceptEncoding)
	switch {
	case len(ifNoneMatch) == 0:
		return p.whole(best)
	case bytes.Equal(ifNoneMatch, p.full[best].ETag): // the usual case
		return p.notModified[best]
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
		return p.whole(best)
	case negotiate.Any:
		return p.notModified[best]
	default:
		return p.notModified[forms[i]]
	}
}

// slim gives up the forms of the page that hardly any client asks for: zstd, because browsers prefer brotli and every
// client of zstd accepts gzip, and the identity of a body with codings, which a client without any gets from kept.
func (p *Page) slim(kept *identities) {
	p.full[negotiate.Zstd], p.notModified[negotiate.Zstd] = nil, nil
	if p.full[negotiate.Gzip] != nil {
		p.full[negotiate.Identity].Body, p.kept = nil, kept
	}
}

// whole returns the response with a body in a coding that the page has.
func (p *Page) whole(e negotiate.Encoding) *Response {
	if full := p.full[e]; full.Body != nil {
		return full
	}
	return p.kept.response(p)
}

func (p *Page) best(acceptEncoding []byte) negotiate.Encoding {
	if len(acceptEncoding) == 0 {
		return negotiate.Identity
	}
	var stored [negotiate.Encodings]bool
	for e := range stored {
		stored[e] = p.full[e] != nil
	}
	return negotiate.Best(acceptEncoding, stored)
}

// Find returns the page of a request target in one of its common spellings, or nil; then
// [Set.Page] decides. It does not allocate.
func (s *Set) Find(target []byte) *Page { return s.targets[string(target)] }

// Page returns the page of a variant that the catalog selected. For a session key without a pick, and for a
// page of a log that is to come, it returns the page of the empty list. It returns nil if the version lacks an
// additive endpoint.
func (s *Set) Page(variant catalog.Variant) *Page {
	if page := s.variants[variant]; page != nil {
		return page
	}
	if variant.Page > 0 {
		return s.variants[catalog.Variant{Endpoint: variant.Endpoint, Page: catalog.NoPage}]
	}
	return s.variants[catalog.Variant{Endpoint: variant.Endpoint, SessionKey: catalog.NoSession}]
}

// Feed returns the page of a feed or of a portrait by its request path, nil if the version has none.
func (s *Set) Feed(path string) *Page {
	if s == nil {
		return nil
	}
	return s.feeds[path]
}

// File is the download of a season on the disk.
type File struct {
	Year   int
	Source string // names the documents that it was made from
	SHA256 string // lower-case hex
	Size   int64  // bytes
}

// Download is the file of a season: its responses without the bytes.
type Download struct {
	File        File
	Full        *Response // without a body
	NotModified *Response
}

// Download makes the responses of a file. It takes the caching lifetime from the fields of documents.
func (s *Set) Download(f File) *Download {
	sum, err := hex.DecodeString(f.SHA256)
	if err != nil {
		panic("BUG: a file was taken with the hash " + f.SHA256)
	}
	tag := []byte(`"` + snapshots.ETag(f.SHA256) + `"`)
	kept := s.headers(catalog.Variant{Endpoint: catalog.Bulk, Year: f.Year}).notModified
	fields := append([]Field{
		NewField("Content-Type", "application/zip"),
		NewField("Content-Disposition", fmt.Sprintf(`attachment; filename="gridcast-%d.zip"`, f.Year)),
		NewField("Accept-Ranges", "none"), // a season is small, so a new transfer costs less than ranges
		NewField("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum)+":"),
	}, kept.fields...)
	return &Download{File: f, Full: New(http.StatusOK, tag, newHeader(true, fields), nil), NotModified: New(http.StatusNotModified, tag, kept, nil)}
}

// Answer returns the response to a request with this header.
func (d *Download) Answer(ifNoneMatch []byte) *Response {
	if len(ifNoneMatch) > 0 && negotiate.NoneMatch(ifNoneMatch, [][]byte{d.Full.ETag}) != negotiate.None {
		return d.NotModified
	}
	return d.Full
}

// unkeyed are the fields of a document that is equal for all, in the real world and in a sandbox. Shared caches may keep
// it for a while.
type unkeyed struct{ real, simulated *headerSet }

func newUnkeyed(contentType string, more ...Field) unkeyed {
	named := NewField("Content-Type", contentType)
	return unkeyed{
		newHeaderSet(named, NewField("Cache-Control", "public, max-age=300"), more...),
		newHeaderSet(named, moments, append(more, Simulated)...),
	}
}

// feedHeaders are the fields of each feed.
var feedHeaders = func() map[catalog.Feed]unkeyed {
	all := map[catalog.Feed]unkeyed{}
	for _, f := range catalog.Feeds {
		all[f] = newUnkeyed(f.ContentType)
	}
	return all
}()

// portraitHeaders are the fields of a drawn portrait. A browser that opens it as a page loads and runs nothing.
var portraitHeaders = newUnkeyed("image/svg+xml", NewField("Content-Security-Policy", "default-src 'none'; sandbox"))

// maxIdentities is the largest size of the identities of past seasons in memory, in bytes. All of them take 30 MB.
// maxSimulated is that of a sandbox.
const maxIdentities, maxSimulated = 8 << 20, 1 << 20

// identities are the identities of past seasons that a client asked for in the served version. An edge forgets all at the
// next version, and when they grow beyond maxIdentities.
//
// Cache, by the page, which is made for one digest: making an identity takes four times the processor time of the rest of
// its request.
type identities struct {
	most  int // bytes; set before use
	mu    sync.Mutex
	pages []*Page
	size  int
}

// response returns the response with the identity of a lean page. The first request for the page makes it.
func (k *identities) response(p *Page) *Response {
	if kept := p.plain.Load(); kept != nil {
		return kept
	}
	full := p.full[negotiate.Identity]
	return k.keep(p, New(full.Status, full.ETag, full.Header, p.body.Plain()))
}

// keep keeps a response of a page, unless another request kept one meanwhile. It returns the kept response.
func (k *identities) keep(p *Page, made *Response) *Response {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kept := p.plain.Load(); kept != nil {
		return kept
	}
	if k.size += len(made.Body); k.size > k.most {
		k.forget()
		k.size = len(made.Body)
	}
	k.pages = append(k.pages, p)
	p.plain.Store(made)
	return made
}

// forget gives up all identities. The caller holds mu.
func (k *identities) forget() {
	for _, p := range k.pages {
		p.plain.Store(nil)
	}
	clear(k.pages)
	k.pages, k.size = k.pages[:0], 0
}
