package snapshots

import (
	"iter"
)

// Version is a complete version in memory, every byte of it checked. It is immutable and may
// be shared by any number of goroutines; versions share the bodies that they have in common.
type Version struct {
	Pointer  Pointer
	Manifest Manifest

	raw    []byte // the manifest as it is stored
	bodies map[string]*Body
}

// Body is what a variant is served from.
type Body struct {
	Entry    Entry
	Identity []byte
	Encoded  map[string][]byte // by coding: GZ, BR, ZST; those the entry has
}

// Body returns the body of a catalog path.
func (v *Version) Body(path string) (*Body, bool) {
	b, ok := v.bodies[path]
	return b, ok
}

// All yields the bodies by ascending path.
func (v *Version) All() iter.Seq2[string, *Body] {
	return func(yield func(string, *Body) bool) {
		for _, e := range v.Manifest.Entries {
			if !yield(e.Path, v.bodies[e.Path]) {
				return
			}
		}
	}
}

// Bytes returns how many bytes of bodies and codings the version holds.
func (v *Version) Bytes() int64 {
	total := int64(0)
	for _, e := range v.Manifest.Entries {
		for _, object := range e.stored() {
			total += object.size
		}
	}
	return total
}

// stored yields the objects of the body: key and bytes.
func (b *Body) stored() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		if !yield(b.Entry.Object, b.Identity) {
			return
		}
		for coding, data := range b.Encoded {
			if !yield(EncodedKey(b.Entry.Object, coding), data) {
				return
			}
		}
	}
}
