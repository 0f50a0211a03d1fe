package snapshots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/notes"
)

// A publisher with a version key signs a note about each version before the pointer moves. The note names the
// number, the hash of the manifest and the head of the ledger. The manifest names the hash of every object, so
// the note covers every byte of a version. A second note, fresh.note, says until when a version is current. The
// publisher signs it again without a new version. It also names the list of API keys, so that an edge notices a list
// that is kept from it.

const (
	noteFolder = "notes/"

	// LogFolder begins the paths of the public log of the ledger. A rollback keeps the log, because a log never goes back.
	LogFolder = "log/"

	// FreshKey is the store key of the note that says until when a version is current.
	FreshKey = "fresh.note"

	// FreshFor is how long a version is current after fresh.note was signed. It is longer than two
	// periods of FreshEvery, so that one failure makes no edge stale.
	FreshFor = 25 * time.Minute
	// FreshEvery is the period after which a scheduler signs fresh.note again.
	FreshEvery = 10 * time.Minute

	// askFreshAfter is the time after which a follower reads fresh.note again.
	askFreshAfter = 20 * time.Second
)

var (
	// ErrUnsigned means that no trusted key has signed a version.
	ErrUnsigned = errors.New("not signed by a trusted key")
	// ErrNoSigner means that a publisher lacks the key by which edges trust the versions of a store.
	ErrNoSigner = errors.New("the versions of this store are signed, so edges would refuse one without a signature; name the version key: --sign FILE")
	// ErrMovedBack means that the pointer names a lower version than this process has seen as current.
	ErrMovedBack = errors.New("the pointer was moved back to an earlier version")
)

// NoteKey is the store key of the signed note about a version.
func NoteKey(version int64) string { return fmt.Sprintf("%s%d", noteFolder, version) }

// IsNote reports whether key is that of a note about a version.
func IsNote(key string) bool { return strings.HasPrefix(key, noteFolder) }

// noteLines is the text of the note about a version, below its origin.
func noteLines(p Pointer, l Ledger) []string {
	return []string{
		fmt.Sprintf("version %d", p.Version), "manifest " + p.Manifest, fmt.Sprintf("ledger %s %d %s", l.Kind, l.Seq, l.Hash),
	}
}

// OpenNote verifies the note about the version that a pointer names. The ledger may be zero: then its line is not
// compared.
func OpenNote(trust notes.Trust, data []byte, p Pointer, l Ledger) (notes.Note, error) {
	n, err := trust.Open(data)
	if err != nil {
		return n, fmt.Errorf("version %d: %w: %w", p.Version, ErrUnsigned, err)
	}
	want, got := noteLines(p, l), n.Lines
	if l == (Ledger{}) && len(got) == len(want) {
		want, got = want[:2], got[:2]
	}
	if !slices.Equal(want, got) {
		return n, fmt.Errorf("version %d: %w: its note is about %s", p.Version, ErrUnsigned, strings.Join(n.Lines, ", "))
	}
	return n, nil
}

// ReadNote verifies the note about a version that is not known yet, and returns a pointer to that version.
func ReadNote(trust notes.Trust, data []byte) (Pointer, notes.Note, error) {
	n, err := trust.Open(data)
	if err != nil {
		return Pointer{}, n, fmt.Errorf("%w: %w", ErrUnsigned, err)
	}
	p := Pointer{Signed: true}
	if _, err := fmt.Sscanf(strings.Join(n.Lines, "\n"), "version %d\nmanifest %s\n", &p.Version, &p.Manifest); err != nil {
		return p, n, fmt.Errorf("%w: the note is about %s", ErrUnsigned, strings.Join(n.Lines, ", "))
	}
	_, err = OpenNote(trust, data, p, Ledger{})
	return p, n, err
}

// CheckNote returns ErrUnsigned unless a trusted key has signed a version of the store. It reads no document.
func CheckNote(ctx context.Context, store blob.Store, version int64, trust notes.Trust) error {
	o, err := store.Get(ctx, ManifestKey(version), maxManifest)
	if err != nil {
		return fmt.Errorf("version %d: %w", version, err)
	}
	data, err := readNote(ctx, store, NoteKey(version))
	if err == nil {
		_, err = OpenNote(trust, data, Pointer{Version: version, Manifest: Digest(o.Data)}, Ledger{})
	}
	return err
}

// readNote reads a note, or returns nil if there is none of a possible size.
func readNote(ctx context.Context, store blob.Store, key string) ([]byte, error) {
	o, err := store.Get(ctx, key, notes.MaxSize)
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrTooLarge) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return o.Data, nil
}

// sign signs the note about the version that next names, and returns it. It does nothing without a key.
func (p *Publisher) sign(ctx context.Context, next *Pointer, l Ledger) ([]byte, error) {
	if p.Signers == nil {
		return nil, nil
	}
	data, err := p.Signers.Sign(noteLines(*next, l)...)
	if err != nil {
		return nil, err
	}
	key := NoteKey(next.Version)
	if err := p.create(ctx, key, data); err != nil {
		return nil, err
	}
	next.Signed = true
	// If we crash here, a note remains about a version that was never current. Nobody uses its number again.
	return Object{key, Digest(data), int64(len(data))}.Read(ctx, p.Store)
}

// SignedByAll reports whether each of these keys has signed the base.
func (b *Base) SignedByAll(s *notes.Signers) bool {
	n, err := OpenNote(s.Trust(), b.note, b.Pointer, b.Manifest.Ledger)
	return err == nil && len(n.Keys) == len(s.Public())
}

