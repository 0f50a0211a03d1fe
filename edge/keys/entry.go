package keys

import (
	"encoding/binary"
	"math"
	"slices"
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
	Counter   limit.Counter // nil for a key that no table has accepted
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
		e.Counter = source.Counter(e.id(), limit.Offset(binary.BigEndian.Uint64(e.hash[:])))
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

// Find returns the entry of a key, which may be refused, or nil. It does not allocate.
func (t *Table) Find(hash *Hash) *Key {
	if entry := t.keys[hash.idBits()]; entry != nil && entry.hash == *hash {
		return entry
	}
	return nil
}

// idBits returns the 48 bits of the hash that are the ID of the key.
func (h *Hash) idBits() uint64 { return binary.BigEndian.Uint64(h[:]) >> (64 - 4*idLen) }
