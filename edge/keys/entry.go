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

// Key is what the request path needs to know about a key. It is 128 bytes, so that it fills
// two neighbouring cache lines: what tells whether the key is accepted is in the first, what
// counts is in the second, which processors fetch along with it.
//
// An entry is immutable but for what it counts. When its record changes another one takes its
// place, and goes on with its Counter and its Usage.
type Key struct {
	hash Hash
	// current is, in an entry of an index, the entry that holds for the hash: itself, or a later
	// one; nil: the slot is free, and nothing else of it may be read.
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

// Ends of an entry that are no instant.
const (
	never  = math.MaxInt64
	always = math.MinInt64 // the key is revoked, or of no known tier
)

// fill makes an entry that nobody reads yet that of a record, which is accepted. It goes on
// counting where the old one is, which may be nil.
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
	// The hash is as good as random and the same on every edge.
	offset := limit.Offset(hash.prefix())
	if _, ok := source.(limit.Memory); ok {
		e.window = *limit.NewWindow(offset) // what the source would return, but at hand
		e.Counter = &e.window
	} else {
		e.Counter = source.Counter(e.id(), offset)
	}
}

// refuse makes an entry that nobody reads yet one that is never accepted. It keeps what the old
// one, which may be nil, has counted.
func (e *Key) refuse(hash Hash, old *Key) {
	e.hash, e.end = hash, always
	if old != nil {
		e.Counter, e.Usage = old.Counter, old.Usage
	}
}

// move makes an entry that nobody reads yet the same as the old one.
func (e *Key) move(old *Key) {
	e.hash, e.end, e.Counter, e.Usage = old.hash, old.end, old.Counter, old.Usage
	e.PerMinute, e.Tier, e.origins = old.PerMinute, old.Tier, old.origins
}

// same reports whether both entries mean the same to a request.
func (e *Key) same(other *Key) bool {
	return e.hash == other.hash && e.end == other.end && e.Counter == other.Counter &&
		e.PerMinute == other.PerMinute && e.Tier == other.Tier &&
		(e.origins == nil) == (other.origins == nil) && (e.origins == nil || slices.Equal(*e.origins, *other.origins))
}

// id returns the name of the key in commands and logs.
func (e *Key) id() string { return e.hash.String()[:idLen] }

// Accepts reports whether the key is neither revoked nor expired at now, which is real time.
func (e *Key) Accepts(now time.Time) bool { return now.Unix() < e.end }

// Allows reports whether a request with this Origin header may use the key. Without an Origin
// it may: the header is a browser's, and protects no secret.
func (e *Key) Allows(origin []byte) bool {
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

// Lookup returns the entry of a key that is accepted at now, which is real time, or nil. It
// does not allocate.
func (t *Table) Lookup(hash Hash, now time.Time) *Key {
	entry := t.index.find(&hash)
	if entry == nil || !entry.Accepts(now) {
		return nil
	}
	return entry
}

// index finds entries by hash: open addressing with linear probing, the entries themselves in
// the slots, so that a look-up waits for the memory once. It is shared by tables, one after the
// other, and changed by the one that is being made: a free slot is filled and then becomes
// current, and a slot in use gets another current entry. Readers need no lock for either.
//
// The place of an entry is in the first bytes of its hash. They are as good as random, and
// nobody can choose them: an entry is there because a key was issued, whose 190 bits were
// drawn by us. Who makes up keys can choose where they look, and meets a free slot after a
// few steps; they cannot make the rows that they walk along any longer.
type index struct {
	slots []Key // a power of two, more than half of them free
	used  int     // by keys that were in a document once
}

// newIndex returns an index with room for at least n entries.
func newIndex(n int) *index {
	x := &index{slots: make([]Key, 1<<bits.Len(uint(2*n)))}
	adviseHugePages(x.slots)
	return x
}

// full reports whether n more entries would be too many.
func (x *index) full(n int) bool { return 2*(x.used+n) >= len(x.slots) }

// find returns the entry with the hash, or nil. The entry of a key that was in an earlier
// document alone is gone.
func (x *index) find(hash *Hash) *Key {
	for i := idBits(hash.prefix()); ; i++ {
		slot := &x.slots[i&uint64(len(x.slots)-1)]
		slot.usage.requests.Load() // what counts comes from the memory at the same time
		entry := slot.current.Load()
		if entry == nil || slot.hash == *hash {
			return entry
		}
	}
}

// slot returns the slot for the hash, which is free or has the hash.
func (x *index) slot(hash *Hash) *Key {
	for i := idBits(hash.prefix()); ; i++ {
		slot := &x.slots[i&uint64(len(x.slots)-1)]
		if slot.current.Load() == nil || slot.hash == *hash {
			return slot
		}
	}
}

// hasID reports whether there is an entry, which is not gone, for the ID of the hash.
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

// put makes an entry the current one of its hash, as it is filled by fill, and returns it.
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

// gone is the current entry of keys that are in no document any more.
var gone = &Key{end: always}

// prefix returns the first 64 bits of the hash.
func (h *Hash) prefix() uint64 { return binary.BigEndian.Uint64(h[:]) }

// idBits returns the 48 bits of a prefix that are the ID of the key.
func idBits(prefix uint64) uint64 { return prefix >> (64 - 4*idLen) }

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
