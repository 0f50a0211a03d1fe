// Package snapshots defines published versions. A version is a numbered, complete and immutable set of
// variants, described by a manifest; a pointer names the current one. The package has all operations of
// builders, edges and operators on versions, and knows nothing of racing.
//
// In the store:
//
//	current.json              the pointer, swapped
//	versions/<n>.json         a builder's claim on number n, created once
//	manifests/<n>.json.gz     the manifest of version n, created once
//	manifests/parts/…         entries that manifests share, as gzip, created once
//	derived/…                 documents that builders derive in advance, created once
//	objects/<n>/<path>.json   bodies first written in version n, larger ones as .json.gz, created once
//	deltas/<n>                all bodies first written in version n once more, in one object
//	notes/<n>                 the publisher's signed note about version n, created once before the pointer moves
//	fresh.note                a signed note that says until when a version is current, swapped
//
// A builder calls LoadBase, fills a Draft and calls Publisher.Publish; after ErrBaseChanged it starts over.
// An edge calls Follow and serves from the delivered Version. An operator has List, LoadManifest, Diff,
// Verify, Publisher.Rollback and Prune. Package backup copies a whole store and restores it.
//
// Three rules carry the rest. A number belongs for good to the builder that claimed it first. An object
// that is created once is never written again. Readers see a version only through the pointer, which is
// swapped last.
package snapshots

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/snapshots/blob"
)

var (
	// ErrNone means that nothing has been published in the store.
	ErrNone = errors.New("nothing published yet")
	// ErrDamaged means that the store holds other bytes than the published ones.
	ErrDamaged = errors.New("damaged")
	// ErrBuild means that a build of gridcast made the version in a format that this one cannot read.
	ErrBuild = errors.New("made by another build of gridcast")
	// ErrNoBase means that the current version cannot be read.
	ErrNoBase = errors.New("running edges go on with their version, but none can start from it; gridcast snapshots repair writes it again")
)

// Format is the only value of Manifest.Format that this program writes and reads. Update edges before
// builders when a release changes it, because an edge refuses a format that it does not know.
const Format = 5

// Size limits of objects, in bytes. The largest version of 75 seasons has a manifest of 0.2 MB
// and objects of less than that.
const (
	maxManifest = 16 << 20
	maxObject   = 256 << 20
	maxDelta    = 256 << 20
)

// maxVersion is the largest number of a version. Every reader of JSON can hold it.
const maxVersion = 1 << 53

// MaxGap limits the distance between the numbers of two successive versions. Builders that claim a number and
// die leave gaps, but never one that large.
const MaxGap = 1_000_000

// hashSize is the length of a hash in bytes.
const hashSize = sha256.Size

// Pointer is the content of current.json.
type Pointer struct {
	Version  int64     `json:"version"`
	Manifest string    `json:"manifest"` // lower-case hex SHA-256 of manifests/<version>.json.gz
	Held     bool      `json:"held,omitzero"`
	Reason   string    `json:"reason,omitzero"` // why it is held
	Signed   bool      `json:"signed,omitzero"` // notes/<version> is a signed note about it
	At       time.Time `json:"at"`              // real time of the swap
}

// equal compares two pointers, and their instants in any time zone.
func (p Pointer) equal(other Pointer) bool {
	at := p.At.Equal(other.At)
	p.At, other.At = time.Time{}, time.Time{}
	return at && p == other
}

// Manifest describes one version.
type Manifest struct {
	Format       int    `json:"format"` // 5
	Version      int64  `json:"version"`
	Base         int64  `json:"base"`                   // the version it was built on; 0: none
	BaseManifest string `json:"base_manifest,omitzero"` // hash of that version's manifest
	About
	RollbackOf int64  `json:"rollback_of,omitzero"`
	Parts      []Part `json:"parts,omitzero"`
	// Deltas are the deltas of which this version still has at least half of the bodies, by ascending
	// version, so that an edge without a copy needs few reads.
	Deltas  []Delta         `json:"deltas,omitzero"`
	Entries []ManifestEntry `json:"entries"` // by ascending path; in the store, those that differ from every part
}

