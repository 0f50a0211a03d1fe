package snapshots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"gridcast/schemas/catalog"
	"gridcast/snapshots/blob"
)

// VersionStatus tells a version that is or was current from others.
type VersionStatus string

// The statuses.
const (
	Current     VersionStatus = "current"
	Published   VersionStatus = "published"   // current once
	Unpublished VersionStatus = "unpublished" // claimed and never current: being built, overtaken or abandoned
)

// Summary is a version in a list.
type Summary struct {
	Version    int64         `json:"version"`
	Status     VersionStatus `json:"status"`
	Held       bool          `json:"held,omitzero"`
	Builder    string        `json:"builder,omitzero"`
	Reason     string        `json:"reason,omitzero"`
	BuiltAt    time.Time     `json:"built_at,omitzero"` // race time
	Base       int64         `json:"base,omitzero"`
	RollbackOf int64         `json:"rollback_of,omitzero"`
	Variants   int           `json:"variants,omitzero"`
	Bytes      int64         `json:"bytes,omitzero"` // of all stored bodies, shared ones included
	Damage     string        `json:"damage,omitzero"`
}

// List describes every version whose claim or manifest is in the store, the newest first.
func List(ctx context.Context, store blob.Store) ([]Summary, error) {
	h, err := LoadHistory(ctx, store)
	if err != nil {
		return nil, err
	}
	numbers, err := numbers(ctx, store, claimFolder, manifestFolder)
	if err != nil {
		return nil, err
	}
	var list []Summary
	for _, version := range slices.Backward(numbers) {
		s := Summary{Version: version, Status: Unpublished}
		m, ok := h.Manifests[version]
		if ok {
			s.Status = Published
		} else if m, err = LoadManifest(ctx, store, version); err != nil && !errors.Is(err, blob.ErrNotFound) {
			s.Damage = err.Error()
		}
		s.Builder, s.Reason, s.BuiltAt = m.Builder, m.Reason, m.BuiltAt
		s.Base, s.RollbackOf, s.Variants = m.Base, m.RollbackOf, len(m.Entries)
		for _, e := range m.Entries {
			s.Bytes += e.object().Size
		}
		if version == h.Pointer.Version {
			s.Status, s.Held = Current, h.Pointer.Held
		}
		list = append(list, s)
	}
	return list, nil
}

// LoadManifest reads the manifest of a version; 0 stands for the current one.
func LoadManifest(ctx context.Context, store blob.Store, version int64) (Manifest, error) {
	pointer, _, err := LoadPointer(ctx, store)
	if version == 0 {
		if err != nil {
			return Manifest{}, err
		}
		version = pointer.Version
	}
	hash := ""
	if pointer.Version == version {
		hash = pointer.Manifest
	}
	m, _, err := loadManifest(ctx, version, hash, stored{}, store)
	return m, err
}

// History is the chain of published versions, from the current one to its base, and so on.
type History struct {
	Pointer   Pointer
	Versions  []int64 // the newest first, without damaged and pruned ones
	Manifests map[int64]Manifest
	Damage    error // of the pointer, or of manifests on the way

	tag        blob.Tag // of the pointer
	pointerErr error    // of reading it
}

// LoadHistory follows the chain of bases. If a manifest is damaged, LoadHistory goes on with the next lower
// number, so that one bad manifest does not cut off the versions before it. If the pointer is damaged or
// lost, it begins with the highest number. The error is ErrNone if there are neither pointer nor manifests.
func LoadHistory(ctx context.Context, store blob.Store) (*History, error) {
	h := &History{Manifests: map[int64]Manifest{}}
	var err error
	h.Pointer, h.tag, err = LoadPointer(ctx, store)
	if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNone) {
		return nil, err
	}
	numbers, listErr := numbers(ctx, store, manifestFolder)
	if listErr != nil {
		return nil, listErr
	}
	if errors.Is(err, ErrNone) && len(numbers) == 0 {
		return nil, err
	}
	h.Damage, h.pointerErr = err, err
	at, hash := h.Pointer.Version, h.Pointer.Manifest
	if err != nil && len(numbers) > 0 {
		at = numbers[len(numbers)-1]
	}
	known := prefetch(ctx, store, numbers)
	for at > 0 {
		if _, there := slices.BinarySearch(numbers, at); !there && at != h.Pointer.Version {
			at, hash = below(numbers, at), "" // pruned
			continue
		}
		m, read, err := loadManifest(ctx, at, hash, known, store)
		switch {
		case err == nil:
			maps.Copy(known.files, read.files)
			maps.Copy(known.parts, read.parts)
			h.Versions = append(h.Versions, at)
			h.Manifests[at] = m
			at, hash = m.Base, m.BaseManifest
			continue
		case !errors.Is(err, ErrDamaged) && !errors.Is(err, blob.ErrNotFound):
			return nil, err
		}
		h.Damage = errors.Join(h.Damage, fmt.Errorf("history: %w", err))
		at, hash = below(numbers, at), ""
	}
	return h, nil
}

