package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"

	"gridcast/builder/ledger"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
	"gridcast/snapshots/blob/lock"
)

const (
	inUseKey   = "archive.json"
	folder     = "archives/"
	partFolder = folder + "parts/"

	maxList = 1 << 20 // bytes of a list; all seasons take 2,000
	readers = 32      // parts read or written at once
)

func partKey(sum string) string { return partFolder + sum + ".zst" }

// MaxFile is the size of the largest archive file and of the largest part, in bytes. All seasons take
// 1 % of it.
const MaxFile = 64 << 20

// ErrReplaced says that the archive in use is not the one that the caller wanted to replace.
var ErrReplaced = errors.New("another archive is in use meanwhile")

// Listing describes an archive of a store.
type Listing struct {
	SHA256 string    `json:"sha256"`
	Bytes  int64     `json:"bytes"` // of its parts; other archives share some of them
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

	mu     lock.Lock // held while archives are read
	loaded Stored    // by the last Load or Use; cache, by the SHA-256: decoding all seasons takes .3 s of processor time
}

// NewStore returns the archives of a store.
func NewStore(store blob.Store) *Store { return &Store{store: store} }

// Load returns the archive in use; the error wraps blob.ErrNotFound if the store has none. It reads
// the file again only if the archive in use has changed.
func (s *Store) Load(ctx context.Context) (Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	current, err := s.InUse(ctx)
	if err != nil {
		return Stored{}, err
	}
	if s.loaded.SHA256 != current {
		loaded, err := s.get(ctx, current)
		if err != nil {
			return Stored{}, err
		}
		s.loaded = loaded
	}
	return s.loaded, nil
}

// Get reads the archive of a digest, in use or not. It does not read parts again that the last loaded archive has.
func (s *Store) Get(ctx context.Context, sum string) (Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(ctx, sum)
}

