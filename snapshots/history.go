package snapshots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gridcast/snapshots/blob"
)

// Standing says what became of a version.
type Standing string

// The standings.
const (
	Current     Standing = "current"
	Published   Standing = "published"   // current once
	Unpublished Standing = "unpublished" // claimed, and never current: still being built, outrun or abandoned
)

// Summary describes a version in a list.
type Summary struct {
	Version    int64     `json:"version"`
	Standing   Standing  `json:"standing"`
	Held       bool      `json:"held,omitzero"`
	Builder    string    `json:"builder,omitzero"`
	Reason     string    `json:"reason,omitzero"`
	BuiltAt    time.Time `json:"built_at,omitzero"` // race time
	Base       int64     `json:"base,omitzero"`
	RollbackOf int64     `json:"rollback_of,omitzero"`
	Variants   int       `json:"variants,omitzero"`
	Bytes      int64     `json:"bytes,omitzero"` // of all bodies and codings, shared ones included
	Damage     string    `json:"damage,omitzero"`
}

// List describes every version whose claim or manifest is in the store, the newest first.
func List(ctx context.Context, store blob.Store) ([]Summary, error) {
	h, err := loadHistory(ctx, store)
	if err != nil {
		return nil, err
	}
	numbers, err := numbers(ctx, store, claimFolder, manifestFolder)
	if err != nil {
		return nil, err
	}
	var list []Summary
	for _, version := range slices.Backward(numbers) {
		s := Summary{Version: version, Standing: Unpublished}
		m, ok := h.manifests[version]
		if ok {
			s.Standing = Published
		} else if m, err = LoadManifest(ctx, store, version); err != nil {
			s.describeMissing(err)
		}
		s.describe(m)
		if version == h.pointer.Version {
			s.Standing, s.Held = Current, h.pointer.Held
		}
		list = append(list, s)
	}
	return list, nil
}

func (s *Summary) describe(m Manifest) {
	s.Builder, s.Reason, s.BuiltAt = m.Builder, m.Reason, m.BuiltAt
	s.Base, s.RollbackOf, s.Variants = m.Base, m.RollbackOf, len(m.Entries)
	for _, e := range m.Entries {
		for _, object := range e.stored() {
			s.Bytes += object.size
		}
	}
}

func (s *Summary) describeMissing(err error) {
	if !errors.Is(err, blob.ErrNotFound) {
		s.Damage = err.Error()
	}
}

// LoadManifest reads the manifest of a version; 0 stands for the current one.
func LoadManifest(ctx context.Context, store blob.Store, version int64) (Manifest, error) {
	hash := ""
	pointer, _, err := LoadPointer(ctx, store)
	switch {
	case version == 0 && err != nil:
		return Manifest{}, err
	case version == 0:
		version = pointer.Version
	}
	if pointer.Version == version {
		hash = pointer.Manifest
	}
	m, _, err := loadManifest(ctx, store, version, hash)
	return m, err
}

// history is the published versions, followed from the pointer from base to base.
type history struct {
	pointer   Pointer
	tag       blob.Tag
	versions  []int64 // the newest first; damaged and pruned ones are left out
	manifests map[int64]Manifest
	damage    error // of the pointer or of manifests on the way
}

// loadHistory follows the chain of bases. Where a link is damaged it goes on with the next
// lower number, so that one bad manifest does not cut off the versions before it.
func loadHistory(ctx context.Context, store blob.Store) (*history, error) {
	h := &history{manifests: map[int64]Manifest{}}
	var err error
	h.pointer, h.tag, err = LoadPointer(ctx, store)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return nil, err
	}
	numbers, listErr := numbers(ctx, store, manifestFolder)
	if listErr != nil {
		return nil, listErr
	}
	h.damage = err
	at, hash := h.pointer.Version, h.pointer.Manifest
	if err != nil && len(numbers) > 0 {
		at = numbers[len(numbers)-1]
	}
	for at > 0 {
		if _, there := slices.BinarySearch(numbers, at); !there && at != h.pointer.Version {
			at, hash = below(numbers, at), "" // pruned
			continue
		}
		m, _, err := loadManifest(ctx, store, at, hash)
		switch {
		case err == nil:
			h.versions = append(h.versions, at)
			h.manifests[at] = m
			at, hash = m.Base, m.BaseManifest
			continue
		case !errors.Is(err, ErrDamaged) && !errors.Is(err, blob.ErrNotFound):
			return nil, err
		}
		h.damage = errors.Join(h.damage, fmt.Errorf("history: %w", err))
		at, hash = below(numbers, at), ""
	}
	return h, nil
}

// below returns the highest number lower than at, or 0.
func below(numbers []int64, at int64) int64 {
	i, _ := slices.BinarySearch(numbers, at)
	if i == 0 {
		return 0
	}
	return numbers[i-1]
}

// numbers returns the versions that have an object in any of the folders, ascending.
func numbers(ctx context.Context, store blob.Store, folders ...string) ([]int64, error) {
	var found []int64
	for _, folder := range folders {
		for info, err := range store.List(ctx, folder) {
			if err != nil {
				return nil, fmt.Errorf("look for versions: %w", err)
			}
			if version, ok := versionIn(info.Key, folder); ok {
				found = append(found, version)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
