package keys

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"gridcast/edge/limit"
)

// Key is the request path's view of a key. It is immutable, but for its counters. When its record changes, the next
// table has another Key with the same Counter and Usage.
type Key struct {
	hash    Hash
	end     int64    // refused from this instant on: Unix seconds, never or always
	origins []string // empty: any

	PerMinute int
	Tier      int           // index into Tiers.Names
	Counter   limit.Counter // nil for a key that no table has accepted, and so is Usage
	Usage     *Usage
}

// Values of end that are no instant.
const (
	never  = math.MaxInt64
	always = math.MinInt64 // the key is revoked, or its tier is unknown
)

// accept fills in the record of a key that is not revoked. It keeps the counters of an earlier table.
func (e *Key) accept(r *StoredKey, tier, perMinute int, source limit.Source) {
	e.end, e.origins, e.PerMinute, e.Tier = never, r.Origins, perMinute, tier
	if !r.Expires.IsZero() {
		e.end = r.Expires.Unix()
	}
	if e.Counter == nil {
		// The hash is uniformly distributed, and the same on every edge.
		e.Counter, e.Usage = source.Counter(e.id(), limit.Offset(binary.BigEndian.Uint64(e.hash[:]))), new(Usage)
	}
}

// id returns the name of the key in commands and logs.
func (e *Key) id() string { return e.hash.String()[:idLen] }

// Accepts reports whether the key is neither revoked nor expired at now, which is real time.
func (e *Key) Accepts(now time.Time) bool { return now.Unix() < e.end }

// Allows reports whether a request with this Origin header may use the key. A request without Origin
// may: only browsers send the header, and it protects no secret.
func (e *Key) Allows(origin []byte) bool {
	return len(e.origins) == 0 || len(origin) == 0 ||
		slices.ContainsFunc(e.origins, func(allowed string) bool { return string(origin) == allowed })
}

// Lookup returns the entry of a key that is accepted at now, which is real time, or nil. It
// does not allocate.
func (t *Table) Lookup(hash Hash, now time.Time) *Key {
	if entry := t.find(&hash); entry != nil && entry.Accepts(now) {
		return entry
	}
	return nil
}

// find returns the entry with the hash, or nil.
func (t *Table) find(hash *Hash) *Key {
	if entry := t.keys[hash.idBits()]; entry != nil && entry.hash == *hash {
		return entry
	}
	return nil
}

// idBits returns the 48 bits of the hash that are the ID of the key.
func (h *Hash) idBits() uint64 { return binary.BigEndian.Uint64(h[:]) >> (64 - 4*idLen) }

// Usage counts the requests of one key at this edge since its start, across tables. It is
// safe for concurrent use.
type Usage struct {
	requests atomic.Uint64
	refused  atomic.Uint64
}

// Count counts a request, allowed or refused by the limit.
func (u *Usage) Count(allowed bool) {
	u.requests.Add(1)
	if !allowed {
		u.refused.Add(1)
	}
}

// KeyUsage is a key's usage in an edge's report.
type KeyUsage struct {
	ID       string `json:"id"`
	Requests uint64 `json:"requests"` // refused ones included
	Refused  uint64 `json:"refused"`  // by the limit, with 429
}

// Usage lists the used keys of the table, by id. It leaves out revoked keys.
func (t *Table) Usage() []KeyUsage {
	used := []KeyUsage{}
	for _, r := range t.records {
		e := r.entry
		if e.end == always {
			continue
		}
		if n := e.Usage.requests.Load(); n > 0 {
			used = append(used, KeyUsage{ID: e.id(), Requests: n, Refused: e.Usage.refused.Load()})
		}
	}
	slices.SortFunc(used, func(a, b KeyUsage) int { return cmp.Compare(a.ID, b.ID) })
	return used
}
