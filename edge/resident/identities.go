package resident

import (
	"sync"

	"gridcast/edge/negotiate"
)

// maxIdentities is the largest size of the identities of past seasons in memory, in bytes. All of them take 30 MB.
const maxIdentities = 8 << 20

// identities are the identities of past seasons that a client asked for in the served version. An edge keeps them,
// because making one costs four times as much processor time as the rest of its request. It forgets all at the next
// version, and when they grow beyond maxIdentities.
type identities struct {
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
	if k.size += len(made.Body); k.size > maxIdentities {
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
