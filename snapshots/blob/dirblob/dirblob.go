// Package dirblob is a blob.Store in a directory of a local file system.
//
// An object is the file of the same path below the root, so a person can read the store with
// ls and cat. Names that begin with "@", which no key can hold, are the store's own: @new
// holds files during their writing, @lock is held while an object is replaced or removed.
// The next Open a day later removes the files that a killed process left in @new.
//
// A store that is opened for reading writes nothing at all, so it needs no right to write,
// and a missing directory is an error. If the directory vanishes later, every read fails
// instead of finding no objects.
//
// A process of root gives its new files and folders to the owner of the store, so that the service's own user can go on
// writing.
//
// Create and Swap return when the object and its folder are on disk. On ext4, XFS and Btrfs, many concurrent writes
// wait for the disk together: one sync of the file system serves all of them.
//
// A tag is the hash of the bytes. Any number of processes on one machine may use a directory
// at the same time; network file systems are supported as far as link, rename and flock are
// atomic on them.
package dirblob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/retry"
)

var (
	_ blob.Store   = (*Store)(nil)
	_ blob.Grouper = (*Store)(nil)
	_ blob.Syncer  = (*Store)(nil)
)

const (
	newFolder = "@new"
	lockFile  = "@lock"

	// abandonedAfter is the age at which a file in @new can belong to no living writer.
	abandonedAfter = 24 * time.Hour
)

// Store is a directory of objects.
type Store struct {
	// Log gets faults of the notices by which Watch learns of changes. Set it before the first Watch; nil: none.
	Log *slog.Logger

	root     string
	readOnly bool
	writing  chan struct{} // holds one token for the writer of this process that may take @lock
	timeout  time.Duration // for @lock
	read     atomic.Bool   // an object was read from it
	owner    *Owner        // gets the new files of a process of root; nil: they stay the process's own
	disk     disk
}

// errReadOnly means that the program writes to a store that it has opened for reading.
var errReadOnly = errors.New("the store was opened for reading only")

// Open returns the store in the directory root, which is made if it is missing.
func Open(root string) (*Store, error) {
	s := open(root)
	if os.Geteuid() == 0 {
		s.owner = OwnerOf(s.root)
	}
	if err := s.makeFolder(filepath.Join(s.root, newFolder)); err != nil {
		return nil, fmt.Errorf("open store dir:%s: %w", root, err)
	}
	s.removeAbandoned(time.Now())
	return s, nil
}

// OpenUnmounted is OpenReadOnly of a directory that may be missing. Reads fail until it is there.
func OpenUnmounted(root string) *Store {
	s := open(root)
	s.readOnly = true
	return s
}

// OpenReadOnly returns the store in the directory root for reading. Every write is an error.
func OpenReadOnly(root string) (*Store, error) {
	s := OpenUnmounted(root)
	info, err := os.Stat(s.root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("open store dir:%s: there is no such directory: is the path right, and the disk mounted?", root)
	case err != nil:
		return nil, fmt.Errorf("open store dir:%s: %w", root, err)
	case !info.IsDir():
		return nil, fmt.Errorf("open store dir:%s: it is not a directory", root)
	}
	return s, nil
}

func open(root string) *Store {
	if absolute, err := filepath.Abs(root); err == nil { // otherwise somebody has removed the working directory
		root = absolute
	}
	return &Store{root: root, writing: make(chan struct{}, 1), timeout: lockTime, disk: disk{syncOne: (*os.File).Sync, syncAll: syncAll}}
}

// Writers implements blob.Grouper.
func (s *Store) Writers() int { return 512 }

// String names the store.
func (s *Store) String() string { return "dir:" + s.root }

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, key string, limit int64) (o blob.Object, err error) {
	err = s.on(ctx, "get", key, func(path string) (err error) {
		if o, err = read(path, limit); err != nil {
			return s.orGone(err)
		}
		s.read.Store(true)
		return nil
	})
	return o, err
}

