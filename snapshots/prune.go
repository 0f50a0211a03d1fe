package snapshots

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"gridcast/schemas/catalog"
	"gridcast/snapshots/blob"
)

// PruneAge is the least age of an object that Prune removes. No running build and no loading edge needs an
// object that old.
const PruneAge = 24 * time.Hour

// Pruned lists the objects that Prune removed, or would remove.
type Pruned struct {
	Kept    []int64 // published versions that stay, the newest first
	Removed []blob.Info
	Bytes   int64
}

// Prune keeps the newest published versions and removes everything older than PruneAge that none of them needs:
// manifests, notes, abandoned claims, probes, objects and derived documents. keep is the number of versions, with the
// current one, and at least 1. now is real time. A dry run removes nothing.
//
// Three things stay besides. A version that differs from its base in /live alone stays with its base. A version stays
// if a later one still shows bytes of it, for a refused document or in /live. The latest derived documents and their
// memos stay, because the next ones are made from them.
//
// Prune removes nothing if the current version cannot be read.
func Prune(ctx context.Context, store blob.Store, keep int, now time.Time, dryRun bool) (Pruned, error) {
	if keep < 1 {
		return Pruned{}, fmt.Errorf("prune: keep %d versions: want at least 1", keep)
	}
	p := &pruning{store: store, before: now.Add(-PruneAge), dryRun: dryRun}
	if err := p.run(ctx, keep); err != nil {
		return p.result, fmt.Errorf("prune: %w", err)
	}
	return p.result, nil
}

// PruneSandbox removes the simulated world from the store of the real one, at any age. Its pointer goes first, because an
// edge takes every other missing object for damage. After an interruption, call it again: it removes the rest. A dry run
// removes nothing.
func PruneSandbox(ctx context.Context, store blob.Store, dryRun bool) (Pruned, error) {
	const pointer = SandboxFolder + PointerKey
	p := &pruning{store: store, before: time.Unix(1<<40, 0), dryRun: dryRun}
	for _, prefix := range []string{pointer, SandboxFolder} {
		if err := p.sweep(ctx, prefix, func(key string) bool { return prefix == pointer || key != pointer }); err != nil {
			return p.result, fmt.Errorf("prune the sandbox: %w", err)
		}
	}
	return p.result, nil
}

type pruning struct {
	store  blob.Store
	before time.Time
	dryRun bool
	result Pruned
}

func (p *pruning) run(ctx context.Context, keep int) error {
	h, err := LoadHistory(ctx, p.store)
	if err != nil {
		return err
	}
	if len(h.Versions) == 0 || h.Versions[0] != h.Pointer.Version {
		return fmt.Errorf("current version %d: %w", h.Pointer.Version, h.Damage)
	}
	retained := p.retain(h, keep)
	// Manifests go first, so that a rollback which starts now finds its target missing and does not
	// lose objects while it reads them.
	if err := p.sweep(ctx, manifestFolder, func(key string) bool {
		version, ok := versionIn(key, manifestFolder)
		return ok && !retained[version]
	}); err != nil {
		return err
	}
	left, reached, err := p.survey(ctx, h)
	if err != nil {
		return err
	}
	if err := p.reachDerived(ctx, reached); err != nil {
		return err
	}
	unreached := func(key string) bool { return !reached[key] }
	for _, of := range []struct {
		folder   string
		unwanted func(key string) bool
	}{
		{objectFolder, unreached},
		{deltaFolder, unreached},
		{partFolder, unreached},
		{DerivedFolder, unreached},
		{blob.ProbeFolder, func(string) bool { return true }},
		{noteFolder, func(key string) bool {
			version, ok := versionIn(key, noteFolder)
			return ok && !left[version]
		}},
		// A claim below the pointer protects no number, because new numbers are above the pointer.
		{claimFolder, func(key string) bool {
			version, ok := versionIn(key, claimFolder)
			return ok && version < h.Pointer.Version && !left[version]
		}},
	} {
		if err := p.sweep(ctx, of.folder, of.unwanted); err != nil {
			return err
		}
	}
	return nil
}

// retain chooses the versions that are kept, and returns these and the versions whose bytes they need.
func (p *pruning) retain(h *History, keep int) map[int64]bool {
	for _, version := range h.Versions {
		if len(p.result.Kept) > 0 && !h.passing(p.result.Kept[len(p.result.Kept)-1]) {
			if keep--; keep == 0 {
				break
			}
		}
		p.result.Kept = append(p.result.Kept, version)
	}
	retained := map[int64]bool{}
	for _, version := range p.result.Kept {
		retained[version] = true
		for _, refused := range h.Manifests[version].Refused {
			retained[refused.Version] = true // whose inputs gave these bytes
		}
		for _, e := range h.Manifests[version].Entries {
			if v, err := catalog.ParsePath(e.Path); err == nil && catalog.Passing(e.Path) && v.SessionKey > 0 {
				retained[e.WrittenIn()] = true // the timeline of an earlier race
			}
		}
	}
	return retained
}

