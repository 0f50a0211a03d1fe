package snapshots

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gridcast/snapshots/blob"
)

// Draft is a complete version that a builder wants to publish, made from a base.
type Draft struct {
	Base *Base // from Publisher.LoadBase
	About
	Variants []Variant // every variant of the version, in any order
	EndHold  bool      // publish although the pointer is held, and end the hold
}

// Variant is one variant of a draft: bytes, or an entry of the base. Make it with New or Reused.
type Variant struct {
	entry  ManifestEntry
	reused bool
	data   []byte // of the object
}

// Reused is a variant whose stored bytes are those of an entry of the base.
func Reused(e ManifestEntry) Variant { return Variant{entry: e, reused: true} }

// New is a variant with new bytes. packed has the same bytes as gzip, from Pack. The store gets packed, or identity if
// packed is nil; a variant without packed has no codings. New copies nothing, so the slices must not change until
// Publish has returned. If the base has the same bytes under the path, Publish keeps the base's entry with its
// generatedAt.
func New(path string, identity, packed []byte, generatedAt time.Time) Variant {
	digest := Digest(identity)
	v := Variant{data: identity, entry: ManifestEntry{
		Path: path, SHA256: digest, Size: int64(len(identity)), ETag: ETag(digest), GeneratedAt: generatedAt,
	}}
	if packed != nil {
		v.data, v.entry.Packed = packed, Packed{SHA256: Digest(packed), Size: int64(len(packed))}
	}
	return v
}

// Unfinished is a variant that the edge completes for every request. It has no codings, no tag and no
// generated_at.
func Unfinished(path string, data []byte) Variant {
	v := New(path, data, nil, time.Time{})
	v.entry.ETag = ""
	return v
}

// objectKey is the store key of the variant if it is new in a version.
func (v Variant) objectKey(version int64) string {
	key := ObjectKey(version, v.Path())
	if v.entry.packed() {
		key += "." + GZ
	}
	return key
}

// Path returns the catalog path of the variant.
func (v Variant) Path() string { return v.entry.Path }

// Entry returns the manifest entry of the variant. That of new bytes has no object key yet.
func (v Variant) Entry() ManifestEntry { return v.entry }

// validate returns an error unless the draft is a complete version.
func (d *Draft) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if len(d.Variants) == 0 {
		fault("draft without variants")
	}
	if d.BuiltAt.IsZero() {
		fault("draft without the time it was built at")
	}
	if d.Ledger.Kind == "" {
		fault("draft does not say whether its ledger is real or simulated")
	}
	if !slices.IsSorted(d.Seasons) || !slices.Contains(d.Seasons, d.CurrentSeason) {
		fault("current season %d is not among the seasons %v, or they are out of order", d.CurrentSeason, d.Seasons)
	}
	for name, year := range d.DefaultYears {
		if !slices.Contains(d.Seasons, year) {
			fault("the default season %d of %s is not among the seasons %v", year, name, d.Seasons)
		}
	}
	seen := make(map[string]bool, len(d.Variants))
	for _, v := range d.Variants {
		path := v.Path()
		if seen[path] {
			fault("variant %s twice", path)
		}
		seen[path] = true
		if err := blob.CheckKey(path); err != nil {
			fault("variant %q: %w", path, err)
		}
		if e, ok := d.Base.Entry(path); v.reused && (!ok || !e.equal(v.entry)) {
			fault("variant %s reuses an entry that base %d does not have", path, d.Base.Pointer.Version)
		}
	}
	return errors.Join(faults...)
}

// resolve sorts the variants. It replaces new bytes that equal the base's by the base's entry.
func (d *Draft) resolve() []Variant {
	variants := slices.Clone(d.Variants)
	slices.SortFunc(variants, func(a, b Variant) int { return strings.Compare(a.entry.Path, b.entry.Path) })
	for i := range variants {
		v := &variants[i]
		if e, ok := d.Base.Entry(v.Path()); ok && e.SHA256 == v.entry.SHA256 && (e.ETag == "") == (v.entry.ETag == "") {
			*v = Reused(e)
		}
	}
	return variants
}

