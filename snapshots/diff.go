package snapshots

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"gridcast/snapshots/blob"
)

// Kind says how a variant differs between two versions.
type Kind string

// The kinds.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// Change is a variant that differs between two versions.
type Change struct {
	Path   string        `json:"path"`
	Kind   Kind          `json:"kind"`
	Values []ValueChange `json:"values,omitzero"` // of a changed body, in the order of the body
}

// ValueChange is a value in a body that differs. A value that one side does not have is
// empty there.
type ValueChange struct {
	At  string `json:"at"` // such as data[driver=VER].points
	Old string `json:"old,omitzero"`
	New string `json:"new,omitzero"`
}

// Diff compares the content of two versions; 0 stands for the current one. Changes come by
// ascending path. When bodies differ only in when they were rendered, their change has no
// values.
func Diff(ctx context.Context, store blob.Store, from, to int64) ([]Change, error) {
	a, err := LoadManifest(ctx, store, from)
	if err != nil {
		return nil, fmt.Errorf("diff: %w", err)
	}
	b, err := LoadManifest(ctx, store, to)
	if err != nil {
		return nil, fmt.Errorf("diff: %w", err)
	}
	before, after := byPath(a.Entries), byPath(b.Entries)
	paths := maps.Clone(before)
	maps.Copy(paths, after)
	var changes []Change
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		x, inA := before[path]
		y, inB := after[path]
		switch {
		case !inA:
			changes = append(changes, Change{Path: path, Kind: Added})
		case !inB:
			changes = append(changes, Change{Path: path, Kind: Removed})
		case x.SHA256 != y.SHA256:
			values, err := diffBodies(ctx, store, x, y)
			if err != nil {
				return nil, fmt.Errorf("diff of %s: %w", path, err)
			}
			changes = append(changes, Change{Path: path, Kind: Changed, Values: values})
		}
	}
	return changes, nil
}

func diffBodies(ctx context.Context, store blob.Store, x, y Entry) ([]ValueChange, error) {
	before, err := readChecked(ctx, store, x.identity())
	if err != nil {
		return nil, err
	}
	after, err := readChecked(ctx, store, y.identity())
	if err != nil {
		return nil, err
	}
	return diffValues(before, after), nil
}

// diffValues compares two bodies as JSON, or shows how they begin where one is none.
func diffValues(before, after []byte) []ValueChange {
	old, err := parseValue(before)
	if err != nil {
		return []ValueChange{{At: "(not JSON)", Old: excerpt(before), New: excerpt(after)}}
	}
	fresh, err := parseValue(after)
	if err != nil {
		return []ValueChange{{At: "(not JSON)", Old: excerpt(before), New: excerpt(after)}}
	}
	var d valueDiff
	d.compare("", old, fresh)
	return d.changes
}

// excerpt shows the beginning of bytes that are no JSON.
func excerpt(data []byte) string {
	const most = 60
	if len(data) > most {
		return fmt.Sprintf("%q… (%d bytes)", data[:most], len(data))
	}
	return fmt.Sprintf("%q", bytes.TrimSpace(data))
}