// About is the builder's account of a version: its inputs, its instants and the facts that it lacks.
type About struct {
	Builder       string         `json:"builder"`                // host and process, for people
	Reason        string         `json:"reason,omitzero"`        // for people
	BuiltAt       time.Time      `json:"built_at"`               // race time
	Instant       time.Time      `json:"instant,omitzero"`       // race time of the documents; absent if it is BuiltAt
	DueAt         time.Time      `json:"due_at,omitzero"`        // race time at which the next status moves; overdue after it
	CurrentSeason int            `json:"current_season"`         // the season that the version looks ahead to
	DefaultYears  map[string]int `json:"default_years,omitzero"` // the default season of each endpoint with another one, by its name
	Seasons       []int          `json:"seasons"`                // known years, ascending
	Archive       string         `json:"archive"`                // hex SHA-256 of the archive's bytes
	Settings      string         `json:"settings,omitzero"`      // hex SHA-256 of the store's settings; empty: it has none
	Operator      Operator       `json:"operator,omitzero"`      // as edges name the operator to readers
	Release       string         `json:"release,omitzero"`       // of the program that rendered the documents
	Ledger        Ledger         `json:"ledger"`
	Live          string         `json:"live,omitzero"`    // hex SHA-256 of the head of the live log; empty: it has no entry
	Derived       string         `json:"derived,omitzero"` // key of the derived documents, below DerivedFolder
	DerivedFrom   Derivation     `json:"derived_from,omitzero"`
	Missing       []Missing      `json:"missing,omitzero"`  // facts that the archive lacks, or will lack before DueAt
	Refused       []RefusedEntry `json:"refused,omitzero"`  // entries that stay those of an earlier version because of a fault
	Expected      []Expected     `json:"expected,omitzero"` // seasons that are expected to change again, by ascending year
	// State describes the facts behind the version, for people. This package passes it on and does
	// not read it.
	State json.RawMessage `json:"state,omitzero"`
	// Clock is the race clock of the sandbox's simulated world, as RACE@REAL*SPEED of package clock. It is absent in the
	// real world.
	Clock   string   `json:"clock,omitzero"`
	Sandbox *Sandbox `json:"sandbox,omitzero"` // absent in the real world
}

// SandboxFolder is the prefix of the simulated world of a sandbox in the store of the real world. A version below it has
// the layout of any other.
const SandboxFolder = "sandbox/"

// Sandbox says which part of its timetable the simulated world replays in a version.
type Sandbox struct {
	Cycle   int64            `json:"cycle"`   // ascending, from 1; each cycle has a ledger of its own
	Weekend SandboxWeekend   `json:"weekend"` // that runs
	Next    []SandboxWeekend `json:"next"`    // that follow, in the order of their beginning
}

// SandboxWeekend is a weekend in the timetable of a sandbox.
type SandboxWeekend struct {
	Kind      string    `json:"kind"`       // its name in the table of kinds
	BeginsAt  time.Time `json:"begins_at"`  // real time
	EndsAt    time.Time `json:"ends_at"`    // real time
	LightsOut time.Time `json:"lights_out"` // real time
}

// Operator names the operator of the service to readers. The settings of the store have it, and edges show it. An empty field
// is not told.
type Operator struct {
	Address   string `json:"address,omitzero"`   // of the API: a scheme and a host
	Contact   string `json:"contact,omitzero"`   // an https address, or mailto: and a mail address
	Terms     string `json:"terms,omitzero"`     // https address of the terms of service
	Policy    string `json:"policy,omitzero"`    // https address of the policy for reports of vulnerabilities
	Languages string `json:"languages,omitzero"` // of those reports: tags of RFC 5646 with commas between
}

// Expected is the instant at which a season is next expected to change. If the instant is past, the change is
// late and may come at any moment.
type Expected struct {
	Year int       `json:"year"`
	At   time.Time `json:"at"` // race time
}

