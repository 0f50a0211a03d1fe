package builder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/snapshots/blob"
)

// StoredArchive is an archive and the sum of the file it was read from.
type StoredArchive struct {
	Archive *season.Archive
	SHA256  string // lower-case hex, of the file
}

const (
	factsKey    = "archive.json"
	factsFolder = "archives/"
)

// MaxArchive is the size of the largest archive file that is stored and read, in bytes. All
// seasons take 1 % of it.
const MaxArchive = 64 << 20

// factsInUse is the content of archive.json.
type factsInUse struct {
	SHA256 string `json:"sha256"`
	Source string `json:"source"` // for people
}

// ArchiveStore keeps the archive that all builders of a store build from. It is safe for
// concurrent use.
type ArchiveStore struct {
	store blob.Store

	mu     sync.Mutex
	loaded StoredArchive // the last that was read
}

// NewArchiveStore returns the archive's place in a store.
func NewArchiveStore(store blob.Store) *ArchiveStore { return &ArchiveStore{store: store} }

// Load returns the archive in use; the error wraps blob.ErrNotFound if the store has none. An
// archive that is still in use is not read again.
func (f *ArchiveStore) Load(ctx context.Context) (StoredArchive, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	inUse, _, err := f.inUse(ctx)
	if err != nil {
		return StoredArchive{}, err
	}
	if f.loaded.SHA256 == inUse.SHA256 {
		return f.loaded, nil
	}
	facts, err := loadFacts(ctx, f.store, inUse.SHA256)
	if err != nil {
		return StoredArchive{}, err
	}
	f.loaded = facts
	return facts, nil
}

// Vouch tells the ledger which results stood in the archive that it was opened on: see
// ledger.State.Vouches. A store that no longer has that archive is taken as one that never
// recorded it.
func (f *ArchiveStore) Vouch(ctx context.Context, l *ledger.Ledger) error {
	opened := l.State()
	if opened.OpenedOn() == "" {
		return nil
	}
	inUse, err := f.Load(ctx)
	if err == nil && inUse.SHA256 != opened.OpenedOn() {
		inUse, err = loadFacts(ctx, f.store, opened.OpenedOn())
	}
	if errors.Is(err, blob.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the archive that the ledger was opened on: %w", err)
	}
	l.Vouch(inUse.Archive.AsOf(opened.OpenedAt()))
	return nil
}

// loadFacts reads an archive of the store, in use or not, by the sum of its file.
func loadFacts(ctx context.Context, store blob.Store, sum string) (StoredArchive, error) {
	object, err := store.Get(ctx, factsFolder+sum, MaxArchive)
	if err != nil {
		return StoredArchive{}, fmt.Errorf("load archive: %w", err)
	}
	facts, err := decodeFacts(object.Data)
	if err != nil {
		return StoredArchive{}, err
	}
	if facts.SHA256 != sum {
		return StoredArchive{}, fmt.Errorf("load archive: %s%s has the sum %s", factsFolder, sum, facts.SHA256)
	}
	return facts, nil
}

// Put makes the archive file the one in use, unless it is already. A file that is no archive
// is refused and leaves the store as it was.
func (f *ArchiveStore) Put(ctx context.Context, file []byte) (StoredArchive, error) {
	facts, err := decodeFacts(file)
	if err != nil {
		return StoredArchive{}, err
	}
	if len(file) > MaxArchive {
		return StoredArchive{}, fmt.Errorf("put archive: it has %d bytes, at most %d can be read again", len(file), MaxArchive)
	}
	// The name is the sum of the content: whoever wrote it first wrote the same.
	switch whole, err := blob.Claim(ctx, f.store, factsFolder+facts.SHA256, file); {
	case err != nil:
		return StoredArchive{}, fmt.Errorf("put archive: %w", err)
	case !whole:
		return StoredArchive{}, fmt.Errorf("put archive: %s%s is damaged: it does not hold what its name says", factsFolder, facts.SHA256)
	}
	data, err := json.MarshalIndent(factsInUse{SHA256: facts.SHA256, Source: facts.Archive.Facts().Source}, "", "  ")
	if err != nil {
		return StoredArchive{}, fmt.Errorf("put archive: %w", err)
	}
	for {
		inUse, tag, err := f.inUse(ctx)
		if err != nil && !errors.Is(err, blob.ErrNotFound) {
			return StoredArchive{}, err
		}
		if inUse.SHA256 == facts.SHA256 {
			return facts, nil
		}
		_, err = f.store.Swap(ctx, factsKey, tag, data)
		switch {
		case err == nil:
			return facts, nil
		case errors.Is(err, blob.ErrConflict), errors.Is(err, blob.ErrUnknown):
			if ctx.Err() != nil {
				return StoredArchive{}, fmt.Errorf("put archive: %w", err)
			}
		default:
			return StoredArchive{}, fmt.Errorf("put archive: %w", err)
		}
	}
}

// ErrArchiveChanged says that another archive is in use than the one that is to be followed.
var ErrArchiveChanged = errors.New("another archive is in use meanwhile")

// Keep puts an archive's file into the store without using it.
func (f *ArchiveStore) Keep(ctx context.Context, file []byte) error {
	sum := archive.Sum(file)
	switch whole, err := blob.Claim(ctx, f.store, factsFolder+sum, file); {
	case err != nil:
		return fmt.Errorf("keep archive: %w", err)
	case !whole:
		return fmt.Errorf("keep archive: %s%s is damaged: it does not hold what its name says", factsFolder, sum)
	}
	return nil
}

// Use makes an archive that the store keeps the one in use, if the one in use is after; the error
// wraps ErrArchiveChanged if it is another.
func (f *ArchiveStore) Use(ctx context.Context, sum, after string) (err error) {
	next, err := loadFacts(ctx, f.store, sum)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(factsInUse{SHA256: sum, Source: next.Archive.Facts().Source}, "", "  ")
	if err != nil {
		return fmt.Errorf("use archive: %w", err)
	}
	defer func() { // who loads it next need not read it again
		if err == nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.loaded = next
		}
	}()
	for {
		inUse, tag, err := f.inUse(ctx)
		switch {
		case err != nil && !errors.Is(err, blob.ErrNotFound):
			return err
		case inUse.SHA256 == sum:
			return nil
		case inUse.SHA256 != after:
			return fmt.Errorf("use archive: %w: %.12s, not %.12s", ErrArchiveChanged, inUse.SHA256, after)
		}
		_, err = f.store.Swap(ctx, factsKey, tag, data)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, blob.ErrConflict) && !errors.Is(err, blob.ErrUnknown), ctx.Err() != nil:
			return fmt.Errorf("use archive: %w", err)
		}
	}
}

// inUse reads archive.json.
func (f *ArchiveStore) inUse(ctx context.Context) (factsInUse, blob.Tag, error) {
	object, err := f.store.Get(ctx, factsKey, blob.MaxDocument)
	if err != nil {
		return factsInUse{}, "", fmt.Errorf("load archive: %w", err)
	}
	var inUse factsInUse
	if err := json.Unmarshal(object.Data, &inUse); err != nil {
		return factsInUse{}, object.Tag, fmt.Errorf("load archive: %s is damaged: %w", factsKey, err)
	}
	return inUse, object.Tag, nil
}

func decodeFacts(file []byte) (StoredArchive, error) {
	a, err := archive.DecodeFile(file)
	if err != nil {
		return StoredArchive{}, err
	}
	return StoredArchive{Archive: a, SHA256: archive.Sum(file)}, nil
}