// orGone returns err, or an error if the whole store is gone: its directory is missing, or is empty although it was not
// before, as after an unmount.
func (s *Store) orGone(err error) error {
	root, openErr := os.Open(s.root)
	if openErr != nil {
		return fmt.Errorf("the directory of the store cannot be read: %w: is the disk mounted?", openErr)
	}
	defer func() { _ = root.Close() }()
	if _, listErr := root.Readdirnames(1); errors.Is(listErr, io.EOF) && s.read.Load() {
		return fmt.Errorf("the directory %s of the store is empty: is the disk mounted?", s.root)
	}
	return err
}

// Create implements blob.Store. The object gets its name by a link from a file that
// is complete and on disk, so neither a reader nor a crash can meet a part of it.
func (s *Store) Create(ctx context.Context, key string, data []byte) (blob.Tag, error) {
	err := s.on(ctx, "create", key, func(path string) error {
		if _, err := os.Lstat(path); err == nil {
			return blob.ErrConflict
		}
		return s.place(path, data, func(fresh *os.File) error { return s.linkInto(fresh, path) })
	})
	if err != nil {
		return "", err
	}
	return tagOf(data), nil
}

// place writes data to a new file, calls name to give it the path, and waits until the name is on disk. A process that is
// stopped at a random instant hardly ever holds the lock, which only name takes.
func (s *Store) place(path string, data []byte, name func(fresh *os.File) error) error {
	if s.readOnly {
		return errReadOnly
	}
	fresh, err := os.CreateTemp(filepath.Join(s.root, newFolder), "object-*")
	if err != nil {
		return err
	}
	defer func() { _, _ = fresh.Close(), os.Remove(fresh.Name()) }() // after a rename there is nothing to remove
	_, err = fresh.Write(data)
	// Temporary files are private by default; an edge of another user must read objects.
	if err = errors.Join(err, fresh.Chmod(0o644), s.give(fresh.Name()), s.disk.sync(fresh)); err == nil {
		err = name(fresh)
	}
	if err != nil {
		return err
	}
	return s.confirm(path)
}

// Sync implements blob.Syncer. Only the name can be missing on disk, because place syncs the bytes before it.
func (s *Store) Sync(ctx context.Context, key string) error { return s.on(ctx, "sync", key, s.confirm) }

// confirm waits until the name of a visible object is on disk.
func (s *Store) confirm(path string) error {
	if err := s.syncFolder(filepath.Dir(path)); err != nil {
		return errors.Join(blob.ErrUnsynced, err)
	}
	return nil
}

