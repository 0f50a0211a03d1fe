package snapshots

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gridcast/snapshots/blob"
)

var (
	// ErrNone says that nothing has been published in the store.
	ErrNone = errors.New("nothing published yet")
	// ErrDamaged says that the store holds something else than what was published.
	ErrDamaged = errors.New("damaged")
)

// Base is the current version as a builder found it: what a build starts from and what a
// publish must find unchanged. It is immutable.
type Base struct {
	Pointer  Pointer  // zero if nothing was published
	Manifest Manifest // zero if nothing was published

	tag     blob.Tag
	store   blob.Store
	entries map[string]Entry
}

// LoadBase reads the pointer and the manifest it names. An empty store is no error but a
// base of version 0. A pointer or manifest that is not what was published is ErrDamaged.
func LoadBase(ctx context.Context, store blob.Store) (*Base, error) {
	pointer, tag, err := LoadPointer(ctx, store)
	if errors.Is(err, ErrNone) {
		return &Base{store: store}, nil
	}
	if err != nil {
		return nil, err
	}
	manifest, _, err := loadManifest(ctx, store, pointer.Version, pointer.Manifest)
	if err != nil {
		return nil, err
	}
	b := &Base{Pointer: pointer, Manifest: manifest, tag: tag, store: store}
	b.entries = byPath(manifest.Entries)
	return b, nil
}

// Empty says whether nothing was published before.
func (b *Base) Empty() bool { return b.Pointer.Version == 0 }

// Entry returns the base's entry for a catalog path.
func (b *Base) Entry(path string) (Entry, bool) {
	e, ok := b.entries[path]
	return e, ok
}

// Body reads the identity bytes of an entry of the base and checks them against its hash.
func (b *Base) Body(ctx context.Context, e Entry) ([]byte, error) {
	return readChecked(ctx, b.store, e.identity())
}

// LoadPointer reads the pointer, or returns ErrNone; one that can not be read as a pointer is
// ErrDamaged, with the tag to swap it by.
func LoadPointer(ctx context.Context, store blob.Store) (Pointer, blob.Tag, error) {
	o, err := store.Get(ctx, PointerKey, blob.MaxDocument)
	if errors.Is(err, blob.ErrNotFound) {
		return Pointer{}, "", fmt.Errorf("pointer in %s: %w", store, ErrNone)
	}
	if errors.Is(err, blob.ErrTooLarge) {
		return Pointer{}, "", fmt.Errorf("pointer: %w: %w", ErrDamaged, err)
	}
	if err != nil {
		return Pointer{}, "", fmt.Errorf("read pointer: %w", err)
	}
	pointer, err := parsePointer(o.Data)
	return pointer, o.Tag, err
}

func parsePointer(data []byte) (Pointer, error) {
	var p Pointer
	if err := json.Unmarshal(data, &p); err != nil {
		return Pointer{}, fmt.Errorf("pointer %s: %w: %w", PointerKey, ErrDamaged, err)
	}
	if p.Version < 1 || len(p.Manifest) != 2*hashSize {
		return Pointer{}, fmt.Errorf("pointer %s: %w: version %d, manifest %q", PointerKey, ErrDamaged, p.Version, p.Manifest)
	}
	return p, nil
}

// loadManifest reads the manifest of version, parsed and as it is stored; its bytes must have
// the given hash unless that is empty.
func loadManifest(ctx context.Context, store blob.Store, version int64, hash string) (Manifest, []byte, error) {
	key := ManifestKey(version)
	o, err := store.Get(ctx, key, maxManifest)
	if errors.Is(err, blob.ErrTooLarge) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return Manifest{}, nil, fmt.Errorf("read manifest of version %d: %w", version, err)
	}
	if got := Digest(o.Data); hash != "" && got != hash {
		return Manifest{}, nil, fmt.Errorf("manifest %s: %w: hash is %s, pointer says %s", key, ErrDamaged, got, hash)
	}
	var m Manifest
	if err := json.Unmarshal(o.Data, &m); err != nil {
		return Manifest{}, nil, fmt.Errorf("manifest %s: %w: %w", key, ErrDamaged, err)
	}
	if err := m.check(version); err != nil {
		return Manifest{}, nil, fmt.Errorf("manifest %s: %w: %w", key, ErrDamaged, err)
	}
	return m, o.Data, nil
}

// readChecked reads an object, of which no more is read than the size that the manifest states,
// and compares it with the manifest.
func readChecked(ctx context.Context, store blob.Store, object storedObject) ([]byte, error) {
	o, err := store.Get(ctx, object.key, object.size)
	if errors.Is(err, blob.ErrTooLarge) {
		return nil, fmt.Errorf("object %s: %w: manifest says %d bytes: %w", object.key, ErrDamaged, object.size, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	if got := Digest(o.Data); got != object.sha256 || int64(len(o.Data)) != object.size {
		return nil, fmt.Errorf("object %s: %w: %d bytes of hash %s, manifest says %d of %s",
			object.key, ErrDamaged, len(o.Data), got, object.size, object.sha256)
	}
	return o.Data, nil
}

func byPath(entries []Entry) map[string]Entry {
	index := make(map[string]Entry, len(entries))
	for _, e := range entries {
		index[e.Path] = e
	}
	return index
}
