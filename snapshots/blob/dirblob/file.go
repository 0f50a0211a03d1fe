package dirblob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// writeNew writes data to a new file in @new, waits until it is on disk and returns its path.
func (s *Store) writeNew(data []byte) (string, error) {
	f, err := os.CreateTemp(filepath.Join(s.root, newFolder), "object-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	// Temporary files are private by default; an edge of another user must read objects.
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// lock waits for the lock of the store and returns the function that releases it. The kernel
// releases it too when the process dies.
func (s *Store) lock() (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(s.root, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return func() { _ = f.Close() }, nil
}

// makeFolder makes folder and what is missing above it, and waits until the new names are on
// disk.
func makeFolder(folder string) error {
	err := os.Mkdir(folder, 0o755) //nolint:gosec // G301: an edge of another user reads here
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		if err := makeFolder(filepath.Dir(folder)); err != nil {
			return err
		}
		return makeFolder(folder)
	case err != nil:
		return err
	}
	return syncFolder(filepath.Dir(folder))
}

func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// removeAbandoned removes what killed writers left in @new.
func (s *Store) removeAbandoned(now time.Time) error {
	folder := filepath.Join(s.root, newFolder)
	files, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, file := range files {
		info, err := file.Info()
		if err != nil || now.Sub(info.ModTime()) < abandonedAfter {
			continue // gone meanwhile, or perhaps still being written
		}
		if err := os.Remove(filepath.Join(folder, file.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