func (s *Store) get(ctx context.Context, sum string) (Stored, error) {
	l, data, err := s.readList(ctx, sum)
	if err != nil {
		return Stored{}, err
	}
	frames := make([][]byte, len(l.Parts))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, p := range l.Parts {
		if frames[i] = s.loaded.frames[p.SHA256]; frames[i] != nil {
			continue
		}
		group.Go(func() error {
			object, err := s.store.Get(groupCtx, partKey(p.SHA256), MaxFile)
			frames[i] = object.Data
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Stored{}, fmt.Errorf("load archive %s: %w", sum, err)
	}
	bySum := make(map[string][]byte, len(frames))
	for i, p := range l.Parts {
		bySum[p.SHA256] = frames[i]
	}
	stored, err := join(l, bySum, s.loaded)
	if err != nil {
		return Stored{}, fmt.Errorf("load archive %s: %w", sum, err)
	}
	stored.SHA256, stored.list = sum, data
	return stored, nil
}

// readList reads the list of an archive, and returns its bytes too.
func (s *Store) readList(ctx context.Context, sum string) (list, []byte, error) {
	object, err := s.store.Get(ctx, folder+sum, maxList)
	if err != nil {
		return list{}, nil, fmt.Errorf("load archive: %w", err)
	}
	if got := chain.Hash(object.Data); got != sum {
		return list{}, nil, fmt.Errorf("load archive: %s%s: %w: its bytes have the sum %s", folder, sum, ErrDamaged, got)
	}
	var l list
	switch err := json.Unmarshal(object.Data, &l); {
	case err != nil:
		return list{}, nil, fmt.Errorf("load archive %s: %w: %w", sum, ErrNotArchive, err)
	case l.Format != format:
		return list{}, nil, fmt.Errorf("load archive %s: %w: format %q", sum, ErrNotArchive, l.Format)
	case l.Version != Version:
		return list{}, nil, fmt.Errorf("load archive %s: %w: version %d, want %d; import it again", sum, ErrVersion, l.Version, Version)
	}
	return l, object.Data, nil
}

// Vouch marks the results that were in the archive on which the ledger was opened as verified: see
// ledger.Fold.Vouches. It does nothing if the ledger names no such archive, or if the store has
// lost it.
func (s *Store) Vouch(ctx context.Context, l *ledger.Ledger) error {
	opened := l.Fold()
	if opened.OpenedOn() == "" {
		return nil
	}
	first, err := s.Load(ctx)
	if err != nil || first.SHA256 != opened.OpenedOn() { // also if nothing says which archive is in use, so that a person can
		first, err = s.Get(ctx, opened.OpenedOn())
	}
	if errors.Is(err, blob.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the archive that the ledger was opened on: %w", err)
	}
	l.Vouch(first.Archive.AsOf(opened.OpenedAt()))
	return nil
}

// Find reads the only archive with a digest that begins with the given digits.
func (s *Store) Find(ctx context.Context, digits string) (Stored, error) {
	var found []string
	for info, err := range s.store.List(ctx, folder) {
		if err != nil {
			return Stored{}, fmt.Errorf("load archive %s: %w", digits, err)
		}
		if sum := strings.TrimPrefix(info.Key, folder); digits != "" && strings.HasPrefix(sum, digits) {
			found = append(found, sum)
		}
	}
	if len(found) != 1 {
		return Stored{}, fmt.Errorf("load archive %q: %d archives of %s have a sum that begins so; gridcast archive list shows them", digits, len(found), s.store)
	}
	return s.Get(ctx, found[0])
}

// List describes the archives of the store, the newest first.
func (s *Store) List(ctx context.Context) ([]Listing, error) {
	current, err := s.InUse(ctx)
	if err != nil && !errors.Is(err, blob.ErrNotFound) && !errors.Is(err, errLost) && !errors.Is(err, blob.ErrDamaged) {
		return nil, fmt.Errorf("list archives: %w", err)
	}
	listed, sizes := []Listing{}, map[string]int64{}
	for info, err := range s.store.List(ctx, folder) {
		if err != nil {
			return nil, fmt.Errorf("list archives: %w", err)
		}
		if strings.HasPrefix(info.Key, partFolder) {
			sizes[info.Key] = info.Size
			continue
		}
		sum := strings.TrimPrefix(info.Key, folder)
		listed = append(listed, Listing{SHA256: sum, Added: info.Modified, InUse: sum == current})
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i := range listed {
		group.Go(func() error {
			l, _, err := s.readList(groupCtx, listed[i].SHA256)
			for _, p := range l.Parts {
				listed[i].Bytes += sizes[partKey(p.SHA256)]
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("list archives: %w", err)
	}
	slices.SortStableFunc(listed, func(a, b Listing) int { return b.Added.Compare(a.Added) })
	return listed, nil
}

// Put keeps an archive and uses it, whichever archive is in use now.
func (s *Store) Put(ctx context.Context, next Stored) error {
	if err := s.Keep(ctx, next); err != nil {
		return err
	}
	return s.swap(ctx, s.anew(), next, func(inUse) error { return nil })
}

// Keep stores an archive without using it. It writes the parts that the last loaded archive does not have, then
// the list.
func (s *Store) Keep(ctx context.Context, next Stored) error {
	s.mu.Lock()
	known := s.loaded.frames
	s.mu.Unlock()
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, p := range next.parts {
		if known[p.SHA256] == nil {
			group.Go(func() error { return s.keepPart(groupCtx, p, next.frames[p.SHA256]) })
		}
	}
	err := group.Wait()
	if err == nil {
		// The digest names the list, so an earlier writer wrote the same bytes.
		var whole bool
		if whole, err = blob.Claim(ctx, s.store, folder+next.SHA256, next.list); err == nil && !whole {
			err = fmt.Errorf("%s%s: %w: its bytes have another sum", folder, next.SHA256, ErrDamaged)
		}
	}
	if err != nil {
		return fmt.Errorf("keep archive: %w", err)
	}
	return nil
}

// keepPart stores a part. A part of an earlier release may have other bytes with the same lines.
func (s *Store) keepPart(ctx context.Context, p part, frame []byte) error {
	key := partKey(p.SHA256)
	whole, err := blob.Claim(ctx, s.store, key, frame)
	if err != nil || whole {
		return err
	}
	object, err := s.store.Get(ctx, key, MaxFile)
	if err != nil {
		return err
	}
	if lines, err := decompress(newDecoder(), object.Data, nil); err != nil || chain.Hash(lines) != p.SHA256 {
		return fmt.Errorf("%s: %w: its lines have another sum", key, ErrDamaged)
	}
	return nil
}

// Use replaces the archive in use, which must have the sum after, by one that Keep has stored. Otherwise the
// error wraps ErrReplaced.
func (s *Store) Use(ctx context.Context, next Stored, after string) error {
	return s.swap(ctx, s.document(), next, func(current inUse) error {
		if current.SHA256 != after {
			return fmt.Errorf("%w: %.12s, not %.12s", ErrReplaced, current.SHA256, after)
		}
		return nil
	})
}

// swap makes an archive that is stored the one in use, if may allows to replace the current one.
// The next Load need not read it.
func (s *Store) swap(ctx context.Context, d blob.Document[inUse], next Stored, may func(current inUse) error) error {
	_, err := d.Update(ctx, func(current *inUse) error {
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

func (s *Store) document() blob.Document[inUse] {
	return blob.Document[inUse]{Store: s.store, Key: inUseKey}
}

// anew is the document for a write that replaces a damaged one, too.
func (s *Store) anew() blob.Document[inUse] {
	d := s.document()
	d.Decode = func(data []byte) (current inUse, _ error) {
		if blob.DecodeJSON(data, &current) != nil {
			current = inUse{}
		}
		return current, nil
	}
	return d
}

// errLost means that the store does not say which of its archives is in use.
var errLost = errors.New("it is missing, although the store has archives; gridcast archive list shows them, gridcast archive use SHA writes it again")

// InUse returns the digest of the archive in use, without its facts. The error wraps blob.ErrNotFound if the store
// has none. The embedded one alone counts as none, because a first start may have ended before it was in use.
func (s *Store) InUse(ctx context.Context) (string, error) {
	current, tag, err := s.document().Load(ctx)
	if err == nil && tag == "" {
		err = blob.ErrNotFound
		first, _ := Embedded()
		for info, listErr := range s.store.List(ctx, folder) {
			if listErr != nil || info.Key != folder+first.SHA256 && !strings.HasPrefix(info.Key, partFolder) {
				err = cmp.Or(listErr, errLost)
				break
			}
		}
		err = fmt.Errorf("%s in %s: %w", inUseKey, s.store, err)
	}
	if err != nil {
		return "", fmt.Errorf("load archive: %w", err)
	}
	return current.SHA256, nil
}
