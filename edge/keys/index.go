package keys

import (
	"encoding/binary"
	"math/bits"
)

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