// linkInto links fresh at path. It makes the folder only after a link has failed, because most folders are there. If a
// Delete removes the empty folder in between, the link fails again; more than a few times is another fault.
func (s *Store) linkInto(fresh *os.File, path string) (err error) {
	for range 10 {
		err = os.Link(fresh.Name(), path)
		switch {
		case errors.Is(err, fs.ErrExist):
			return blob.ErrConflict
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		if err := s.makeFolder(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// Swap implements blob.Store.
func (s *Store) Swap(ctx context.Context, key string, old blob.Tag, data []byte) (blob.Tag, error) {
	if old == "" {
		return s.Create(ctx, key, data)
	}
	err := s.on(ctx, "swap", key, func(path string) error {
		return s.place(path, data, func(fresh *os.File) error { return s.rename(ctx, fresh, path, old) })
	})
	if err != nil {
		return "", err
	}
	return tagOf(data), nil
}

// rename gives a complete file the name of the object with the tag old.
func (s *Store) rename(ctx context.Context, fresh *os.File, path string, old blob.Tag) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	current, err := hashFile(path)
	if errors.Is(err, blob.ErrNotFound) || err == nil && current != old {
		return blob.ErrConflict
	}
	if err != nil {
		return err
	}
	return os.Rename(fresh.Name(), path)
}

// Delete implements blob.Store. Folders that become empty go too.
func (s *Store) Delete(ctx context.Context, key string) error {
	return s.on(ctx, "delete", key, func(path string) error {
		unlock, err := s.lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for folder := filepath.Dir(path); folder != s.root; folder = filepath.Dir(folder) {
			if os.Remove(folder) != nil {
				return nil // not empty
			}
		}
		return nil
	})
}

// on calls do with the file of a key, unless the key is not allowed or ctx has ended. The error names operation and key.
func (s *Store) on(ctx context.Context, operation, key string, do func(path string) error) error {
	err := cmp.Or(blob.CheckKey(key), context.Cause(ctx))
	if err == nil {
		err = do(filepath.Join(s.root, filepath.FromSlash(key)))
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", operation, key, err)
	}
	return nil
}

// lockTime is the longest wait for the lock, which a writer needs for some milliseconds.
const lockTime = 30 * time.Second

// lock waits for the lock of the store and returns the function that releases it. The kernel
// releases it too when the process dies, but not while the process is stopped: then the wait ends with
// ctx or after lockTime, and its error names the file.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	if s.readOnly {
		return nil, errReadOnly
	}
	name := filepath.Join(s.root, lockFile)
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout,
		fmt.Errorf("nothing was written, because a process has held it for %v, perhaps a stopped one: fuser -v %s shows it", s.timeout, name))
	defer cancel()
	select {
	case s.writing <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for %s, which this process holds: %w", name, context.Cause(ctx))
	}
	var f *os.File
	defer func() {
		if err != nil {
			_ = f.Close() // if it was opened
			<-s.writing
		}
	}()
	f, err = os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err = errors.Join(err, s.give(name)); err != nil {
		return nil, err
	}
	backoff := retry.Rule{First: time.Millisecond, Longest: 50 * time.Millisecond}
	for failures := 1; ; failures++ {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = f.Close(); <-s.writing }, nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return nil, fmt.Errorf("lock %s: %w", name, err)
		case !backoff.Wait(ctx, failures):
			return nil, fmt.Errorf("wait for %s, which another process holds: %w", name, context.Cause(ctx))
		}
	}
}

// makeFolder makes folder and its missing parents, and waits until the new names are on
// disk. The error is fs.ErrNotExist if the folder above was removed meanwhile, or if the file
// system makes no folders there. If the disk does not confirm a folder, makeFolder removes it, so that the next
// writer makes and syncs it again.
func (s *Store) makeFolder(folder string) error {
	err := os.Mkdir(folder, 0o755) //nolint:gosec // G301: an edge of another user reads here
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(folder) != folder {
		if err := s.makeFolder(filepath.Dir(folder)); err != nil {
			return err
		}
		err = os.Mkdir(folder, 0o755) //nolint:gosec // G301: the same
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return checkFolder(folder)
	case err != nil:
		return err
	}
	if err = errors.Join(s.give(folder), s.syncFolder(filepath.Dir(folder))); err != nil {
		_ = os.Remove(folder) // it stays if another writer has used it
	}
	return err
}

// checkFolder explains why a name is taken, for example by a link into a disk that is not mounted.
func checkFolder(folder string) error {
	info, err := os.Stat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		if target, err := os.Readlink(folder); err == nil {
			return fmt.Errorf("cannot make %s: it is a link to %s, which does not exist: is the disk mounted?", folder, target)
		}
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("cannot make %s: it is there and not a directory", folder)
	}
	return nil
}

func (s *Store) syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(s.disk.sync(f), f.Close())
}

// removeAbandoned removes the files of killed writers in @new. A file that cannot be removed stays for a
// later Open: it takes some room and does no harm.
func (s *Store) removeAbandoned(now time.Time) {
	folder := filepath.Join(s.root, newFolder)
	files, _ := os.ReadDir(folder)
	for _, file := range files {
		info, err := file.Info()
		if err != nil || now.Sub(info.ModTime()) < abandonedAfter {
			continue // it vanished meanwhile, or its writer may be alive
		}
		_ = os.Remove(filepath.Join(folder, file.Name()))
	}
}
