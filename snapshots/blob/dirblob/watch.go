package dirblob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/watch"
)

// read returns the object in the file path. A file never changes once it has its name, so
// the result is one object, whole.
func read(path string, limit int64) (blob.Object, error) {
	f, info, err := openFile(path)
	if err != nil {
		return blob.Object{}, err
	}
	defer func() { _ = f.Close() }()
	return readObject(f, info.Size(), limit)
}

// openFile opens a file to read. Only regular files are objects: opening a pipe would wait for
// a writer, and reading a device may never end.
func openFile(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, blob.ErrNotFound
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file but %s", path, info.Mode().Type())
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// readObject reads an open file of the stated size.
func readObject(f *os.File, size, limit int64) (blob.Object, error) {
	data, err := blob.ReadAll(f, size, limit)
	if err != nil {
		return blob.Object{}, err
	}
	return blob.Object{Data: data, Tag: tagOf(data)}, nil
}

// hashFile returns the tag of the file path, of any size, with little memory.
func hashFile(path string) (blob.Tag, error) {
	f, _, err := openFile(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return tag(h.Sum(nil)), err
}

func tagOf(data []byte) blob.Tag {
	sum := sha256.Sum256(data)
	return tag(sum[:])
}

func tag(sum []byte) blob.Tag { return blob.Tag(hex.EncodeToString(sum[:16])) }

// Watch implements blob.Store. The file system wakes it, and it also polls each second,
// because notifications are missing on some file systems and can overflow on all. It reads the bytes
// at the first poll and when the file is another one, so that waiting costs the same
// for an object of any size.
func (s *Store) Watch(ctx context.Context, key string, seen blob.Tag, limit int64) (o blob.Object, err error) {
	err = s.on(ctx, "watch", key, func(path string) error {
		notices := watch.New(s.Log, path)
		defer notices.Close()
		file := watched{path: path, limit: limit, seen: seen}
		defer file.close()
		for {
			found, err := file.read()
			err = s.orGone(err)
			switch {
			case errors.Is(err, errUnchanged):
			case err == nil && found.Tag != seen:
				s.read.Store(true)
				o = found
				return nil
			case errors.Is(err, blob.ErrNotFound) && seen == "":
			case err != nil:
				return err
			}
			if err := notices.Wait(ctx, watch.Poll); err != nil {
				return err
			}
		}
	})
	return o, err
}

// errUnchanged means that the file is the one of the last read.
var errUnchanged = errors.New("unchanged")

// watched reads a file repeatedly, but only when another file has its name. It recognises
// the file by holding it open: the file system cannot reuse its inode, so the same inode is
// the same file. It also compares size and time, for a file that somebody wrote to in place.
type watched struct {
	path  string
	limit int64    // bytes
	seen  blob.Tag // the object that the caller has; empty: none
	file  *os.File // of the last read; nil: none
	info  fs.FileInfo
}

// read returns the object, or errUnchanged.
func (w *watched) read() (blob.Object, error) {
	// Open the file instead of only looking it up: on a network file system that asks the
	// server, whereas a cache may answer a look-up.
	f, info, err := openFile(w.path)
	if err != nil {
		return blob.Object{}, err
	}
	if w.file != nil && os.SameFile(w.info, info) && w.info.Size() == info.Size() && w.info.ModTime().Equal(info.ModTime()) {
		_ = f.Close()
		return blob.Object{}, errUnchanged
	}
	first := w.file == nil
	w.close()
	w.file, w.info = f, info
	if first && w.seen != "" { // a wait mostly begins with the seen object, which may take 64 MB
		if sum, err := hashFile(w.path); err == nil && sum == w.seen {
			return blob.Object{}, errUnchanged
		}
	}
	o, err := readObject(f, info.Size(), w.limit)
	if err != nil {
		w.close() // the missing rest must be read again
	}
	return o, err
}

func (w *watched) close() {
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
}
