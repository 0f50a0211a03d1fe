package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"gridcast/builder/season"
	"gridcast/snapshots/blob"
)

const (
	inUseKey = "archive.json"
	folder   = "archives/"
)

// MaxFile is the size of the largest archive file that a store accepts, in bytes. All seasons take
// 1 % of it.
const MaxFile = 64 << 20

// ErrReplaced says that the archive in use is not the one that the caller wanted to replace.
var ErrReplaced = errors.New("another archive is in use meanwhile")

// Stored is an archive and the sum of its file.
type Stored struct {
	Archive *season.Archive
	SHA256  string // lower-case hex
}

// Listing describes an archive file of a store.
type Listing struct {
	SHA256 string    `json:"sha256"`
	Bytes  int64     `json:"bytes"`
	Added  time.Time `json:"added"` // real time
	InUse  bool      `json:"in_use"`
}

// inUse is the content of archive.json.
type inUse struct {
	SHA256 string `json:"sha256"`
	Source string `json:"source"` // for people
}

// Store keeps every archive that a store has used, and names the one that all builders build from.
// It is safe for concurrent use.
type Store struct {
	store blob.Store

	mu     sync.Mutex
	loaded Stored // by the last Load or Use
}

// NewStore returns the archives of a store.
func NewStore(store blob.Store) *Store { return &Store{store: store} }

// Load returns the archive in use; the error wraps blob.ErrNotFound if the store has none. It reads
// the file again only if the archive in use has changed.
func (s *Store) Load(ctx context.Context) (Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	current, err := s.current(ctx)
	if err != nil {
		return Stored{}, err
	}
	if s.loaded.SHA256 == current.SHA256 {
		return s.loaded, nil
	}
	loaded, err := s.Get(ctx, current.SHA256)
	if err != nil {
		return Stored{}, err
	}
	s.loaded = loaded
	return loaded, nil
}

// Get reads the archive of a sum, in use or not.
func (s *Store) Get(ctx context.Context, sum string) (Stored, error) {
	stored, _, err := s.read(ctx, sum)
	return stored, err
}

// Find reads the only archive with a sum that begins with the given digits, and returns its file too.
func (s *Store) Find(ctx context.Context, digits string) (Stored, []byte, error) {
	var found []string
	for info, err := range s.store.List(ctx, folder) {
		if err != nil {
			return Stored{}, nil, fmt.Errorf("load archive %s: %w", digits, err)
		}
		if sum := strings.TrimPrefix(info.Key, folder); digits != "" && strings.HasPrefix(sum, digits) {
			found = append(found, sum)
		}
	}
	if len(found) != 1 {
		return Stored{}, nil, fmt.Errorf("load archive %q: %d archives of %s have a sum that begins so; gridcast archive list shows them", digits, len(found), s.store)
	}
	return s.read(ctx, found[0])
}

func (s *Store) read(ctx context.Context, sum string) (Stored, []byte, error) {
	object, err := s.store.Get(ctx, folder+sum, MaxFile)
	if err != nil {
		return Stored{}, nil, fmt.Errorf("load archive: %w", err)
	}
	if got := Sum(object.Data); got != sum {
		return Stored{}, nil, fmt.Errorf("load archive: %s%s is damaged: its bytes have the sum %s", folder, sum, got)
	}
	a, err := DecodeFile(object.Data)
	if err != nil {
		return Stored{}, nil, fmt.Errorf("load archive %s: %w", sum, err)
	}
	return Stored{Archive: a, SHA256: sum}, object.Data, nil
}

// List describes the archives of the store, the newest first.
func (s *Store) List(ctx context.Context) ([]Listing, error) {
	current, err := s.current(ctx)
	if err != nil && !errors.Is(err, blob.ErrNotFound) {
		return nil, fmt.Errorf("list archives: %w", err)
	}
	list := []Listing{}
	for info, err := range s.store.List(ctx, folder) {
		if err != nil {
			return nil, fmt.Errorf("list archives: %w", err)
		}
		sum := strings.TrimPrefix(info.Key, folder)
		list = append(list, Listing{SHA256: sum, Bytes: info.Size, Added: info.Modified, InUse: sum == current.SHA256})
	}
	slices.SortStableFunc(list, func(a, b Listing) int { return b.Added.Compare(a.Added) })
	return list, nil
}

// Put keeps an archive file and uses it, whichever archive is in use now. It refuses a file that is
// no archive and then leaves the store unchanged.
func (s *Store) Put(ctx context.Context, file []byte) (Stored, error) {
	a, err := DecodeFile(file)
	if err != nil {
		return Stored{}, err
	}
	next := Stored{Archive: a, SHA256: Sum(file)}
	if len(file) > MaxFile {
		return Stored{}, fmt.Errorf("put archive: it has %d bytes, at most %d can be read again", len(file), MaxFile)
	}
	if err := s.Keep(ctx, file); err != nil {
		return Stored{}, err
	}
	return next, s.swap(ctx, next, func(inUse) error { return nil })
}

// Keep stores an archive file without using it.
func (s *Store) Keep(ctx context.Context, file []byte) error {
	sum := Sum(file)
	// The sum names the file, so an earlier writer wrote the same bytes.
	switch whole, err := blob.Claim(ctx, s.store, folder+sum, file); {
	case err != nil:
		return fmt.Errorf("keep archive: %w", err)
	case !whole:
		return fmt.Errorf("keep archive: %s%s is damaged: its bytes have another sum", folder, sum)
	}
	return nil
}

// Use replaces the archive in use, which must have the sum after, by a stored one. Otherwise the
// error wraps ErrReplaced.
func (s *Store) Use(ctx context.Context, sum, after string) error {
	next, err := s.Get(ctx, sum)
	if err != nil {
		return err
	}
	return s.swap(ctx, next, func(current inUse) error {
		if current.SHA256 != after {
			return fmt.Errorf("%w: %.12s, not %.12s", ErrReplaced, current.SHA256, after)
		}
		return nil
	})
}

// swap makes an archive that is stored the one in use, if may allows to replace the current one.
// The next Load need not read it.
func (s *Store) swap(ctx context.Context, next Stored, may func(current inUse) error) error {
	_, err := s.document().Update(ctx, func(current *inUse) error {
		if current.SHA256 == next.SHA256 {
			return nil
		}
		if err := may(*current); err != nil {
			return err
		}
		*current = inUse{SHA256: next.SHA256, Source: next.Archive.Facts().Source}
		return nil
	})
	if err != nil {
		return fmt.Errorf("use archive: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = next
	return nil
}

// document returns the object of the store that names the archive in use.
func (s *Store) document() blob.Document[inUse] {
	return blob.Document[inUse]{Store: s.store, Key: inUseKey}
}

// current reads archive.json. The error wraps blob.ErrNotFound if the store has none.
func (s *Store) current(ctx context.Context) (inUse, error) {
	current, tag, err := s.document().Load(ctx)
	if err == nil && tag == "" {
		err = fmt.Errorf("%s in %s: %w", inUseKey, s.store, blob.ErrNotFound)
	}
	if err != nil {
		return inUse{}, fmt.Errorf("load archive: %w", err)
	}
	return current, nil
}
