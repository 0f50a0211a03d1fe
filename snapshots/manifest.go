// Package snapshots says what a published version is: a numbered, complete and immutable set
// of variants, described by a manifest, of which a pointer names the current one. It holds
// everything that builders, edges and operators do with versions, and knows nothing of racing.
//
// In the store:
//
//	current.json              the pointer, swapped
//	versions/<n>.json         a builder's claim on number n, created once
//	manifests/<n>.json        the manifest of version n, created once
//	objects/<n>/<path>.json   bodies first written in version n (+ .gz .br .zst), created once
//
// A builder calls LoadBase, fills a Draft and hands it to Publisher.Publish, and starts over
// when that says ErrBaseChanged. An edge calls Follow and serves from the Version it is given.
// An operator has List, LoadManifest, Diff, Verify, Publisher.Rollback and Prune.
//
// Three rules carry the rest. A number belongs to the builder that claimed it first, and to
// nobody after it. What is created once is never written again. Readers see a version only
// through the pointer, which is swapped last.
package snapshots

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gridcast/snapshots/blob"
)

// format is the Manifest.Format that this program writes and reads.
const format = 1

// Limits of what is read, in bytes. The largest version of 75 seasons has a manifest of 0.2 MB
// and objects of less than that.
const (
	maxManifest = 16 << 20
	maxObject   = 256 << 20
)

// hashSize is the length of a hash in bytes.
const hashSize = sha256.Size

// Pointer is the content of current.json.
type Pointer struct {
	Version  int64     `json:"version"`
	Manifest string    `json:"manifest"` // lower-case hex SHA-256 of manifests/<version>.json
	Held     bool      `json:"held,omitzero"`
	Reason   string    `json:"reason,omitzero"` // why it is held
	At       time.Time `json:"at"`              // real time of the swap
}

// Manifest describes one version.
type Manifest struct {
	Format        int       `json:"format"` // 1
	Version       int64     `json:"version"`
	Base          int64     `json:"base"`                   // the version it was built on; 0: none
	BaseManifest  string    `json:"base_manifest,omitzero"` // hash of that version's manifest
	Builder       string    `json:"builder"`
	Reason        string    `json:"reason,omitzero"`
	BuiltAt       time.Time `json:"built_at"`        // race time
	DueAt         time.Time `json:"due_at,omitzero"` // race time at which the next status moves; overdue after it
	CurrentSeason int       `json:"current_season"`  // the default year
	Seasons       []int     `json:"seasons"`         // known years, ascending
	Archive       string    `json:"archive"`         // hex SHA-256 of the archive's bytes
	Ledger        Ledger    `json:"ledger"`
	RollbackOf    int64     `json:"rollback_of,omitzero"`
	Entries       []Entry   `json:"entries"` // by ascending path
}

// Ledger is the head of the ledger a version was built from. Whoever noted it can hold the
// service to it later.
type Ledger struct {
	Kind string `json:"kind"` // "real" or "simulated"
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"` // lower-case hex SHA-256 of ledger/<seq>.json
}

// Entry is one variant of a version.
type Entry struct {
	Path        string             `json:"path"`   // catalog path, such as standings/drivers/2026
	Object      string             `json:"object"` // store key of the identity bytes
	SHA256      string             `json:"sha256"` // lower-case hex, of the identity bytes
	Size        int64              `json:"size"`   // bytes, identity
	Encodings   map[string]Encoded `json:"encodings,omitzero"`
	ETag        string             `json:"etag,omitzero"` // without quotes and suffix; absent where the edge completes the body
	GeneratedAt time.Time          `json:"generated_at,omitzero"`
}

// equal says whether two entries stand for the same stored bytes under the same path.
func (e Entry) equal(other Entry) bool {
	return e.Path == other.Path && e.Object == other.Object && e.SHA256 == other.SHA256 && e.Size == other.Size &&
		e.ETag == other.ETag && e.GeneratedAt.Equal(other.GeneratedAt) && maps.Equal(e.Encodings, other.Encodings)
}

func (e Entry) identity() storedObject { return storedObject{e.Object, e.SHA256, e.Size} }

// stored yields every object of the entry: its key, hash and size.
func (e Entry) stored() []storedObject {
	objects := []storedObject{e.identity()}
	for _, coding := range Codings {
		if encoded, ok := e.Encodings[coding]; ok {
			objects = append(objects, storedObject{EncodedKey(e.Object, coding), encoded.SHA256, encoded.Size})
		}
	}
	return objects
}

// storedObject is one object that a manifest names.
type storedObject struct {
	key    string
	sha256 string
	size   int64
}

// Encoded is one stored content coding of an entry, under the entry's Object + "." + its
// name: gz, br or zst.
type Encoded struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// check reports what makes the manifest unusable as that of version.
func (m *Manifest) check(version int64) error {
	switch {
	case m.Format != format:
		return fmt.Errorf("format %d, want %d: written by another release", m.Format, format)
	case m.Version != version:
		return fmt.Errorf("it is of version %d", m.Version)
	case m.Base >= m.Version:
		return fmt.Errorf("based on version %d, which is no earlier one", m.Base)
	case len(m.Entries) == 0:
		return errors.New("no entries")
	case !slices.IsSortedFunc(m.Entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) }):
		return errors.New("entries are not in order of their paths")
	}
	for i, e := range m.Entries {
		if i > 0 && m.Entries[i-1].Path == e.Path {
			return fmt.Errorf("two entries for %s", e.Path)
		}
		if err := e.check(); err != nil {
			return fmt.Errorf("entry %s: %w", e.Path, err)
		}
	}
	return nil
}

func (e Entry) check() error {
	for coding := range e.Encodings {
		if !slices.Contains(Codings, coding) {
			return fmt.Errorf("unknown coding %q", coding)
		}
	}
	for _, object := range e.stored() {
		if err := blob.CheckKey(object.key); err != nil {
			return err
		}
		if len(object.sha256) != 2*hashSize {
			return fmt.Errorf("%s: %q is no hash", object.key, object.sha256)
		}
		if object.size < 0 || object.size > maxObject {
			return fmt.Errorf("%s: size %d, want 0 to %d bytes", object.key, object.size, int64(maxObject))
		}
	}
	if e.ETag != "" && e.ETag != ETag(e.SHA256) {
		return fmt.Errorf("tag %q is not that of the bytes", e.ETag)
	}
	return nil
}
