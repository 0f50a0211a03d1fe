package keys

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"gridcast/edge/limit"
)

// Entry is what the request path needs to know about a key. It is 128 bytes, so that it fills
// two neighbouring cache lines: what tells whether the key is accepted is in the first, what
// counts is in the second, which processors fetch along with it.
//
// An entry is immutable but for what it counts. When its record changes another one takes its
// place, and goes on with its Counter and its Usage.
type Entry struct {
	hash    Hash
	end     int64 // refused from this instant on: Unix seconds, never or always
	Counter limit.Counter
	Usage   *Usage

	PerMinute int
	Tier      int       // index into Tiers.Names
	origins   *[]string // nil: any
	window    limit.Window
	usage     Usage
}

// Ends of an entry that are no instant.
const (
	never  = math.MaxInt64
	always = math.MinInt64 // the key is revoked, or of no known tier
)

// newEntry returns an entry that is accepted, and goes on counting where the old one is, which
// may be nil.
func newEntry(r *Record, hash Hash, tier, perMinute int, source limit.Source, old *Entry) *Entry {
	e := &Entry{hash: hash, end: never, PerMinute: perMinute, Tier: tier}
	if !r.Expires.IsZero() {
		e.end = r.Expires.Unix()
	}
	if len(r.Origins) > 0 {
		origins := slices.Clone(r.Origins)
		e.origins = &origins
	}
	if old != nil && old.Counter != nil {
		e.Counter, e.Usage = old.Counter, old.Usage
		return e
	}
	e.Usage = &e.usage
	// The hash is as good as random and the same on every edge.
	offset := limit.Offset(hash.prefix())
	if _, ok := source.(limit.Memory); ok {
		e.window = *limit.NewWindow(offset) // what the source would return, but at hand
		e.Counter = &e.window
	} else {
		e.Counter = source.Counter(e.id(), offset)
	}
	return e
}

// refusedEntry returns an entry that is never accepted. It keeps what the old one, which may be
// nil, has counted.
func refusedEntry(hash Hash, old *Entry) *Entry {
	e := &Entry{hash: hash, end: always}
	if old != nil {
		e.Counter, e.Usage = old.Counter, old.Usage
	}
	return e
}

// id returns the name of the key in commands and logs.
func (e *Entry) id() string { return e.hash.String()[:idLen] }

// Accepts reports whether the key is neither revoked nor expired at now, which is real time.
func (e *Entry) Accepts(now time.Time) bool { return now.Unix() < e.end }

// Allows reports whether a request with this Origin header may use the key. Without an Origin
// it may: the header is a browser's, and protects no secret.
func (e *Entry) Allows(origin []byte) bool {
	if e.origins == nil || len(origin) == 0 {
		return true
	}
	for _, allowed := range *e.origins {
		if string(origin) == allowed {
			return true
		}
	}
	return false
}

// index finds entries by hash: open addressing with linear probing. A look-up reads one cache
// line here, seldom two, and then the entry it is after.
//
// The place of an entry is in the first bytes of its hash. They are as good as random, and
// nobody can choose them: an entry is there because a key was issued, whose 190 bits were
// drawn by us. Who makes up keys can choose where he looks, and meets an empty slot after a
// few steps; he can not make the rows that he walks along any longer.
type index struct {
	slots []slot // a power of two, more than half of them empty
}

// slot is empty where entry is nil.
type slot struct {
	prefix uint64 // of the entry's hash, so that other entries are passed by unread
	entry  *Entry
}

// newIndex returns an index with room for n entries.
func newIndex(n int) index {
	return index{make([]slot, 1<<bits.Len(uint(2*n)))}
}

// find returns the entry with the hash, or nil.
func (x *index) find(hash *Hash) *Entry {
	prefix := hash.prefix()
	for i := place(prefix); ; i++ {
		s := &x.slots[i&uint64(len(x.slots)-1)]
		if s.entry == nil || s.prefix == prefix && s.entry.hash == *hash {
			return s.entry
		}
	}
}

// put adds an entry, unless there is one with its ID.
func (x *index) put(entry *Entry) bool {
	prefix := entry.hash.prefix()
	for i := place(prefix); ; i++ {
		s := &x.slots[i&uint64(len(x.slots)-1)]
		if s.entry == nil {
			*s = slot{prefix, entry}
			return true
		}
		if place(s.prefix) == place(prefix) {
			return false
		}
	}
}

// prefix returns the first 64 bits of the hash.
func (h *Hash) prefix() uint64 { return binary.BigEndian.Uint64(h[:]) }

// place returns the 48 bits of a prefix that are the ID of the key.
func place(prefix uint64) uint64 { return prefix >> (64 - 4*idLen) }

// Usage counts what one key asked of this edge since it was started, across tables. It is
// safe for concurrent use.
type Usage struct {
	requests atomic.Uint64
	refused  atomic.Uint64
}

// Count counts a request, which the limit allowed or refused.
func (u *Usage) Count(allowed bool) {
	u.requests.Add(1)
	if !allowed {
		u.refused.Add(1)
	}
}

// KeyUsage is the usage of a key as an edge reports it.
type KeyUsage struct {
	ID       string `json:"id"`
	Requests uint64 `json:"requests"` // refused ones included
	Refused  uint64 `json:"refused"`  // for the limit: 429
}

// Usage lists the keys of the table that were used, by id. Revoked keys are not
// there.
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
