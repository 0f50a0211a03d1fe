package keys

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"gridcast/edge/limit"
)

// Table finds keys by their hash. It is immutable and safe for concurrent use; the counters
// of its entries are shared with the tables before and after it.
type Table struct {
	entries map[Hash]*Entry
	skipped []string
}

// Entry is what the request path needs to know about a key.
type Entry struct {
	ID        string
	Tier      int // index into Tiers.Names
	PerMinute int
	Counter   limit.Counter
	Usage     *Usage

	origins []string
	expires int64 // Unix nanoseconds, 0: never
}

// NewTable makes the table of a document. Keys keep the counters they had in the previous
// table, which may be nil, so that a reload gives nobody a fresh window. Revoked keys are left
// out. A key of a tier that is not configured is left out too, and named by Skipped: one
// wrong record must not keep the revocation of another from taking effect.
func NewTable(d *Document, tiers Tiers, source limit.Source, previous *Table) (*Table, error) {
	names := tiers.Names()
	t := &Table{entries: make(map[Hash]*Entry, len(d.Keys))}
	for i := range d.Keys {
		r := &d.Keys[i]
		if !r.Revoked.IsZero() {
			continue
		}
		tier, ok := slices.BinarySearch(names, r.Tier)
		if !ok {
			t.skipped = append(t.skipped, fmt.Sprintf("%s: tier %q is not configured", r.ID, r.Tier))
			continue
		}
		var hash Hash
		if _, err := hex.Decode(hash[:], []byte(r.SHA256)); err != nil {
			return nil, fmt.Errorf("key %s: %w", r.ID, err)
		}
		entry := &Entry{ID: r.ID, Tier: tier, PerMinute: tiers[r.Tier], origins: r.Origins}
		if !r.Expires.IsZero() {
			entry.expires = r.Expires.UnixNano()
		}
		if old := previous.entry(hash); old != nil {
			entry.Counter, entry.Usage = old.Counter, old.Usage
		} else {
			entry.Usage = &Usage{}
			// The hash is as good as random and the same on every edge.
			entry.Counter = source.Counter(r.ID, limit.Offset(binary.BigEndian.Uint64(hash[:])))
		}
		t.entries[hash] = entry
	}
	return t, nil
}

// Lookup returns the entry of a key that is accepted at now, which is real time, or nil. It
// does not allocate.
func (t *Table) Lookup(hash Hash, now time.Time) *Entry {
	entry := t.entries[hash]
	if entry == nil || entry.expires != 0 && now.UnixNano() >= entry.expires {
		return nil
	}
	return entry
}

// Len returns how many keys the table holds, expired ones included.
func (t *Table) Len() int { return len(t.entries) }

// Skipped says which keys were left out although they are not revoked, and why.
func (t *Table) Skipped() []string { return t.skipped }

func (t *Table) entry(hash Hash) *Entry {
	if t == nil {
		return nil
	}
	return t.entries[hash]
}

// Allows reports whether a request with this Origin header may use the key. Without an Origin
// it may: the header is a browser's, and protects no secret.
func (e *Entry) Allows(origin []byte) bool {
	if len(e.origins) == 0 || len(origin) == 0 {
		return true
	}
	for _, allowed := range e.origins {
		if string(origin) == allowed {
			return true
		}
	}
	return false
}