// Ledger is the head of the ledger that a version was built from. A reader that notes it can later prove a
// change of the record.
type Ledger struct {
	Kind string `json:"kind"` // "real" or "simulated"
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"` // lower-case hex SHA-256 of ledger/<seq>.json
}

// Derivation names the inputs of the derived documents of a version. They may be earlier inputs than those of the
// other documents, because builds do not wait for derived documents.
type Derivation struct {
	Archive string    `json:"archive"` // hex SHA-256
	Ledger  Ledger    `json:"ledger"`
	Model   string    `json:"model"`
	MadeAt  time.Time `json:"made_at"` // race time
}

// OverdueBy is how long a newer version has been due at an instant of race time; 0 if none is.
func (m *Manifest) OverdueBy(now time.Time) time.Duration {
	if m.DueAt.IsZero() {
		return 0
	}
	return max(now.Sub(m.DueAt), 0)
}

// DocumentsAt is the race time of the documents. A rollback is built later than its documents.
func (m *Manifest) DocumentsAt() time.Time {
	if m.Instant.IsZero() {
		return m.BuiltAt
	}
	return m.Instant
}

// Missing is a fact that the archive of a version should have and does not have.
type Missing struct {
	Code    string    `json:"code"`             // the kind of fact, for programs
	Since   time.Time `json:"since"`            // race time from which it is overdue, possibly after BuiltAt
	Until   time.Time `json:"until,omitzero"`   // race time until which it is awaited; zero: until it comes
	Session int64     `json:"session,omitzero"` // session key of its round; 0: none
	Urgent  bool      `json:"urgent,omitzero"`  // an operator has to act now
	Text    string    `json:"text"`             // for people, without a full stop
	Fix     string    `json:"mend"`             // the command that fixes it
}

// OverdueAt reports whether the fact is missing at an instant of race time.
func (m Missing) OverdueAt(t time.Time) bool {
	return !t.Before(m.Since) && (m.Until.IsZero() || t.Before(m.Until))
}

func (m Missing) equal(other Missing) bool {
	same := m.Since.Equal(other.Since) && m.Until.Equal(other.Until)
	m.Since, m.Until, other.Since, other.Until = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return same && m == other
}

// RefusedEntry is an entry that stays that of an earlier version, because the new document failed its check.
type RefusedEntry struct {
	Path    string `json:"path"`
	Version int64  `json:"version,omitzero"` // whose bytes the entry has; 0: no version has any, and the document is empty
	Reason  string `json:"reason"`           // for operators
}

// RefusedAt returns the refused entry of a path, false if the version has the document of its inputs.
func (m *Manifest) RefusedAt(path string) (RefusedEntry, bool) {
	if i := slices.IndexFunc(m.Refused, func(r RefusedEntry) bool { return r.Path == path }); i >= 0 {
		return m.Refused[i], true
	}
	return RefusedEntry{}, false
}

// String names the document that clients get, and the reason.
func (r RefusedEntry) String() string {
	got := "is empty"
	if r.Version > 0 {
		got = fmt.Sprintf("stays that of version %d", r.Version)
	}
	return fmt.Sprintf("%s %s, because the new one failed its check: %s", r.Path, got, r.Reason)
}

// ManifestEntry is one variant of a version.
type ManifestEntry struct {
	Path        string    `json:"path"`            // catalog path, such as standings/drivers/2026
	Object      string    `json:"object"`          // store key of the body
	SHA256      string    `json:"sha256"`          // lower-case hex, of the identity bytes
	Size        int64     `json:"size"`            // bytes, identity
	Packed      Packed    `json:"packed,omitzero"` // of the object, if it is the body as gzip; zero: the object is the body
	ETag        string    `json:"etag,omitzero"`   // without quotes and suffix; absent where the edge completes the body
	GeneratedAt time.Time `json:"generated_at,omitzero"`
}

// equal reports whether two entries stand for the same stored bytes under the same path.
func (e ManifestEntry) equal(other ManifestEntry) bool {
	at := e.GeneratedAt.Equal(other.GeneratedAt)
	e.GeneratedAt, other.GeneratedAt = time.Time{}, time.Time{}
	return at && e == other
}

