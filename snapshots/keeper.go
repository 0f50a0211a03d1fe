package snapshots

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"gridcast/snapshots/blob"
)

// sourceKey holds the name of the store that a cache is a copy of.
const sourceKey = "source.txt"

// keeper keeps one version in a cache, under the same keys as in the store it came from. The
// pointer is written last, so a cache that was cut short still holds the version before, and
// everything is checked again when it is opened.
type keeper struct {
	cache   blob.Store
	source  string
	workers int
	latest  chan *Version   // holds at most the newest version not yet kept
	kept    map[string]bool // keys known to hold the right bytes; owned by open, then run
}

func newKeeper(cache blob.Store, source string, workers int) *keeper {
	return &keeper{cache: cache, source: source, workers: workers, latest: make(chan *Version, 1), kept: map[string]bool{}}
}

// open returns the version in the cache, or ErrNone if there is none of this source.
func (k *keeper) open(ctx context.Context) (*Version, error) {
	o, err := k.cache.Get(ctx, sourceKey, blob.MaxDocument)
	switch {
	case errors.Is(err, blob.ErrNotFound) || err == nil && string(o.Data) != k.source:
		if err := k.begin(ctx); err != nil {
			return nil, err
		}
		return nil, ErrNone
	case err != nil:
		return nil, fmt.Errorf("open cache %s: %w", k.cache, err)
	}
	v, err := Open(ctx, k.cache, nil)
	if err != nil {
		return nil, fmt.Errorf("open cache %s: %w", k.cache, err)
	}
	k.kept = keysOf(v)
	return v, nil
}

// begin empties a cache that belongs to another store, or to none.
func (k *keeper) begin(ctx context.Context) error {
	err := k.cache.Delete(ctx, PointerKey)
	if err == nil {
		err = k.sweep(ctx, nil)
	}
	if err == nil {
		err = k.replace(ctx, sourceKey, []byte(k.source))
	}
	if err != nil {
		return fmt.Errorf("empty cache %s: %w", k.cache, err)
	}
	return nil
}

// keep asks run to keep v instead of whatever is waiting. It never blocks, and is called from
// one goroutine.
func (k *keeper) keep(v *Version) {
	select {
	case <-k.latest:
	default:
	}
	k.latest <- v
}

// run keeps versions until ctx ends.
func (k *keeper) run(ctx context.Context, failed func(error)) {
	for {
		select {
		case v := <-k.latest:
			if err := k.save(ctx, v); err != nil && ctx.Err() == nil {
				failed(fmt.Errorf("keep version %d in %s: %w", v.Pointer.Version, k.cache, err))
			}
		case <-ctx.Done():
			return
		}
	}
}

func (k *keeper) save(ctx context.Context, v *Version) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(k.workers)
	for _, b := range v.All() {
		for key, data := range b.stored() {
			if !k.kept[key] {
				group.Go(func() error { return k.replace(groupCtx, key, data) })
			}
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	pointer, err := json.Marshal(v.Pointer)
	if err != nil {
		return err
	}
	if err := k.replace(ctx, ManifestKey(v.Pointer.Version), v.raw); err != nil {
		return err
	}
	if err := k.replace(ctx, PointerKey, pointer); err != nil {
		return err
	}
	k.kept = keysOf(v)
	return k.sweep(ctx, k.kept)
}

// replace makes key hold data, whatever it held before.
func (k *keeper) replace(ctx context.Context, key string, data []byte) error {
	_, err := k.cache.Create(ctx, key, data)
	if !errors.Is(err, blob.ErrConflict) {
		return err
	}
	o, err := k.cache.Get(ctx, key, maxObject)
	if err != nil || bytes.Equal(o.Data, data) {
		return err
	}
	_, err = k.cache.Swap(ctx, key, o.Tag, data)
	return err
}

// sweep removes claims, manifests and objects other than those to keep.
func (k *keeper) sweep(ctx context.Context, keep map[string]bool) error {
	for info, err := range k.cache.List(ctx, "") {
		if err != nil {
			return err
		}
		if Immutable(info.Key) && !keep[info.Key] {
			if err := k.cache.Delete(ctx, info.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

// keysOf returns the keys of the objects and the manifest of v.
func keysOf(v *Version) map[string]bool {
	keys := map[string]bool{ManifestKey(v.Pointer.Version): true}
	for _, e := range v.Manifest.Entries {
		for _, object := range e.stored() {
			keys[object.key] = true
		}
	}
	return keys
}
