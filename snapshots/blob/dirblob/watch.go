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
	data, err := blob.ReadAll(f, info.Size(), limit)
	if err != nil {
		return blob.Object{}, err
	}
	return blob.Object{Data: data, Tag: tagOf(data)}, nil
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

// Watch implements blob.Store. The file system wakes it, and it also looks each second, because notices are missing on
// some file systems and can overflow on all. Each look compares the digest of the bytes: a list of 100,000 keys takes
// some 20 ms of processor time.
func (s *Store) Watch(ctx context.Context, key string, seen blob.Tag, limit int64) (o blob.Object, err error) {
	err = s.on(ctx, "watch", key, func(path string) error {
		notices := watch.New(s.Log, path)
		defer notices.Close()
		for {
			sum, err := hashFile(path)
			if err == nil && sum != seen {
				o, err = read(path, limit)
			}
			switch err = s.orGone(err); {
			case err == nil && o.Tag != "" && o.Tag != seen:
				s.read.Store(true)
				return nil
			case err != nil && (seen != "" || !errors.Is(err, blob.ErrNotFound)):
				return err
			}
			if err := notices.Wait(ctx, watch.Poll); err != nil {
				return err
			}
		}
	})
	return o, err
}