// survey returns the versions whose manifest remains, published or not, and the objects that
// they name.
func (p *pruning) survey(ctx context.Context, h *History) (left map[int64]bool, reached map[string]bool, err error) {
	gone := map[string]bool{}
	for _, info := range p.result.Removed {
		gone[info.Key] = true
	}
	left, reached = map[int64]bool{}, map[string]bool{}
	versions, err := numbers(ctx, p.store, manifestFolder)
	if err != nil {
		return nil, nil, err
	}
	for _, version := range versions {
		if gone[ManifestKey(version)] {
			continue
		}
		m, known := h.Manifests[version]
		if !known {
			if m, err = LoadManifest(ctx, p.store, version); err != nil {
				return nil, nil, err // its objects are not known, so none is safe to remove
			}
		}
		left[version] = true
		reached[m.Derived] = true
		for _, object := range m.Objects() {
			reached[object.Key] = true
		}
	}
	if !left[h.Pointer.Version] {
		return nil, nil, fmt.Errorf("current version %d: its manifest is not listed", h.Pointer.Version)
	}
	return left, reached, nil
}

// reachDerived adds to reached the latest derived file, the latest shared memos, and those that a remaining file names.
func (p *pruning) reachDerived(ctx context.Context, reached map[string]bool) error {
	var files []blob.Info
	var latest, memos blob.Info
	for info, err := range p.store.List(ctx, DerivedFolder) {
		if err != nil {
			return err
		}
		of := &latest
		if strings.HasPrefix(info.Key, SharedFolder) {
			of = &memos
		} else {
			files = append(files, info)
		}
		if info.Modified.After(of.Modified) {
			*of = info
		}
	}
	reached[latest.Key], reached[memos.Key] = true, true
	files = slices.DeleteFunc(files, func(file blob.Info) bool { return !reached[file.Key] && file.Modified.Before(p.before) })
	var mu sync.Mutex // guards reached
	return Each(ctx, "read derived documents", files, defaultWorkers, nil, func(ctx context.Context, file blob.Info) error {
		object, err := p.store.Get(ctx, file.Key, MaxDerived)
		if err != nil && !errors.Is(err, blob.ErrNotFound) && !errors.Is(err, blob.ErrTooLarge) {
			return err
		}
		key := SharedMemos(object.Data) // a builder cannot read a damaged file either, and needs no memo of it
		mu.Lock()
		defer mu.Unlock()
		reached[key] = true
		return nil
	})
}

// SharedMemos returns the key below SharedFolder that a derived file names. It is empty if the file cannot be read.
func SharedMemos(file []byte) string {
	z, _ := zstd.NewReader(bytes.NewReader(file), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(4*MaxDerived))
	defer z.Close()
	var named struct{ Shared string }
	_ = json.NewDecoder(io.LimitReader(z, 4*MaxDerived)).Decode(&named)
	return named.Shared
}

// sweep removes the old objects of a folder for which unwanted is true.
func (p *pruning) sweep(ctx context.Context, folder string, unwanted func(key string) bool) error {
	var doomed []blob.Info
	for info, err := range p.store.List(ctx, folder) {
		if err != nil {
			return err
		}
		if info.Modified.Before(p.before) && unwanted(info.Key) {
			doomed = append(doomed, info)
		}
	}
	if !p.dryRun {
		if err := Each(ctx, "remove", doomed, defaultWorkers, nil, func(ctx context.Context, info blob.Info) error {
			return p.store.Delete(ctx, info.Key)
		}); err != nil {
			return err
		}
	}
	for _, info := range doomed {
		p.result.Removed = append(p.result.Removed, info)
		p.result.Bytes += info.Size
	}
	return nil
}

// Verification is the outcome of Verify.
type Verification struct {
	Version int64
	Objects int   // read, whether good or not
	Bytes   int64 // read
	Faults  []error
}

// Verify reads every object of a version and compares it with the manifest; 0 stands for the current
// version. A missing or wrong object is one of the Faults. The error says that the store does not answer.
func Verify(ctx context.Context, store blob.Store, version int64, progress Progress) (Verification, error) {
	m, err := LoadManifest(ctx, store, version)
	if err != nil {
		return Verification{}, fmt.Errorf("verify: %w", err)
	}
	return verify(ctx, store, m, defaultWorkers, progress)
}

func verify(ctx context.Context, store blob.Store, m Manifest, parallel int, progress Progress) (Verification, error) {
	objects := m.Objects()
	of := map[string]ManifestEntry{} // by the key of its object
	for _, e := range m.Entries {
		of[e.Object] = e
	}
	var mu sync.Mutex // guards result
	result := Verification{Version: m.Version}
	err := Each(ctx, Check, objects, parallel, progress, func(ctx context.Context, object Object) error {
		data, fault := object.Read(ctx, store)
		if fault == nil {
			fault = of[object.Key].checkPacked(data)
		}
		mu.Lock()
		defer mu.Unlock()
		result.Objects++
		switch {
		case fault == nil:
			result.Bytes += object.Size
		case errors.Is(fault, ErrDamaged), errors.Is(fault, blob.ErrNotFound):
			result.Faults = append(result.Faults, fault)
		default:
			return fmt.Errorf("verify version %d: %w", m.Version, fault)
		}
		return nil
	})
	return result, err
}
