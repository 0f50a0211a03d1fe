// Package snapshots says what a published version is: a numbered, complete and immutable set
// of variants, described by a manifest, of which a pointer names the current one. It holds
// everything that builders, edges and operators do with versions; it knows nothing of racing
// beyond the catalog.
//
// In the store:
//
//	current.json              the pointer, swapped
//	versions/<n>.json         a builder's claim on number n, created once
//	manifests/<n>.json        the manifest of version n, created once
//	objects/<n>/<path>.json   bodies first written in version n (+ .gz .br .zst), created once
package snapshots

import "time"

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
	Base          int64     `json:"base"` // the version it was built on; 0: none
	Builder       string    `json:"builder"`
	Reason        string    `json:"reason,omitzero"`
	BuiltAt       time.Time `json:"built_at"`        // race time
	DueAt         time.Time `json:"due_at,omitzero"` // race time at which the next status moves; overdue after it
	CurrentSeason int       `json:"current_season"`  // the default year
	Seasons       []int     `json:"seasons"`         // known years, ascending
	Archive       string    `json:"archive"`         // hex SHA-256 of the archive's bytes
	Ledger        Ledger    `json:"ledger"`          //
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

// Encoded is one stored content coding of an entry, under the entry's Object + "." + its
// name: gz, br or zst.
type Encoded struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}