// packed reports whether the object of the entry is the body as gzip.
func (e ManifestEntry) packed() bool { return e.Packed != Packed{} }

// WrittenIn returns the version that wrote the body of the entry.
func (e ManifestEntry) WrittenIn() int64 { return writtenIn(e.Object) }

func (e ManifestEntry) object() Object {
	if e.packed() {
		return Object{e.Object, e.Packed.SHA256, e.Packed.Size}
	}
	return Object{e.Object, e.SHA256, e.Size}
}

// writtenIn returns the version in which the object of an entry was first written, or 0.
func writtenIn(key string) int64 {
	_, rest, _ := strings.Cut(key, "/")
	number, _, _ := strings.Cut(rest, "/")
	version, _ := strconv.ParseInt(number, 10, 64)
	return version
}

// Read reads the identity and checks it.
func (e ManifestEntry) Read(ctx context.Context, store blob.Store) ([]byte, error) {
	data, err := e.object().Read(ctx, store)
	if err == nil && e.packed() {
		data, err = e.unpack(data)
	}
	return data, err
}

// Objects returns every object that the version is made of, except its manifest: parts of the manifest,
// deltas, then the objects of the entries.
func (m *Manifest) Objects() []Object {
	objects := make([]Object, 0, len(m.Parts)+len(m.Deltas)+len(m.Entries))
	for _, part := range m.Parts {
		objects = append(objects, part.object())
	}
	for _, d := range m.Deltas {
		objects = append(objects, d.object())
	}
	for _, e := range m.Entries {
		objects = append(objects, e.object())
	}
	return objects
}

// Object is one object that a manifest names.
type Object struct {
	Key    string
	SHA256 string // lower-case hex
	Size   int64  // bytes
}

// check returns an error unless the object has an allowed key, a hash, and a size up to the limit.
func (o Object) check(limit int64) error {
	switch {
	case len(o.SHA256) != 2*hashSize:
		return fmt.Errorf("%s: %q is no hash", o.Key, o.SHA256)
	case o.Size < 0 || o.Size > limit:
		return fmt.Errorf("%s: size %d: want 0 to %d bytes", o.Key, o.Size, limit)
	}
	return blob.CheckKey(o.Key)
}

// Packed describes the object of an entry that is stored as gzip.
type Packed struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// check returns an error unless the manifest is a valid one of version.
func (m *Manifest) check(version int64) error {
	switch {
	case m.Version != version:
		return fmt.Errorf("it is of version %d", m.Version)
	case m.Version > maxVersion:
		return fmt.Errorf("version %d, want at most %d", m.Version, int64(maxVersion))
	case m.Base >= m.Version:
		return fmt.Errorf("based on version %d, which is no earlier one", m.Base)
	case len(m.Entries) == 0:
		return errors.New("no entries")
	case !slices.IsSortedFunc(m.Entries, byAscendingPath):
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
	for _, d := range m.Deltas {
		if d.Version < 1 || d.Bodies < 2 {
			return fmt.Errorf("a delta of version %d with %d bodies is impossible", d.Version, d.Bodies)
		}
		if err := d.object().check(maxDelta); err != nil {
			return fmt.Errorf("delta: %w", err)
		}
	}
	return nil
}

func (e ManifestEntry) check() error {
	if err := cmp.Or(e.object().check(maxObject), Object{e.Object, e.SHA256, e.Size}.check(maxObject)); err != nil {
		return err
	}
	if e.ETag != "" && e.ETag != ETag(e.SHA256) {
		return fmt.Errorf("tag %q is not that of the bytes", e.ETag)
	}
	return nil
}

// PointerKey is the store key of the pointer.
const PointerKey = "current.json"

// The content codings. Their names end object keys.
const (
	GZ  = "gz"
	BR  = "br"
	ZST = "zst"
)

const (
	claimFolder    = "versions/"
	manifestFolder = "manifests/"
	objectFolder   = "objects/"
	deltaFolder    = "deltas/"
)

// DerivedFolder holds documents that builders derive in advance, each file created once. A manifest names the
// file that it was built with. Edges do not read it.
const DerivedFolder = "derived/"

// MaxDerived is the limit of a derived file, packed, in bytes. All seasons take 50,000.
const MaxDerived = 16 << 20

// SharedFolder holds parts of derived documents that several of them share.
const SharedFolder = DerivedFolder + "parts/"

func claimKey(version int64) string { return fmt.Sprintf("%s%d.json", claimFolder, version) }

// ManifestKey is the store key of a version's manifest.
func ManifestKey(version int64) string {
	return fmt.Sprintf("%s%d.json.%s", manifestFolder, version, GZ)
}

// ObjectKey is the store key of a body that is first written in version.
func ObjectKey(version int64, path string) string {
	return objectsOf(version) + path + ".json"
}

// objectsOf is the folder of the bodies that are first written in version.
func objectsOf(version int64) string { return fmt.Sprintf("%s%d/", objectFolder, version) }

// Immutable reports whether key is created once and never replaced. That holds for claims, manifests, notes, objects,
// deltas, archives, and the files of the ledger, the audit log and the facts; not for the pointer, the
// keys and the settings.
func Immutable(key string) bool {
	return OfVersion(key) || within(key, []string{"archives/", "ledger/", "audit/", "facts/log/", "facts/hand/"})
}

// OfVersion reports whether key belongs to a version: a claim, a manifest, a note, an object or a delta.
func OfVersion(key string) bool {
	return within(key, []string{claimFolder, manifestFolder, noteFolder, objectFolder, deltaFolder})
}

func within(key string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(key, folder) })
}

