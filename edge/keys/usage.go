package keys

import (
	"cmp"
	"net/http"
	"slices"
	"sync/atomic"
)

// Usage counts the responses to one key at this edge since its start, across tables. It fills a line of the processor's
// cache, so that busy keys do not slow each other down. It is safe for concurrent use.
type Usage struct {
	requests, bytes, unauthorized, forbidden, limited atomic.Uint64

	_ [24]byte
}

// Count counts a response with a status, and the bytes of its body.
func (u *Usage) Count(status, size int) {
	u.requests.Add(1)
	u.bytes.Add(uint64(max(size, 0)))
	switch status {
	case http.StatusUnauthorized:
		u.unauthorized.Add(1)
	case http.StatusForbidden:
		u.forbidden.Add(1)
	case http.StatusTooManyRequests:
		u.limited.Add(1)
	}
}

// Sent counts bytes of a response that was counted before.
func (u *Usage) Sent(size int64) { u.bytes.Add(uint64(size)) }

// Counts returns the counters. It reads the requests last, so that no refusal is without its request.
func (u *Usage) Counts() Counts {
	c := Counts{Bytes: u.bytes.Load(), Unauthorized: u.unauthorized.Load(), Forbidden: u.forbidden.Load(), Limited: u.limited.Load()}
	c.Requests = u.requests.Load()
	return c
}

// Counts are numbers of requests with one key, by outcome.
type Counts struct {
	Requests     uint64 `json:"requests"`              // refused ones included
	Bytes        uint64 `json:"bytes,omitzero"`        // of bodies, as sent
	Unauthorized uint64 `json:"unauthorized,omitzero"` // 401: the key was expired, revoked or of an unknown tier
	Forbidden    uint64 `json:"forbidden,omitzero"`    // 403: from an origin that the key does not allow
	Limited      uint64 `json:"limited,omitzero"`      // 429: over the limit
}

// Refused is the number of refused requests.
func (c Counts) Refused() uint64 { return c.Unauthorized + c.Forbidden + c.Limited }

// Plus returns the sums.
func (c Counts) Plus(d Counts) Counts {
	return Counts{c.Requests + d.Requests, c.Bytes + d.Bytes, c.Unauthorized + d.Unauthorized, c.Forbidden + d.Forbidden, c.Limited + d.Limited}
}

// mostCounted is the largest number that every reader of JSON reads exactly.
const mostCounted = 1 << 53

// Since returns the growth from earlier counts. It is false if a counter fell, or has a value that no edge reaches.
func (c Counts) Since(d Counts) (Counts, bool) {
	grown := c.Requests >= d.Requests && c.Bytes >= d.Bytes && c.Unauthorized >= d.Unauthorized && c.Forbidden >= d.Forbidden && c.Limited >= d.Limited
	grown = grown && max(c.Requests, c.Bytes, c.Unauthorized, c.Forbidden, c.Limited) <= mostCounted
	return Counts{c.Requests - d.Requests, c.Bytes - d.Bytes, c.Unauthorized - d.Unauthorized, c.Forbidden - d.Forbidden, c.Limited - d.Limited}, grown
}

// KeyUsage is a key's usage in an edge's report.
type KeyUsage struct {
	ID string `json:"id"`
	Counts
}

// Usage lists the used keys of the table, by id, refused ones included.
func (t *Table) Usage() []KeyUsage {
	used := []KeyUsage{}
	for _, r := range t.records {
		if c := r.entry.Usage.Counts(); c.Requests > 0 {
			used = append(used, KeyUsage{r.entry.id(), c})
		}
	}
	slices.SortFunc(used, func(a, b KeyUsage) int { return cmp.Compare(a.ID, b.ID) })
	return used
}