// prefetch reads the files of all manifests side by side, because a chain of bases names them one by one. A file
// that it cannot read is nil: loadManifest reads it again, and has the error.
func prefetch(ctx context.Context, store blob.Store, versions []int64) stored {
	read := stored{files: map[string][]byte{}, parts: map[string]partFile{}}
	var mu sync.Mutex // guards read
	_ = Each(ctx, "prefetch", versions, defaultWorkers, nil, func(ctx context.Context, version int64) error {
		key := ManifestKey(version)
		o, _ := store.Get(ctx, key, maxManifest)
		mu.Lock()
		defer mu.Unlock()
		read.files[key] = o.Data
		return nil
	})
	return read
}

// passing reports whether a version differs from its base in documents of passing endpoints alone.
func (h *History) passing(version int64) bool {
	m := h.Manifests[version]
	base := h.Manifests[m.Base]
	return slices.EqualFunc(lasting(m.Entries), lasting(base.Entries), ManifestEntry.equal) && !slices.EqualFunc(m.Entries, base.Entries, ManifestEntry.equal)
}

// lasting returns the entries without those of passing endpoints.
func lasting(entries []ManifestEntry) []ManifestEntry {
	return slices.DeleteFunc(slices.Clone(entries), func(e ManifestEntry) bool { return catalog.Passing(e.Path) })
}

// below returns the highest number lower than at, or 0.
func below(numbers []int64, at int64) int64 {
	if i, _ := slices.BinarySearch(numbers, at); i > 0 {
		return numbers[i-1]
	}
	return 0
}

