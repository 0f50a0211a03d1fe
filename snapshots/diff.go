package snapshots

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/gzip"

	"gridcast/schemas/ordered"
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

// Diff compares the content of two versions; 0 stands for the current one. Differences come by
// ascending path. If bodies differ only in the time of rendering, their difference has no values.
func Diff(ctx context.Context, store blob.Store, from, to int64) ([]Difference, error) {
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
	var changes []Difference
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		x, inA := before[path]
		y, inB := after[path]
		switch {
		case !inA:
			changes = append(changes, Difference{Path: path, Kind: Added})
		case !inB:
			changes = append(changes, Difference{Path: path, Kind: Removed})
		case x.SHA256 != y.SHA256:
			values, err := diffBodies(ctx, store, x, y)
			if err != nil {
				return nil, fmt.Errorf("diff of %s: %w", path, err)
			}
			changes = append(changes, Difference{Path: path, Kind: Changed, Values: values})
		}
	}
	return changes, nil
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
		if o, err = store.Get(ctx, e.Object, maxObject); err == nil {
			stored = o.Data
			if z, zipErr := gzip.NewReader(bytes.NewReader(stored)); e.packed() && zipErr == nil {
				if stored, zipErr = io.ReadAll(io.LimitReader(z, maxObject)); zipErr != nil {
					stored = o.Data
				}
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
	old, err := parseValue(before)
	if err != nil {
		return []ValueChange{{At: notJSON, Old: excerpt(before), New: excerpt(after)}}
	}
	fresh, err := parseValue(after)
	if err != nil {
		return []ValueChange{{At: notJSON, Old: excerpt(before), New: excerpt(after)}}
	}
	d := valueDiff{all: all}
	d.compare("", old, fresh)
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

// A value is JSON with the order of its members: members for an object, []any for an array, and
// json.RawMessage for any other value.
type (
	members = ordered.Object[any]
	member  = ordered.Member[any]
)

// parseValue reads a body that is one JSON value.
func parseValue(data []byte) (any, error) {
	switch data = bytes.TrimSpace(data); {
	case bytes.HasPrefix(data, []byte{'{'}):
		var raw ordered.Object[json.RawMessage]
		if err := json.Unmarshal(data, &raw); err != nil {
			return nil, err
		}
		object := make(members, len(raw))
		for i, m := range raw {
			value, err := parseValue(m.Value)
			if err != nil {
				return nil, err
			}
			object[i] = member{Name: m.Name, Value: value}
		}
		return object, nil
	case bytes.HasPrefix(data, []byte{'['}):
		var raw []json.RawMessage
		if err := json.Unmarshal(data, &raw); err != nil {
			return nil, err
		}
		array := make([]any, len(raw))
		for i := range raw {
			value, err := parseValue(raw[i])
			if err != nil {
				return nil, err
			}
			array[i] = value
		}
		return array, nil
	}
	var text string
	if json.Unmarshal(data, &text) != nil || bytes.Equal(data, []byte("null")) { // numbers keep their spelling
		return json.RawMessage(data), json.Unmarshal(data, new(any))
	}
	var spelled bytes.Buffer // one spelling for all ways to escape
	encoder := json.NewEncoder(&spelled)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(text)
	return json.RawMessage(bytes.TrimSpace(spelled.Bytes())), err
}

// identities are the members that identify the elements of an array; the first that fits is used. With
// them, a driver that moves up in the standings is one change of position, not a change of every row.
var identities = []string{"session_key", "driver", "round", "team", "name"}

// renderedAt is left out of a comparison of versions: it differs whenever another value does.
const renderedAt = "meta.generated_at"

// valueDiff collects the differences of two values.
type valueDiff struct {
	changes []ValueChange
	all     bool // compare renderedAt too
}

func (d *valueDiff) compare(at string, old, new any) {
	if at == renderedAt && !d.all {
		return
	}
	switch o := old.(type) {
	case members:
		if n, ok := new.(members); ok {
			d.compareObjects(at, o, n)
			return
		}
	case []any:
		if n, ok := new.([]any); ok {
			d.compareArrays(at, o, n)
			return
		}
	}
	if before, after := textOf(old), textOf(new); before != after {
		d.changes = append(d.changes, ValueChange{At: at, Old: before, New: after})
	}
}

func (d *valueDiff) compareObjects(at string, old, new members) {
	for _, m := range old {
		value, _ := new.Get(m.Name)
		d.compare(join(at, m.Name), m.Value, value)
	}
	for _, m := range new {
		if _, ok := old.Get(m.Name); !ok {
			d.compare(join(at, m.Name), nil, m.Value)
		}
	}
}

func (d *valueDiff) compareArrays(at string, old, new []any) {
	for _, identity := range identities {
		before, ok := index(old, identity)
		after, also := index(new, identity)
		if ok && also {
			d.compareRows(at, identity, before, after)
			return
		}
	}
	for i := range max(len(old), len(new)) {
		d.compare(fmt.Sprintf("%s[%d]", at, i), element(old, i), element(new, i))
	}
}

func (d *valueDiff) compareRows(at, identity string, old, new members) {
	for _, row := range old {
		value, _ := new.Get(row.Name)
		d.compare(fmt.Sprintf("%s[%s=%s]", at, identity, row.Name), row.Value, value)
	}
	for _, row := range new {
		if _, ok := old.Get(row.Name); !ok {
			d.compare(fmt.Sprintf("%s[%s=%s]", at, identity, row.Name), nil, row.Value)
		}
	}
}

// index names the elements of an array by a member. All must have the member, each with another value.
func index(array []any, identity string) (members, bool) {
	rows := make(members, 0, len(array))
	for _, value := range array {
		object, ok := value.(members)
		if !ok {
			return nil, false
		}
		id, ok := object.Get(identity)
		if !ok {
			return nil, false
		}
		rows = append(rows, member{Name: unquoted(id), Value: value})
	}
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row.Name
	}
	slices.Sort(names)
	return rows, len(slices.Compact(names)) == len(rows)
}

func element(array []any, i int) any {
	if i < len(array) {
		return array[i]
	}
	return nil
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// textOf returns a value as JSON; empty for a missing value.
func textOf(value any) string {
	switch v := value.(type) {
	case json.RawMessage:
		return string(v)
	case []any:
		return list('[', len(v), ']', func(i int) string { return textOf(v[i]) })
	case members:
		return list('{', len(v), '}', func(i int) string { return fmt.Sprintf("%q:%s", v[i].Name, textOf(v[i].Value)) })
	}
	return ""
}

func list(open byte, n int, end byte, element func(int) string) string {
	text := []byte{open}
	for i := range n {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, element(i)...)
	}
	return string(append(text, end))
}

func unquoted(value any) string {
	text := textOf(value)
	var s string
	if json.Unmarshal([]byte(text), &s) == nil {
		return s
	}
	return text
}
