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

	"github.com/klauspost/compress/gzip"

	"gridcast/schemas/ordered"
	"gridcast/schemas/wire"
	"gridcast/snapshots/blob"
)

// Kind is the kind of a difference between two versions.
type Kind string

// The kinds.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// Difference is a variant that differs between two versions.
type Difference struct {
	Path   string        `json:"path"`
	Kind   Kind          `json:"kind"`
	Values []ValueChange `json:"values,omitzero"` // of a changed body, in the order of the body
}

// ValueChange is a value in a body that differs. If one side does not have the value, its text is empty.
type ValueChange struct {
	At  string `json:"at"` // such as data[driver=VER].points
	Old string `json:"old,omitzero"`
	New string `json:"new,omitzero"`
}

// Diff compares the content of two versions of the store. Differences come by
// ascending path. If bodies differ only in the time of rendering, their difference has no values.
func Diff(ctx context.Context, store blob.Store, from, to Manifest) (changes []Difference, err error) {
	before, after := from.ByPath(), to.ByPath()
	changes = Differing(before, after)
	for i, change := range changes {
		if change.Kind == Changed {
			if changes[i].Values, err = diffBodies(ctx, store, before[change.Path], after[change.Path]); err != nil {
				return nil, fmt.Errorf("diff of %s: %w", change.Path, err)
			}
		}
	}
	return changes, nil
}

// ByPath returns the entries by path.
func (m Manifest) ByPath() map[string]ManifestEntry {
	index := make(map[string]ManifestEntry, len(m.Entries))
	for _, e := range m.Entries {
		index[e.Path] = e
	}
	return index
}

// Differing compares the entries of two versions, by path. It returns the differences by ascending path, without values.
func Differing(before, after map[string]ManifestEntry) []Difference {
	var changes []Difference
	for path, e := range after {
		if old, ok := before[path]; !ok {
			changes = append(changes, Difference{Path: path, Kind: Added})
		} else if old.SHA256 != e.SHA256 {
			changes = append(changes, Difference{Path: path, Kind: Changed})
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			changes = append(changes, Difference{Path: path, Kind: Removed})
		}
	}
	slices.SortFunc(changes, func(a, b Difference) int { return strings.Compare(a.Path, b.Path) })
	return changes
}

func diffBodies(ctx context.Context, store blob.Store, x, y ManifestEntry) ([]ValueChange, error) {
	before, err := x.Read(ctx, store)
	if err != nil {
		return nil, err
	}
	after, err := y.Read(ctx, store)
	if err != nil {
		return nil, err
	}
	return diffValues(before, after, false), nil
}

// Compare compares the stored body of an entry with a body that was made elsewhere. equal says that the stored bytes are
// those of the manifest and that the bodies are the same; else the change is the first one from the stored body.
func (e ManifestEntry) Compare(ctx context.Context, store blob.Store, made []byte) (first ValueChange, equal bool, err error) {
	stored, err := e.Read(ctx, store)
	if errors.Is(err, ErrDamaged) {
		var o blob.Object
		o, err = store.Get(ctx, e.Object, maxObject)
		stored = o.Data
		if z, zipErr := gzip.NewReader(bytes.NewReader(stored)); e.packed() && zipErr == nil {
			if stored, zipErr = io.ReadAll(io.LimitReader(z, maxObject)); zipErr != nil {
				stored = o.Data
			}
		}
	} else if err == nil && Digest(made) == e.SHA256 {
		return ValueChange{}, true, nil
	}
	if err != nil {
		return ValueChange{}, false, err
	}
	changes := diffValues(stored, made, true)
	if len(changes) > 0 && changes[0].At == notJSON {
		changes = diffLines(stored, made)
	}
	if len(changes) > 0 {
		return changes[0], false, nil
	}
	return ValueChange{At: "(bytes)", Old: Digest(stored), New: Digest(made)}, false, nil // they differ in spelling, or in the gzip
}

// notJSON is the place of a difference between bodies of which one is not JSON.
const notJSON = "(not JSON)"

// diffValues compares two bodies as JSON, if all is true also the time of rendering. If one of them is not JSON, it
// returns the beginning of both.
func diffValues(before, after []byte, all bool) []ValueChange {
	var old, fresh bytes.Buffer
	if json.Compact(&old, before) != nil || json.Compact(&fresh, after) != nil {
		return []ValueChange{{At: notJSON, Old: excerpt(before), New: excerpt(after)}}
	}
	d := valueDiff{all: all}
	d.compare("", old.Bytes(), fresh.Bytes())
	return d.changes
}