// versionIn returns the number in a key such as versions/12.json, given its folder.
func versionIn(key, folder string) (int64, bool) {
	suffix := ".json"
	switch folder {
	case manifestFolder:
		suffix += "." + GZ
	case noteFolder:
		suffix = ""
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(key, folder), ".")
	version, _ := strconv.ParseInt(number, 10, 64) // of another text it is 0 or beyond the limits
	return version, 0 < version && version <= maxVersion && key == folder+strconv.FormatInt(version, 10)+suffix
}

// Digest returns the lower-case hex SHA-256 of data, as manifests and pointers hold it.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// etagDigits is 128 bits of the hash: no two bodies of a service will ever share them.
const etagDigits = 32

// ETag returns the entity tag of a body with the given Digest, without quotes: its first 32
// digits, so that a person can find the tag of a response in the manifest.
func ETag(digest string) string { return digest[:etagDigits] }

// Base is the current version when a build starts. A publish succeeds only if it still is the current one. A
// Base is immutable.
type Base struct {
	Pointer  Pointer  // zero if nothing was published
	Manifest Manifest // zero if nothing was published

	// Damage is the reason why the base lacks documents that the version has; nil: it has all. Publish then publishes
	// another version even if nothing else has changed.
	Damage error
	// Repaired are the faults of files that were written again as they were, for people.
	Repaired []string

	tag    blob.Tag
	store  blob.Store
	stored stored
	note   []byte // about the version; nil: there is none
}

// LoadBase reads the pointer and the manifest it names, for readers: a publisher has [Publisher.LoadBase]. An empty store is no error but a
// base of version 0. A pointer or manifest with other bytes than the published ones is ErrDamaged, and like a
// missing manifest also ErrNoBase.
//
// previous may be nil. It is an earlier base of the same store, of which LoadBase reads nothing again:
// if the pointer has not changed, LoadBase returns previous after one read.
func LoadBase(ctx context.Context, store blob.Store, previous *Base) (*Base, error) {
	if previous == nil {
		previous = &Base{store: store}
	}
	pointer, tag, err := LoadPointer(ctx, store)
	switch {
	case errors.Is(err, ErrNone):
		return &Base{store: store}, nil
	case err == nil && pointer.equal(previous.Pointer) && tag == previous.tag:
		return previous, nil
	}
	var base *Base
	if err == nil {
		base, err = previous.next(ctx, pointer, tag, previous.stored)
	}
	if errors.Is(err, ErrDamaged) || errors.Is(err, blob.ErrNotFound) {
		err = fmt.Errorf("%w: %w", err, ErrNoBase)
	}
	return base, err
}

