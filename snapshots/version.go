package snapshots

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"runtime"

	"golang.org/x/sync/errgroup"

	"gridcast/snapshots/blob"
)

// Version is a complete version in memory, every byte of it checked. It is immutable and may
// be shared by any number of goroutines; versions share the bodies that they have in common.
type Version struct {
	Pointer  Pointer
	Manifest Manifest

	stored stored // the manifest
	bodies map[string]*Body
}

// Body is a variant in memory.
type Body struct {
	Entry    ManifestEntry
	Identity []byte            // nil of a lean body
	Encoded  map[string][]byte // by coding: GZ and BR of a packed entry, and ZST unless it is lean; else none
}

// Body returns the body of a catalog path.
func (v *Version) Body(path string) (*Body, bool) {
	b, ok := v.bodies[path]
	return b, ok
}

// Note returns the signed note about the version; nil if there is none.
func (v *Version) Note() []byte { return v.stored.files[NoteKey(v.Pointer.Version)] }

// ManifestFile returns a file of the manifest by its store key; nil if there is none.
func (v *Version) ManifestFile(key string) []byte { return v.stored.files[key] }

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
	total := 0
	for _, b := range v.bodies {
		total += len(b.Identity)
		for _, data := range b.Encoded {
			total += len(data)
		}
	}
	return int64(total)
}

// Open reads the current version completely and checks every hash. It takes equal bodies from previous, which
// may be nil, instead of reading them.
func Open(ctx context.Context, store blob.Store, previous *Version) (*Version, error) {
	pointer, _, err := LoadPointer(ctx, store)
	if err != nil {
		return nil, err
	}
	return loader{previous: previous}.load(ctx, pointer, store)
}

// loader holds the ways to load a version; every field may be zero.
type loader struct {
	previous *Version                            // its bodies and parts are not read again
	manifest []byte                              // the manifest's own file, if it was read in advance; still to be checked
	arrived  func()                              // called after each read, concurrently
	lean     func(m *Manifest, path string) bool // see FollowConfig; nil: none
	asStored bool                                // check that every object is there, and unpack none
	note     []byte                              // the note about the version, if it was read in advance
}

// load reads the version that pointer names. If an object is missing or damaged in the first store, load
// tries the next one.
func (l loader) load(ctx context.Context, pointer Pointer, stores ...blob.Store) (*Version, error) {
	previous := l.previous
	if previous != nil && previous.Pointer.Version == pointer.Version && previous.Pointer.Manifest == pointer.Manifest {
		return &Version{Pointer: pointer, Manifest: previous.Manifest, stored: previous.stored, bodies: previous.bodies}, nil
	}
	var known stored
	var held map[string]*Body // by path
	if previous != nil {
		known, held = previous.stored, previous.bodies
	}
	if l.manifest != nil {
		files := map[string][]byte{}
		maps.Copy(files, known.files)
		files[ManifestKey(pointer.Version)] = l.manifest
		known.files = files
	}
	manifest, files, err := loadManifest(ctx, pointer.Version, pointer.Manifest, known, stores...)
	l.tick()
	if err != nil {
		return nil, err
	}
	bodies := make([]*Body, len(manifest.Entries))
	var missing []*Body
	for i, e := range manifest.Entries {
		if b, ok := held[e.Path]; ok && b.Entry.equal(e) {
			bodies[i] = b
			continue
		}
		bodies[i] = &Body{Entry: e, Encoded: map[string][]byte{}}
		missing = append(missing, bodies[i])
	}
	deltas := l.readDeltas(ctx, stores, &manifest, missing)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(defaultWorkers)
	note := l.note
	if pointer.Signed && note == nil {
		group.Go(func() error {
			return blob.Guard(func() error { // without an error: a follower that trusts a key misses the note, and no other needs it
				note, _ = readNote(groupCtx, stores[0], NoteKey(pointer.Version))
				return nil
			})
		})
	}
	unpackers := make(chan *codec, runtime.GOMAXPROCS(0)) // few, because each takes memory
	for range cap(unpackers) {
		c := borrowCodec()
		defer codecs.Put(c)
		unpackers <- c
	}
	for _, body := range missing {
		// A panic in this goroutine would end the program: the recovery of a follower is in another one.
		group.Go(func() error {
			return blob.Guard(func() error { return l.read(groupCtx, stores, &manifest, body, deltas, unpackers) })
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("load version %d: %w", pointer.Version, err)
	}
	if note != nil {
		files.files[NoteKey(pointer.Version)] = note
	}
	v := &Version{Pointer: pointer, Manifest: manifest, stored: files, bodies: make(map[string]*Body, len(bodies))}
	for i := range bodies {
		// Share the entry, so that the manifests of a long-running edge also share their strings.
		v.Manifest.Entries[i] = bodies[i].Entry
		v.bodies[bodies[i].Entry.Path] = bodies[i]
	}
	return v, nil
}

// read takes the object of a body from the deltas, or reads it, and unpacks it if it is packed.
func (l loader) read(ctx context.Context, stores []blob.Store, m *Manifest, body *Body, deltas map[string][]byte, unpackers chan *codec) (err error) {
	object := body.Entry.object()
	data := bytes.Clone(deltas[object.Key]) // so that one body does not keep its whole delta in memory
	if int64(len(data)) != object.Size || Digest(data) != object.SHA256 {
		err = inAny(stores, func(s blob.Store) (err error) {
			data, err = object.Read(ctx, s)
			l.tick()
			return err
		})
	}
	switch {
	case err != nil:
		return err
	case !body.Entry.packed():
		body.Identity = data
		return nil
	}
	body.Encoded[GZ] = data
	if l.asStored {
		return nil
	}
	c := <-unpackers
	defer func() { unpackers <- c }()
	l.tick()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return body.unpack(c, l.lean != nil && l.lean(m, body.Entry.Path))
}

func (l loader) tick() {
	if l.arrived != nil {
		l.arrived()
	}
}

// inAny calls do with one store after the other until one call succeeds. Otherwise it returns the first
// error.
func inAny(stores []blob.Store, do func(blob.Store) error) error {
	var first error
	for _, s := range stores {
		err := do(s)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}
