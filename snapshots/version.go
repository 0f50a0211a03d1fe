package snapshots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"runtime"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/molecule-man/go-brrr"
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
	deltas := l.readDeltas(ctx, stores[0], &manifest, missing) // a cache has no deltas
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
	if Digest(data) != object.SHA256 {
		err = inAny(stores, func(s blob.Store) (err error) {
			data, err = object.Read(ctx, s)
			return err
		})
	}
	if err != nil {
		return err
	}
	c := <-unpackers
	defer func() { unpackers <- c }()
	l.tick()
	switch err := context.Cause(ctx); {
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

// A larger body is stored once, as gzip, which zcat reads. Each reader of a version makes the identity and
// the other codings from it. That takes no longer than reading and hashing three more objects, and a
// publish writes a sixth of the bytes and less than half of the objects.
//
// The other codings have no hash in the manifest, because another release of a compressor may make other
// bytes from the same body. An entity tag therefore names the body and the coding, not the exact bytes.
// That would matter for ranges only, and no client is sent a range. TestCodingsStay fails when they change.

// MinPacked is the size from which a body has codings, in bytes. A smaller body and its head of 0.6 KB fit
// into one packet without coding. Most bodies are those of one session, and most of these are smaller.
const MinPacked = 860

// Higher levels hardly make the bodies smaller. The strongest below 11 would take twice the time for 0.2 to
// 3 % of br, four times for 1 to 4 % of zst and twice for 1 to 4 % of gz. At 11, br is 8 to 12 % smaller
// and takes 75 times as long.
const (
	brotliLevel = 6
	gzipLevel   = 8
	zstdLevel   = zstd.SpeedBetterCompression

	// zstdWindow limits how far back a match reaches. No body is as large, and the default takes 16 MB more for
	// each encoder.
	zstdWindow = 1 << 20
)

// Pack returns a body as gzip, as New wants it: nil if it is smaller than MinPacked. The same body gives
// the same bytes. It is safe for concurrent use.
func Pack(body []byte) ([]byte, error) {
	if len(body) < MinPacked {
		return nil, nil
	}
	c := borrowCodec()
	defer codecs.Put(c)
	return c.encode(GZ, body)
}

// unpack returns the identity of a packed entry, checked against its hash.
func (e ManifestEntry) unpack(packed []byte) ([]byte, error) {
	c := borrowCodec()
	defer codecs.Put(c)
	return c.unpack(e, packed, nil)
}

// checkPacked makes the checks of unpack on a packed entry, and keeps no identity. It accepts every other entry.
func (e ManifestEntry) checkPacked(packed []byte) (err error) {
	if !e.packed() {
		return nil
	}
	c := borrowCodec()
	defer codecs.Put(c)
	c.plain, err = c.unpack(e, packed, c.plain)
	return err
}

// unpack returns the identity of a packed entry, checked against its hash, in the memory of body if that is enough.
func (c *codec) unpack(e ManifestEntry, packed, body []byte) ([]byte, error) {
	if int64(cap(body)) < e.Size {
		body = make([]byte, e.Size)
	}
	body = body[:e.Size]
	err := c.gunzip.Reset(bytes.NewReader(packed))
	if err == nil {
		_, err = io.ReadFull(&c.gunzip, body)
	}
	if err == nil {
		if _, end := io.ReadFull(&c.gunzip, make([]byte, 1)); !errors.Is(end, io.EOF) {
			err = errors.Join(errors.New("data after the end"), end)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("object %s: %w: it is not gzip of %d bytes: %w", e.Object, ErrDamaged, e.Size, err)
	}
	if got := Digest(body); got != e.SHA256 {
		return nil, fmt.Errorf("object %s: %w: the hash of its content is %s, manifest says %s", e.Object, ErrDamaged, got, e.SHA256)
	}
	return body, nil
}

// unpack makes the identity and the other codings from the packed body. A lean body gets brotli alone.
func (b *Body) unpack(c *codec, lean bool) (err error) {
	if !lean {
		if b.Identity, err = c.unpack(b.Entry, b.Encoded[GZ], nil); err == nil {
			err = b.encode(c)
		}
		return err
	}
	if c.plain, err = c.unpack(b.Entry, b.Encoded[GZ], c.plain); err == nil {
		b.Encoded[BR], err = c.encode(BR, c.plain)
	}
	return err
}

// Plain returns the identity. A lean body keeps none, so each call unpacks it again. It is safe for concurrent use.
func (b *Body) Plain() []byte {
	if b.Identity != nil || b.Encoded[GZ] == nil {
		return b.Identity
	}
	identity, err := b.Entry.unpack(b.Encoded[GZ])
	if err != nil {
		panic("BUG: a body that was unpacked once cannot be unpacked: " + err.Error())
	}
	return identity
}

// encode makes the missing codings of the body.
func (b *Body) encode(c *codec) (err error) {
	for coding := range newWriter {
		if b.Encoded[coding] == nil {
			if b.Encoded[coding], err = c.encode(coding, b.Identity); err != nil {
				return err
			}
		}
	}
	return nil
}

// NewBody returns a body that is part of no version, in every coding, such as a page of the program.
func NewBody(identity []byte) (*Body, error) {
	digest := Digest(identity)
	b := &Body{
		Entry:    ManifestEntry{SHA256: digest, Size: int64(len(identity)), ETag: ETag(digest)},
		Identity: identity, Encoded: map[string][]byte{},
	}
	c := borrowCodec()
	defer codecs.Put(c)
	return b, b.encode(c)
}

// codec holds the encoders and the decoder of one goroutine. Making their tables takes longer than encoding
// a body, so idle ones stay in a pool and each is made on its first use.
type codec struct {
	gunzip  gzip.Reader
	writers map[string]writer // by coding
	out     bytes.Buffer
	plain   []byte // the identity of the last lean body
}

var codecs = sync.Pool{New: func() any { return &codec{writers: map[string]writer{}} }}

func borrowCodec() *codec { return codecs.Get().(*codec) }

// writer is an encoder that can be reset.
type writer interface {
	io.WriteCloser
	Reset(to io.Writer)
}

// newWriter returns a new writer for each coding.
var newWriter = map[string]func() (writer, error){
	GZ: func() (writer, error) { return gzip.NewWriterLevel(nil, gzipLevel) },
	BR: func() (writer, error) { return brrr.NewWriter(nil, brotliLevel) },
	ZST: func() (writer, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstdLevel), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow))
	},
}

func (c *codec) encode(coding string, body []byte) ([]byte, error) {
	w := c.writers[coding]
	if w == nil {
		var err error
		if w, err = newWriter[coding](); err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		c.writers[coding] = w
	}
	c.out.Reset()
	w.Reset(&c.out)
	_, err := w.Write(body)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.Clone(c.out.Bytes()), nil
}
