package snapshots

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"syscall"

	"golang.org/x/sync/errgroup"

	"gridcast/snapshots/blob"
)

// cache keeps the last two versions of a store, each complete and under the same keys as in the store
// it came from: one at the root, one below spare/. The next version replaces the older one. If the
// files of one are damaged or a write is cut short, the other is whole, because they share no file.
type cache struct {
	source string // name of the store that it is a copy of
	name   string
	slots  []*slot       // owned by versions, then by run
	latest chan *Version // holds at most the newest version not yet kept
}

// slot is a place for one version.
type slot struct {
	blob.Store

	holds  int64           // the whole version in this slot; 0: none
	kept   map[string]bool // keys that hold the right bytes
	unread bool            // the process had no file to read it with, so that it may be whole
}

// sourceKey holds the name of the store that a slot is a copy of.
const sourceKey = "source.txt"

func newCache(store blob.Store, source string) *cache {
	c := &cache{source: source, name: store.String(), latest: make(chan *Version, 1)}
	for _, prefix := range []string{"", "spare/"} {
		c.slots = append(c.slots, &slot{Store: blob.Under(store, prefix)})
	}
	return c
}

// versions yields the cached versions of the source, the newest first, or the error of reading one.
func (c *cache) versions(ctx context.Context, lean func(*Manifest, string) bool) iter.Seq2[*Version, error] {
	return func(yield func(*Version, error) bool) {
		type found struct {
			slot    *slot
			pointer Pointer
		}
		var all []found
		for _, s := range c.slots {
			pointer, err := c.pointer(ctx, s)
			switch {
			case err == nil:
				all = append(all, found{s, pointer})
			case !errors.Is(err, ErrNone) && !yield(nil, err):
				return
			}
		}
		slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(b.pointer.Version, a.pointer.Version) })
		for i, f := range all {
			stores := []blob.Store{f.slot}
			if len(all) > 1 {
				stores = append(stores, all[1-i].slot)
			}
			v, err := loader{lean: lean}.load(ctx, f.pointer, stores...)
			if err != nil {
				err = fmt.Errorf("open cache %s: %w", c.name, err)
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

// LoadCached returns the manifest of the newest version that a cache of Follow holds, and the name of the store that it
// is a copy of. The error wraps ErrNone if it holds none.
func LoadCached(ctx context.Context, store blob.Store) (newest Manifest, source string, err error) {
	err = ErrNone
	for _, s := range newCache(store, "").slots {
		o, none := s.Get(ctx, sourceKey, blob.MaxDocument)
		if none != nil {
			continue
		}
		if m, loadErr := LoadManifest(ctx, s, 0); loadErr == nil && m.Version > newest.Version {
			newest, source, err = m, string(o.Data), nil
		}
	}
	return newest, source, err
}

// pointer reads the pointer of a slot, or returns ErrNone if it holds nothing of this source.
func (c *cache) pointer(ctx context.Context, s *slot) (Pointer, error) {
	o, err := s.Get(ctx, sourceKey, blob.MaxDocument)
	if errors.Is(err, blob.ErrNotFound) || err == nil && string(o.Data) != c.source {
		return Pointer{}, ErrNone
	}
	var pointer Pointer
	if err == nil {
		pointer, _, err = LoadPointer(ctx, s)
	}
	if err != nil {
		return Pointer{}, fmt.Errorf("open cache %s: %w", c.name, err)
	}
	return pointer, nil
}

// keep asks run to keep v. If run has not yet taken an earlier version, v replaces it. keep never blocks,
// and only one goroutine calls it.
func (c *cache) keep(v *Version) {
	select {
	case <-c.latest:
	default:
	}
	c.latest <- v
}

// run keeps versions until ctx ends. It first reads both slots again, so that it writes a damaged slot
// first.
func (c *cache) run(ctx context.Context, failed func(error)) {
	for _, s := range c.slots {
		if err := blob.Guard(func() error { return c.check(ctx, s) }); err != nil && !errors.Is(err, ErrNone) && ctx.Err() == nil {
			failed(err)
		}
	}
	for {
		select {
		case v := <-c.latest:
			if err := blob.Guard(func() error { return c.save(ctx, v) }); err != nil && ctx.Err() == nil {
				failed(fmt.Errorf("keep version %d in %s: %w", v.Pointer.Version, c.name, err))
			}
		case <-ctx.Done():
			return
		}
	}
}

// check reads a slot whole.
func (c *cache) check(ctx context.Context, s *slot) error {
	pointer, err := c.pointer(ctx, s)
	if err == nil {
		if _, err = (loader{asStored: true}).load(ctx, pointer, s); err == nil {
			s.holds = pointer.Version
		}
	}
	s.unread = errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
	return err
}

// save writes v into the slot of the older version, and into every slot that holds none.
func (c *cache) save(ctx context.Context, v *Version) error {
	for _, s := range c.slots {
		if !s.unread {
			continue
		}
		if err := c.check(ctx, s); s.unread {
			return err
		}
	}
	older := slices.MinFunc(c.slots, func(a, b *slot) int { return cmp.Compare(a.holds, b.holds) })
	for _, s := range c.slots {
		has := slices.ContainsFunc(c.slots, func(s *slot) bool { return s.holds == v.Pointer.Version })
		if s.holds != 0 && s.holds != v.Pointer.Version && (s != older || has) {
			continue
		}
		if err := c.write(ctx, s, v); err != nil {
			return err
		}
	}
	return nil
}

func (c *cache) write(ctx context.Context, s *slot, v *Version) error {
	if s.holds == 0 {
		// The slot may be damaged, or of another store, so write replaces all of it. If we crash
		// before the end, the slot has no pointer, or the next start finds its version damaged.
		if err := s.Delete(ctx, PointerKey); err != nil {
			return err
		}
		if err := s.replace(ctx, sourceKey, []byte(c.source)); err != nil {
			return err
		}
	}
	kept := s.kept
	s.kept = nil // until the write is complete, the slot may hold anything
	files, keep := maps.Clone(v.stored.files), map[string]bool{}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(defaultWorkers)
	for _, b := range v.All() {
		if files[b.Entry.Object] = b.Encoded[GZ]; !b.Entry.packed() {
			files[b.Entry.Object] = b.Identity
		}
	}
	for key, data := range files {
		keep[key] = true
		if !kept[key] {
			group.Go(func() error { return s.replace(groupCtx, key, data) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	pointer, _ := json.Marshal(v.Pointer) // it was JSON
	// Until here the slot held its earlier version, whose objects are removed only after this.
	if err := s.replace(ctx, PointerKey, pointer); err != nil {
		return err
	}
	s.holds = v.Pointer.Version
	if err := s.sweep(ctx, kept, keep); err != nil {
		return err
	}
	s.kept = keep
	return nil
}

func (s *slot) replace(ctx context.Context, key string, data []byte) error {
	_, err := blob.Put(ctx, s, key, int64(max(len(data), blob.MaxDocument)), data)
	return err
}

// sweep removes all manifests and objects except those to keep. It lists the slot if had is nil, which are the keys in it.
func (s *slot) sweep(ctx context.Context, had, keep map[string]bool) error {
	if had == nil {
		had = map[string]bool{}
		for info, err := range s.List(ctx, "") {
			if err != nil {
				return err
			}
			had[info.Key] = Immutable(info.Key)
		}
	}
	for key, immutable := range had {
		if immutable && !keep[key] {
			if err := s.Delete(ctx, key); err != nil {
				return err
			}
		}
	}
	return nil
}