// diffLines returns the first line that differs, if any, of bodies that are not JSON.
func diffLines(before, after []byte) []ValueChange {
	old, fresh := bytes.Split(before, []byte{'\n'}), bytes.Split(after, []byte{'\n'})
	for i := range min(len(old), len(fresh)) {
		if !bytes.Equal(old[i], fresh[i]) {
			return []ValueChange{{At: fmt.Sprintf("line %d", i+1), Old: excerpt(old[i]), New: excerpt(fresh[i])}}
		}
	}
	if len(old) != len(fresh) {
		return []ValueChange{{At: "(length)", Old: fmt.Sprintf("%d lines", len(old)), New: fmt.Sprintf("%d lines", len(fresh))}}
	}
	return nil
}

// excerpt returns the beginning of bytes that are not JSON.
func excerpt(data []byte) string {
	const most = 60
	if len(data) > most {
		return fmt.Sprintf("%q… (%d bytes)", data[:most], len(data))
	}
	return fmt.Sprintf("%q", bytes.TrimSpace(data))
}

// identities are the members that identify the elements of an array; the first that fits is used. With
// them, a driver that moves up in the standings is one change of position, not a change of every row.
var identities = []string{"session_key", "driver", "round", "team", "name"}

// renderedAt is left out of a comparison of versions: it differs whenever another value does.
const renderedAt = "meta.generated_at"

// members are those of a JSON object, in their order.
type members = ordered.Object[json.RawMessage]

// valueDiff collects the differences of two values.
type valueDiff struct {
	changes []ValueChange
	all     bool // compare renderedAt too
}

// compare compares two values, compact JSON each; nil stands for a missing value.
func (d *valueDiff) compare(at string, old, new json.RawMessage) {
	isBoth := func(open string) bool {
		return bytes.HasPrefix(old, []byte(open)) && bytes.HasPrefix(new, []byte(open))
	}
	switch {
	case bytes.Equal(old, new): // most parts of most bodies, which need no parsing
	case at == renderedAt && !d.all:
	case isBoth("{"):
		d.compareMembers(parsed[members](old), parsed[members](new), func(name string) string { return strings.TrimPrefix(at+"."+name, ".") })
	case isBoth("["):
		d.compareArrays(at, parsed[[]json.RawMessage](old), parsed[[]json.RawMessage](new))
	default:
		if before, after := textOf(old), textOf(new); before != after {
			d.changes = append(d.changes, ValueChange{At: at, Old: before, New: after})
		}
	}
}

// parsed decodes a value that is known to be JSON of the type.
func parsed[T any](value json.RawMessage) (v T) {
	if err := json.Unmarshal(value, &v); err != nil {
		panic("BUG: a checked body: " + err.Error())
	}
	return v
}

// compareMembers compares members of the same name. place names the place of a member.
func (d *valueDiff) compareMembers(old, new members, place func(name string) string) {
	for _, m := range old {
		value, _ := new.Get(m.Name)
		d.compare(place(m.Name), m.Value, value)
	}
	for _, m := range new {
		if _, ok := old.Get(m.Name); !ok {
			d.compare(place(m.Name), nil, m.Value)
		}
	}
}

func (d *valueDiff) compareArrays(at string, old, new []json.RawMessage) {
	for _, identity := range identities {
		before, ok := index(old, identity)
		after, also := index(new, identity)
		if ok && also {
			d.compareMembers(before, after, func(name string) string { return fmt.Sprintf("%s[%s=%s]", at, identity, name) })
			return
		}
	}
	longest := max(len(old), len(new))
	old, new = append(old, make([]json.RawMessage, longest-len(old))...), append(new, make([]json.RawMessage, longest-len(new))...)
	for i := range longest {
		d.compare(fmt.Sprintf("%s[%d]", at, i), old[i], new[i])
	}
}

// index names the elements of an array by a member. All must have the member, each with another value.
func index(array []json.RawMessage, identity string) (members, bool) {
	rows, seen := make(members, 0, len(array)), map[string]bool{}
	for _, value := range array {
		if !bytes.HasPrefix(value, []byte("{")) {
			return nil, false
		}
		id, ok := parsed[members](value).Get(identity)
		if !ok {
			return nil, false
		}
		var name string
		if json.Unmarshal(id, &name) != nil {
			name = string(id)
		}
		rows, seen[name] = append(rows, ordered.Member[json.RawMessage]{Name: name, Value: value}), true
	}
	return rows, len(seen) == len(rows)
}

// textOf returns a value as JSON, a string in one spelling for all ways to escape; empty for a missing value.
func textOf(value json.RawMessage) string {
	if !bytes.HasPrefix(value, []byte(`"`)) {
		return string(value) // numbers keep their spelling
	}
	spelled, _ := wire.Marshal(parsed[string](value)) // a string is JSON
	return string(spelled)
}
