package snapshots

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"gridcast/snapshots/blob"
)

// Open reads the current version completely and checks every hash. Bodies that previous,
// which may be nil, has in common with it are taken from there.
func Open(ctx context.Context, store blob.Store, previous *Version) (*Version, error) {
	pointer, _, err := LoadPointer(ctx, store)
	if err != nil {
		return nil, err
	}
	return load(ctx, store, pointer, previous, 0)
}

// load reads the version that pointer names.
func load(ctx context.Context, store blob.Store, pointer Pointer, previous *Version, parallel int) (*Version, error) {
	if previous != nil && previous.Pointer.Version == pointer.Version && previous.Pointer.Manifest == pointer.Manifest {
		return &Version{Pointer: pointer, Manifest: previous.Manifest, raw: previous.raw, bodies: previous.bodies}, nil
	}
	manifest, raw, err := loadManifest(ctx, store, pointer.Version, pointer.Manifest)
	if err != nil {
		return nil, err
	}
	bodies := make([]*Body, len(manifest.Entries))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(workers(parallel))
	for i, e := range manifest.Entries {
		if b, ok := previous.body(e); ok {
			bodies[i] = b
			continue
		}
		group.Go(func() error {
			b, err := loadBody(groupCtx, store, e)
			bodies[i] = b
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("load version %d: %w", pointer.Version, err)
	}
	v := &Version{Pointer: pointer, Manifest: manifest, raw: raw, bodies: make(map[string]*Body, len(bodies))}
	for i := range bodies {
		// One copy of the entry: manifests of a long-running edge share their strings too.
		v.Manifest.Entries[i] = bodies[i].Entry
		v.bodies[bodies[i].Entry.Path] = bodies[i]
	}
	return v, nil
}

// body returns the body of a nil or older version if it is the one the entry describes.
func (v *Version) body(e Entry) (*Body, bool) {
	if v == nil {
		return nil, false
	}
	b, ok := v.bodies[e.Path]
	return b, ok && b.Entry.equal(e)
}

func loadBody(ctx context.Context, store blob.Store, e Entry) (*Body, error) {
	identity, err := readChecked(ctx, store, e.identity())
	if err != nil {
		return nil, err
	}
	b := &Body{Entry: e, Identity: identity}
	if len(e.Encodings) > 0 {
		b.Encoded = make(map[string][]byte, len(e.Encodings))
	}
	for coding, encoded := range e.Encodings {
		if b.Encoded[coding], err = readChecked(ctx, store, storedObject{EncodedKey(e.Object, coding), encoded.SHA256, encoded.Size}); err != nil {
			return nil, err
		}
	}
	return b, nil
}