// Freshen signs fresh.note again, for the current version. It does nothing without a key. It refuses a version
// that none of the keys has signed, and ErrMovedBack a lower version than it has seen, because somebody without
// a key may write the pointer. keys returns the text about the list of API keys, from the text of the note before. After
// an error of keys, Freshen signs that text again and returns the error. Nil keys keep the text.
func (p *Publisher) Freshen(ctx context.Context, keys func(ctx context.Context, before string) (string, error)) error {
	if p.Signers == nil {
		return nil
	}
	pointer, _, err := LoadPointer(ctx, p.Store)
	if err != nil {
		return fmt.Errorf("sign %s: %w", FreshKey, err)
	}
	data, err := readNote(ctx, p.Store, NoteKey(pointer.Version))
	if err == nil {
		_, err = OpenNote(p.Signers.Trust(), data, pointer, Ledger{})
	}
	if err == nil && !p.Signers.Advance(pointer.Version) {
		err = fmt.Errorf("version %d: %w", pointer.Version, ErrMovedBack)
	}
	if err != nil {
		return fmt.Errorf("sign %s: %w", FreshKey, err)
	}
	before, err := ReadFresh(ctx, p.Store, p.Signers.Trust())
	if err != nil && !errors.Is(err, ErrUnsigned) {
		return err
	}
	next, keysErr := Fresh{pointer, p.now().Add(FreshFor), before.Keys}, error(nil)
	if keys != nil {
		if next.Keys, keysErr = keys(ctx, before.Keys); keysErr != nil {
			next.Keys, keysErr = before.Keys, fmt.Errorf("sign %s again with its last text about the API keys: %w", FreshKey, keysErr)
		}
	}
	if data, err = p.Signers.Sign(next.lines()...); err == nil {
		_, err = blob.Put(ctx, p.Store, FreshKey, notes.MaxSize, data)
	}
	return errors.Join(err, keysErr)
}

// Fresh is the content of fresh.note.
type Fresh struct {
	Pointer Pointer   // to the current version
	Until   time.Time // Pointer is current until then
	Keys    string    // about the list of API keys, as keys.FreshText makes it; empty: the publisher has read none
}

// lines is the text of fresh.note, below its origin.
func (f Fresh) lines() []string {
	return []string{
		fmt.Sprintf("fresh %d", f.Pointer.Version), "manifest " + f.Pointer.Manifest,
		"good-until " + f.Until.UTC().Format(time.RFC3339), "keys " + f.Keys,
	}
}

// ReadFresh reads fresh.note and verifies it. A note that is missing, or that no trusted key has signed, is ErrUnsigned.
func ReadFresh(ctx context.Context, store blob.Store, trust notes.Trust) (Fresh, error) {
	data, err := readNote(ctx, store, FreshKey)
	if err != nil {
		return Fresh{}, err
	}
	n, err := trust.Open(data)
	if err != nil {
		return Fresh{}, fmt.Errorf("%s: %w: %w", FreshKey, ErrUnsigned, err)
	}
	var (
		f     Fresh
		until string
	)
	_, err = fmt.Sscanf(strings.Join(n.Lines, "\n"), "fresh %d\nmanifest %s\ngood-until %s\n", &f.Pointer.Version, &f.Pointer.Manifest, &until)
	at, timeErr := time.Parse(time.RFC3339, until)
	if f.Until = at; err == nil && timeErr == nil && len(n.Lines) == 4 {
		f.Keys = strings.TrimPrefix(n.Lines[3], "keys ")
	}
	if err != nil || timeErr != nil || !slices.Equal(n.Lines, f.lines()) {
		return Fresh{}, fmt.Errorf("%s: %w: it is about %s", FreshKey, ErrUnsigned, strings.Join(n.Lines, ", "))
	}
	return f, nil
}

// readSigned returns the note about the version that pointer names, and the keys that signed it. It refuses a version
// that no trusted key has signed, and one that is lower than its keys have signed before.
func (f *follower) readSigned(ctx context.Context, pointer Pointer) (data []byte, keys []string, err error) {
	reading, cancel := context.WithTimeoutCause(ctx, pointerTime, fmt.Errorf("no answer within %v", pointerTime))
	defer cancel()
	if data, err = readNote(reading, f.Store, NoteKey(pointer.Version)); err != nil {
		return nil, nil, err
	}
	n, err := OpenNote(f.Trust, data, pointer, Ledger{})
	if err == nil && f.Pin == 0 {
		err = unkept(pointer, f.Ratchet.Check(ctx, n.Keys, mark(pointer)))
	}
	return data, n.Keys, err
}

// unkept names the version in an error of the ratchet, if there is one.
func unkept(p Pointer, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, notes.ErrLower):
		return fmt.Errorf("version %d: %w", p.Version, err)
	}
	return fmt.Errorf("version %d: %w: %w", p.Version, ErrRatchet, err)
}

// mark is the content of the ratchet for a version.
func mark(p Pointer) notes.Mark { return notes.Mark{Number: p.Version, Content: p.Manifest} }

// freshen reads fresh.note now and then, and reports until when the delivered version is known to be current. The
// note counts for a later version too. If it is about a later version than the delivered one, it does not count.
func (f *follower) freshen(ctx context.Context) {
	if f.Trust.Empty() || f.current == nil || time.Since(f.askedFresh) < askFreshAfter && f.freshFor == f.current.Pointer.Version {
		return
	}
	reading, cancel := context.WithTimeout(ctx, pointerTime)
	defer cancel()
	f.askedFresh, f.freshFor = time.Now(), f.current.Pointer.Version
	fresh, err := ReadFresh(reading, f.Store, f.Trust)
	if err != nil || f.Fresh == nil {
		return // the poll reports a store that does not answer
	}
	served, named := f.current.Pointer, fresh.Pointer
	if f.Pin == 0 && (named.Version > served.Version || named.Version == served.Version && named.Manifest != served.Manifest) {
		fresh.Until = time.Time{}
	}
	f.Fresh(fresh)
}
