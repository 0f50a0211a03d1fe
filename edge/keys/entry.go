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

// Key is the request path's view of a key. It is 128 bytes, so that it fills
// two neighbouring cache lines. The first holds everything that decides whether the key is accepted, the second
// the counters; processors fetch both together.
//
// An entry is immutable except for its counters. When its record changes, another entry takes its
// place and keeps its Counter and its Usage.
type Key struct {
	hash Hash
	// current is, in a slot of an index, the valid entry of the hash: the slot itself, or a later
	// entry. nil: the slot is free, and its other fields must not be read.
	current atomic.Pointer[Key]
	end     int64 // refused from this instant on: Unix seconds, never or always
	Counter limit.Counter

	Usage     *Usage
	PerMinute int
	Tier      int       // index into Tiers.Names
	origins   *[]string // nil: any
	window    limit.Window
	usage     Usage
}

// Values of end that are no instant.
const (
	never  = math.MaxInt64
	always = math.MinInt64 // the key is revoked, or its tier is unknown
)

// fill makes e the accepted entry of a record. Call it before e is published. It keeps the
// counters of the old entry, which may be nil.
func (e *Key) fill(r *StoredKey, hash Hash, tier, perMinute int, source limit.Source, old *Key) {
	e.hash, e.end, e.PerMinute, e.Tier = hash, never, perMinute, tier
	if !r.Expires.IsZero() {
		e.end = r.Expires.Unix()
	}
	if len(r.Origins) > 0 {
		origins := slices.Clone(r.Origins)
		e.origins = &origins
	}
	if old != nil && old.Counter != nil {
		e.Counter, e.Usage = old.Counter, old.Usage
		return
	}
	e.Usage = &e.usage
	// The hash is uniformly distributed, and the same on every edge.
	offset := limit.Offset(hash.prefix())
	if _, ok := source.(limit.Memory); ok {
		e.window = *limit.NewWindow(offset) // equals the source's counter, without a pointer
		e.Counter = &e.window
	} else {
		e.Counter = source.Counter(e.id(), offset)
	}
}

// refuse marks e as rejected. Call it before e is published. It keeps the counters of the old
// entry, which may be nil.
func (e *Key) refuse(hash Hash, old *Key) {
	e.hash, e.end = hash, always
	if old != nil {
		e.Counter, e.Usage = old.Counter, old.Usage
	}
}

// move copies the old entry into e. Call it before e is published.
func (e *Key) move(old *Key) {
	e.hash, e.end, e.Counter, e.Usage = old.hash, old.end, old.Counter, old.Usage
	e.PerMinute, e.Tier, e.origins = old.PerMinute, old.Tier, old.origins
}

// same reports whether both entries have the same effect on a request.
func (e *Key) same(other *Key) bool {
	return e.hash == other.hash && e.end == other.end && e.Counter == other.Counter &&
		e.PerMinute == other.PerMinute && e.Tier == other.Tier &&
		(e.origins == nil) == (other.origins == nil) && (e.origins == nil || slices.Equal(*e.origins, *other.origins))
}

// id returns the name of the key in commands and logs.
func (e *Key) id() string { return e.hash.String()[:idLen] }

// Accepts reports whether the key is neither revoked nor expired at now, which is real time.
func (e *Key) Accepts(now time.Time) bool { return now.Unix() < e.end }

// Allows reports whether a request with this Origin header may use the key. A request without Origin
// may: only browsers send the header, and it protects no secret.
func (e *Key) Allows(origin []byte) bool {
	return e.origins == nil || len(origin) == 0 ||
		slices.ContainsFunc(*e.origins, func(allowed string) bool { return string(origin) == allowed })
}

// Lookup returns the entry of a key that is accepted at now, which is real time, or nil. It
// does not allocate.
func (t *Table) Lookup(hash Hash, now time.Time) *Key {
	if entry := t.index.find(&hash); entry != nil && entry.Accepts(now) {
		return entry
	}
	return nil
}

// index finds entries by hash: open addressing with linear probing. The slots hold the entries themselves,
// so that a look-up waits for the memory once. Successive tables share an
// index, and only the table under construction changes it: it fills a free slot and then makes it
// current, or gives a used slot another current entry. Readers need no lock for either.
//
// The first bytes of the hash give the place of an entry. They are as good as random, and
// no client can choose them: an entry exists only for an issued key, whose 190 bits the service
// drew. An attacker who invents keys chooses where a look-up starts, and meets a free slot after a
// few steps, but cannot make any row of used slots longer.
type index struct {
	slots []Key // a power of two, more than half of them free
	used  int   // by keys that some list has held
}

// newIndex returns an index with room for at least n entries.
func newIndex(n int) *index {
	return &index{slots: make([]Key, 1<<bits.Len(uint(2*n)))}
}

// full reports whether n more entries are too many.
func (x *index) full(n int) bool { return 2*(x.used+n) >= len(x.slots) }

// find returns the entry with the hash, or nil. It does not return the entry of a key that only an earlier
// list held.
func (x *index) find(hash *Hash) *Key {
	for i := idBits(hash.prefix()); ; i++ {
		slot := &x.slots[i&uint64(len(x.slots)-1)]
		slot.usage.requests.Load() // starts to load the counters' cache line at the same time
		entry := slot.current.Load()
		if entry == nil || slot.hash == *hash {
			return entry
		}
	}
}

// slot returns the slot with the hash, or the free slot for it.
func (x *index) slot(hash *Hash) *Key {
	for i := idBits(hash.prefix()); ; i++ {
		slot := &x.slots[i&uint64(len(x.slots)-1)]
		if slot.current.Load() == nil || slot.hash == *hash {
			return slot
		}
	}
}

// hasID reports whether the index has a current entry with the ID of the hash.
func (x *index) hasID(hash *Hash) bool {
	for i := idBits(hash.prefix()); ; i++ {
		slot := &x.slots[i&uint64(len(x.slots)-1)]
		entry := slot.current.Load()
		if entry == nil {
			return false
		}
		if entry != gone && idBits(slot.hash.prefix()) == idBits(hash.prefix()) {
			return true
		}
	}
}

// put fills the entry of a hash with fill, makes it current, and returns it.
func (x *index) put(hash *Hash, fill func(e *Key)) *Key {
	slot := x.slot(hash)
	entry := slot
	switch old := slot.current.Load(); old {
	case nil:
		x.used++
		fill(entry)
	default:
		entry = new(Key)
		if fill(entry); entry.same(old) {
			return old
		}
	}
	slot.current.Store(entry)
	return entry
}

// gone is the current entry of keys that are in no list any more.
var gone = &Key{end: always}

// prefix returns the first 64 bits of the hash.
func (h *Hash) prefix() uint64 { return binary.BigEndian.Uint64(h[:]) }

// idBits returns the 48 bits of a prefix that are the ID of the key.
func idBits(prefix uint64) uint64 { return prefix >> (64 - 4*idLen) }

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
