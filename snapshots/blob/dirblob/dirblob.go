// Package dirblob is a blob.Store in a directory of a local file system.
//
// An object is the file of the same path below the root, so a person can read the store with
// ls and cat. Names that begin with "@", which no key can hold, are the store's own: @new
// holds files that are being written, @lock is held while an object is replaced or removed.
// What a killed process leaves in @new is removed by the next Open a day later.
//
// A tag is the hash of the bytes. Any number of processes on one machine may use a directory
// at the same time; network file systems are supported as far as link, rename and flock are
// atomic on them.
package dirblob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gridcast/snapshots/blob"
)

var _ blob.Store = (*Store)(nil)

const (
	newFolder = "@new"
	lockFile  = "@lock"

	// abandonedAfter is the age at which a file in @new can belong to no living writer.
	abandonedAfter = 24 * time.Hour
	// lookEvery is how often Watch looks by itself, whatever the file system reports.
	lookEvery = time.Second
)

// Store is a directory of objects.
type Store struct {
	root string
}

// Open returns the store in the directory root, which is made if it is missing.
func Open(root string) (*Store, error) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", root, err)
	}
	s := &Store{root: absolute}
	if err := makeFolder(filepath.Join(absolute, newFolder)); err != nil {
		return nil, fmt.Errorf("open store %s: %w", root, err)
	}
	if err := s.removeAbandoned(time.Now()); err != nil {
		return nil, fmt.Errorf("open store %s: %w", root, err)
	}
	return s, nil
}

// String names the store.
func (s *Store) String() string { return "dir:" + s.root }

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, key string) (blob.Object, error) {
	path, err := s.path(ctx, key)
	if err != nil {
		return blob.Object{}, fmt.Errorf("get: %w", err)
	}
	o, err := read(path)
	if err != nil {
		return blob.Object{}, fmt.Errorf("get %s: %w", key, err)
	}
	return o, nil
}

// Create implements blob.Store. The object appears under its name by a link from a file that
// is complete and on disk, so no reader and no crash can meet a part of it.
func (s *Store) Create(ctx context.Context, key string, data []byte) (blob.Tag, error) {
	path, err := s.path(ctx, key)
	if err != nil {
		return "", fmt.Errorf("create: %w", err)
	}
	if err := s.create(path, data); err != nil {
		return "", fmt.Errorf("create %s: %w", key, err)
	}
	return tagOf(data), nil
}

func (s *Store) create(path string, data []byte) error {
	if _, err := os.Lstat(path); err == nil {
		return blob.ErrConflict
	}
	fresh, err := s.writeNew(data)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(fresh) }()
	if err := linkInto(fresh, path); err != nil {
		return err
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		// The object is visible, but may not survive a crash.
		return errors.Join(blob.ErrUnknown, err)
	}
	return nil
}

// linkInto makes the folder of path and links fresh there. A Delete that removes the folder
// as empty in between makes the link fail once; more than a few times is another fault.
func linkInto(fresh, path string) error {
	for attempt := 0; ; attempt++ {
		err := makeFolder(filepath.Dir(path))
		if err == nil {
			err = os.Link(fresh, path)
		}
		switch {
		case errors.Is(err, fs.ErrExist):
			return blob.ErrConflict
		case errors.Is(err, fs.ErrNotExist) && attempt < 10:
		default:
			return err
		}
	}
}

// Swap implements blob.Store.
func (s *Store) Swap(ctx context.Context, key string, old blob.Tag, data []byte) (blob.Tag, error) {
	if old == "" {
		return s.Create(ctx, key, data)
	}
	path, err := s.path(ctx, key)
	if err != nil {
		return "", fmt.Errorf("swap: %w", err)
	}
	if err := s.swap(path, old, data); err != nil {
		return "", fmt.Errorf("swap %s: %w", key, err)
	}
	return tagOf(data), nil
}

func (s *Store) swap(path string, old blob.Tag, data []byte) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	current, err := read(path)
	if errors.Is(err, blob.ErrNotFound) || err == nil && current.Tag != old {
		return blob.ErrConflict
	}
	if err != nil {
		return err
	}
	fresh, err := s.writeNew(data)
	if err != nil {
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		_ = os.Remove(fresh)
		return err
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		// The new bytes are visible, but may not survive a crash.
		return errors.Join(blob.ErrUnknown, err)
	}
	return nil
}

// Delete implements blob.Store. Folders that become empty go too.
func (s *Store) Delete(ctx context.Context, key string) error {
	path, err := s.path(ctx, key)
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	unlock, err := s.lock()
	if err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	defer unlock()
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	for folder := filepath.Dir(path); folder != s.root; folder = filepath.Dir(folder) {
		if os.Remove(folder) != nil {
			return nil // not empty
		}
	}
	return nil
}

// path returns the file of key, unless the key is not allowed or ctx has ended.
func (s *Store) path(ctx context.Context, key string) (string, error) {
	if err := blob.CheckKey(key); err != nil {
		return "", err
	}
	if err := context.Cause(ctx); err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	return filepath.Join(s.root, filepath.FromSlash(key)), nil
}