// manifest returns the manifest of the draft under a claimed number.
func (d *Draft) manifest(version int64, variants []Variant) Manifest {
	base := d.Base
	m := Manifest{
		Version: version, Base: base.Pointer.Version, BaseManifest: base.Pointer.Manifest, About: d.About,
		Parts: base.Manifest.Parts, Entries: make([]ManifestEntry, 0, len(variants)),
	}
	for _, v := range variants {
		e := v.entry
		if !v.reused {
			e.Object = v.objectKey(version)
		}
		m.Entries = append(m.Entries, e)
	}
	m.Deltas = worthReading(base.Manifest.Deltas, m.Entries)
	return m
}

// changes reports whether the draft differs from its base for a reader, or ends a hold. Time, builder, reason,
// release and settings do not count, because equal documents need no other version.
func (d *Draft) changes(variants []Variant) bool {
	base := &d.Base.Manifest
	if d.Base.Empty() || d.Base.Pointer.Held || len(variants) != len(base.Entries) {
		return true
	}
	for _, v := range variants {
		if !v.reused {
			return true
		}
	}
	return d.Clock != base.Clock || d.CurrentSeason != base.CurrentSeason || !maps.Equal(d.DefaultYears, base.DefaultYears) || !slices.Equal(d.Seasons, base.Seasons) ||
		d.Archive != base.Archive || d.Ledger != base.Ledger || !d.DueAt.Equal(base.DueAt) ||
		!slices.EqualFunc(d.Missing, base.Missing, Missing.equal) || !slices.Equal(d.Refused, base.Refused) || !bytes.Equal(d.State, base.State) ||
		!slices.EqualFunc(d.Expected, base.Expected, func(x, y Expected) bool { return x.Year == y.Year && x.At.Equal(y.At) })
}

// OfCycle returns the base of a version in a cycle of the sandbox. The first version of a cycle follows the last one of the
// cycle before in its number alone, because facts, ledger and time begin anew. The error says that the base belongs to a later
// cycle.
func (b *Base) OfCycle(cycle int64) (*Base, error) {
	had := b.Manifest.Sandbox
	switch {
	case had != nil && had.Cycle > cycle:
		return nil, fmt.Errorf("%w: version %d is of cycle %d of the sandbox, this builder is in cycle %d", ErrMayNotFollow, b.Pointer.Version, had.Cycle, cycle)
	case had != nil && had.Cycle == cycle:
		return b, nil
	}
	anew := *b
	anew.Manifest = Manifest{Version: b.Manifest.Version}
	return &anew, nil
}

// mayPublish returns ErrHeld if publishing is held, and ErrMayNotFollow if the draft would lose something that its base has
// published, or go back in time.
func (d *Draft) mayPublish() error {
	if at := d.Base.Pointer; at.Held && !d.EndHold {
		return fmt.Errorf("version %d: %w: %s; gridcast build --release --reason WHY ends the hold", at.Version, ErrHeld, at.Reason)
	}
	base := &d.Base.Manifest // zero if nothing was published
	var faults []error
	if d.BuiltAt.Before(base.BuiltAt) {
		faults = append(faults, fmt.Errorf("built at %s, before version %d of %s",
			d.BuiltAt.Format(time.RFC3339), base.Version, base.BuiltAt.Format(time.RFC3339)))
	}
	for _, year := range base.Seasons {
		if !slices.Contains(d.Seasons, year) {
			faults = append(faults, fmt.Errorf("season %d of version %d is missing", year, base.Version))
		}
	}
	switch {
	case base.Ledger == Ledger{}: // nothing was published, or no manifest can be read
	case d.Ledger.Kind != base.Ledger.Kind:
		faults = append(faults, fmt.Errorf("ledger is %s, that of version %d is %s", d.Ledger.Kind, base.Version, base.Ledger.Kind))
	case d.Ledger.Seq < base.Ledger.Seq:
		faults = append(faults, fmt.Errorf("ledger ends at %d, version %d has seen %d", d.Ledger.Seq, base.Version, base.Ledger.Seq))
	case d.Ledger.Seq == base.Ledger.Seq && d.Ledger.Hash != base.Ledger.Hash:
		faults = append(faults, fmt.Errorf("ledger file %d is another than the one version %d has seen", d.Ledger.Seq, base.Version))
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrMayNotFollow, errors.Join(faults...))
}