// numbers returns the versions that have an object in any of the folders, ascending.
func numbers(ctx context.Context, store blob.Store, folders ...string) ([]int64, error) {
	found := make([][]int64, len(folders))
	group, ctx := errgroup.WithContext(ctx)
	for i, folder := range folders {
		group.Go(func() error {
			for info, err := range store.List(ctx, folder) {
				if err != nil {
					return fmt.Errorf("look for versions: %w", err)
				}
				if version, ok := versionIn(info.Key, folder); ok {
					found[i] = append(found[i], version)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := slices.Concat(found...)
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Rollback makes the content of version to current again, under a new number, and holds the
// pointer: builders publish nothing until a draft says EndHold. It also works if the current manifest
// or the pointer is damaged or lost. now is race time. reason is for people and must not be empty.
//
// Rollback first reads and checks every object of the version. If another version is published
// meanwhile, the error is ErrBaseChanged.
func (p *Publisher) Rollback(ctx context.Context, to int64, builder, reason string, now time.Time) (Receipt, error) {
	start := time.Now()
	receipt, err := p.rollback(ctx, to, builder, reason, now)
	receipt.Seconds = time.Since(start).Seconds()
	if err != nil {
		return receipt, fmt.Errorf("roll back to version %d: %w", to, err)
	}
	return receipt, nil
}

func (p *Publisher) rollback(ctx context.Context, to int64, builder, reason string, now time.Time) (Receipt, error) {
	if reason == "" || now.IsZero() {
		return Receipt{}, errors.New("a rollback needs a reason and the time")
	}
	h, err := LoadHistory(ctx, p.Store)
	if err != nil {
		return Receipt{}, err
	}
	if h.Pointer.Signed && p.Signers == nil {
		return Receipt{}, ErrNoSigner
	}
	m, err := p.target(ctx, h, to)
	if err != nil {
		return Receipt{}, err
	}
	base := h.Pointer // the version that is followed; zero if no builder has published it
	reached, err := p.reached(ctx)
	if err == nil && p.Signers != nil {
		if base, err = p.counted(ctx, h.Pointer, h.pointerErr); errors.Is(err, ErrNewKey) { // target has checked the key
			err = nil
		}
	} else if base.Version-reached > MaxGap {
		base = Pointer{} // it may leave no number above it
	}
	if err != nil {
		return Receipt{}, err
	}
	version, err := p.claim(ctx, base.Version, MaxGap, builder)
	if err != nil {
		return Receipt{}, err
	}
	current := h.Manifests[base.Version]
	m.Instant = m.DocumentsAt()
	m.Version, m.Base, m.BaseManifest, m.RollbackOf = version, base.Version, base.Manifest, to
	if base.Version == 0 {
		m.Base, current = min(to, version-1), m
	}
	m.Builder, m.Reason, m.BuiltAt = builder, reason, now
	m.Missing = current.Missing // the archive stays
	var log []ManifestEntry
	if base.Manifest == h.Pointer.Manifest {
		log = current.Entries
	}
	m.Entries = p.withLog(ctx, m.Entries, log, base.Version)
	next, _, err := p.putManifest(ctx, m, nil)
	if err != nil {
		return Receipt{}, err
	}
	// Prune removes manifests before the objects that no remaining manifest names. Our manifest is
	// in the store now. If the old one still is too, prune keeps the objects of both.
	if _, err := LoadManifest(ctx, p.Store, to); err != nil {
		return Receipt{}, fmt.Errorf("pruned meanwhile: %w", err)
	}
	result, err := verify(ctx, p.Store, m, p.workers(), p.Progress)
	if err := errors.Join(append(result.Faults, err)...); err != nil {
		return Receipt{}, err
	}
	if _, err := p.sign(ctx, &next, m.Ledger); err != nil {
		return Receipt{}, err
	}
	next.Held, next.Reason = true, reason
	if _, err := p.swap(ctx, h.tag, h.Pointer.Version, next); err != nil {
		return Receipt{}, err
	}
	return Receipt{Version: version, Variants: len(m.Entries), ObjectsReused: result.Objects}, nil
}

// withLog returns the entries of an earlier version with the log of the current one, because a shorter log would look like
// a rewritten ledger. Unless that log is whole and signed with the keys of the publisher, the result has none, until the
// next build. current are the entries of the current version.
func (p *Publisher) withLog(ctx context.Context, earlier, current []ManifestEntry, version int64) []ManifestEntry {
	ofLog := func(e ManifestEntry) bool { return strings.HasPrefix(e.Path, LogFolder) }
	entries := slices.DeleteFunc(slices.Clone(earlier), ofLog)
	if p.Signers == nil || CheckNote(ctx, p.Store, version, p.Signers.Trust()) != nil {
		return entries
	}
	log := slices.DeleteFunc(slices.Clone(current), func(e ManifestEntry) bool { return !ofLog(e) })
	if r, err := verify(ctx, p.Store, Manifest{Entries: log}, p.workers(), nil); err != nil || len(r.Faults) > 0 {
		return entries
	}
	return slices.SortedFunc(slices.Values(append(log, entries...)), byAscendingPath)
}

// Target returns the manifest of a version to which the publisher may roll back: one that can be read and, with Signers,
// that they have signed. With Signers.New anybody may have signed it. The error names the others.
func (p *Publisher) Target(ctx context.Context, to int64) (Manifest, error) {
	h, err := LoadHistory(ctx, p.Store)
	if err != nil {
		return Manifest{}, err
	}
	return p.target(ctx, h, to)
}

func (p *Publisher) target(ctx context.Context, h *History, to int64) (Manifest, error) {
	own := func(version int64) error {
		if p.Signers == nil || p.Signers.New {
			return nil
		}
		return CheckNote(ctx, p.Store, version, p.Signers.Trust())
	}
	m, err := Manifest{}, blob.ErrNotFound
	if to > 0 {
		m, err = LoadManifest(ctx, p.Store, to)
	}
	if err == nil {
		err = own(to)
		switch {
		case errors.Is(err, ErrUnsigned):
			err = fmt.Errorf("version %d: %w", to, ErrNewKey)
		case err == nil && to == h.Pointer.Version && (p.Signers == nil || !p.Signers.New):
			err = errors.New("it is the current version")
		}
		return m, err
	}
	if !errors.Is(err, blob.ErrNotFound) {
		return m, err
	}
	list, listErr := numbers(ctx, p.Store, manifestFolder)
	list = slices.DeleteFunc(list, func(version int64) bool { return version == h.Pointer.Version || own(version) != nil })
	slices.Reverse(list)
	return m, cmp.Or(listErr, fmt.Errorf("no such published version: %w; there are %v", blob.ErrNotFound, list))
}

// Republish publishes a manifest from elsewhere, such as a backup, under the first free number greater than
// above. All objects of the manifest must be in the store. old is the tag of the pointer to replace; it is
// empty if there is none. The new pointer is held if held is true, for the reason.
func (p *Publisher) Republish(ctx context.Context, m Manifest, above int64, old blob.Tag, held bool, reason string) (int64, error) {
	version, err := p.claim(ctx, above, maxVersion, m.Builder) // edges may have served any of them
	if err != nil {
		return 0, err
	}
	m.Version = version
	next, _, err := p.putManifest(ctx, m, nil)
	if err == nil {
		_, err = p.sign(ctx, &next, m.Ledger)
	}
	if err != nil {
		return 0, err
	}
	next.Held, next.Reason = held, reason
	_, err = p.swap(ctx, old, m.Base, next)
	return version, err
}