// next returns the base that the pointer with the tag names. It does not read the files in known.
func (b *Base) next(ctx context.Context, pointer Pointer, tag blob.Tag, known stored) (*Base, error) {
	manifest, files, err := loadManifest(ctx, pointer.Version, pointer.Manifest, known, b.store)
	if err != nil {
		return nil, err
	}
	pointer.Manifest = Digest(files.files[ManifestKey(pointer.Version)])
	next := &Base{Pointer: pointer, Manifest: manifest, tag: tag, store: b.store, stored: files}
	if next.note = known.files[NoteKey(pointer.Version)]; pointer.Signed && next.note == nil {
		if next.note, err = readNote(ctx, b.store, NoteKey(pointer.Version)); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// Empty reports whether nothing was published before.
func (b *Base) Empty() bool { return b.Pointer.Version == 0 }

// Entry returns the base's entry for a catalog path.
func (b *Base) Entry(path string) (ManifestEntry, bool) {
	return entryOf(b.Manifest.Entries, path)
}

// Keeps returns the version whose bytes clients keep for a path if its new document is refused: the base, or
// the one that an earlier refusal names. It is 0 if no version has any.
func (b *Base) Keeps(path string) int64 {
	if r, ok := b.Manifest.RefusedAt(path); ok {
		return r.Version
	}
	if _, ok := b.Entry(path); !ok {
		return 0
	}
	return b.Pointer.Version
}

// Body reads the identity bytes of an entry, of the base or of another version of its store, and checks
// them against its hash.
func (b *Base) Body(ctx context.Context, e ManifestEntry) ([]byte, error) {
	return e.Read(ctx, b.store)
}

// LoadPointer reads the pointer, or returns ErrNone; one that cannot be read as a pointer is
// ErrDamaged, with the tag to swap it by.
func LoadPointer(ctx context.Context, store blob.Store) (Pointer, blob.Tag, error) {
	o, err := store.Get(ctx, PointerKey, blob.MaxDocument)
	if errors.Is(err, blob.ErrNotFound) {
		return Pointer{}, "", fmt.Errorf("pointer in %s: %w", store, ErrNone)
	}
	if errors.Is(err, blob.ErrTooLarge) {
		return Pointer{}, "", fmt.Errorf("pointer: %w: %w", ErrDamaged, err)
	}
	if err != nil {
		return Pointer{}, "", fmt.Errorf("read pointer: %w", err)
	}
	pointer, err := parsePointer(o.Data)
	return pointer, o.Tag, err
}

func parsePointer(data []byte) (Pointer, error) {
	var p Pointer
	if err := json.Unmarshal(data, &p); err != nil {
		return Pointer{}, fmt.Errorf("pointer %s: %w: %w", PointerKey, ErrDamaged, err)
	}
	if p.Version < 1 || p.Version > maxVersion || len(p.Manifest) != 2*hashSize {
		return Pointer{}, fmt.Errorf("pointer %s: %w: version %d, manifest %q", PointerKey, ErrDamaged, p.Version, p.Manifest)
	}
	return p, nil
}

// Read reads the object and compares it with the hash and the size. It never reads more than the size.
func (o Object) Read(ctx context.Context, store blob.Store) ([]byte, error) {
	stored, err := store.Get(ctx, o.Key, o.Size)
	if errors.Is(err, blob.ErrTooLarge) {
		return nil, fmt.Errorf("object %s: %w: manifest says %d bytes: %w", o.Key, ErrDamaged, o.Size, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	if got := Digest(stored.Data); got != o.SHA256 || int64(len(stored.Data)) != o.Size {
		return nil, fmt.Errorf("object %s: %w: %d bytes of hash %s, manifest says %d of %s",
			o.Key, ErrDamaged, len(stored.Data), got, o.Size, o.SHA256)
	}
	return stored.Data, nil
}
