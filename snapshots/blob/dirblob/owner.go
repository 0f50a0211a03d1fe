package dirblob

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Owner is a user and a group of the machine.
type Owner struct{ UID, GID int }

// OwnerOf returns the owner of a path, or of its nearest folder that exists. It is nil if the system does not tell.
func OwnerOf(path string) *Owner {
	info, err := os.Stat(path)
	for ; err != nil && path != filepath.Dir(path); info, err = os.Stat(path) {
		path = filepath.Dir(path)
	}
	if err != nil {
		return nil
	}
	return ownerOf(info)
}

func ownerOf(info fs.FileInfo) *Owner {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return &Owner{int(stat.Uid), int(stat.Gid)}
}

// String returns the name of the user, or its number if it has none.
func (o *Owner) String() string {
	number := strconv.Itoa(o.UID)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return number
}

// Free returns the free bytes for files below path, or below its nearest folder that exists.
func Free(path string) (int64, error) {
	var system syscall.Statfs_t
	err := syscall.Statfs(path, &system)
	for ; errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path); err = syscall.Statfs(path, &system) {
		path = filepath.Dir(path)
	}
	if err != nil {
		return 0, err
	}
	return int64(system.Bavail) * int64(system.Bsize), nil //nolint:unconvert // the types differ between systems
}

// give makes the owner of the store that of a new file or folder.
func (s *Store) give(path string) error {
	if s.owner == nil {
		return nil
	}
	return os.Lchown(path, s.owner.UID, s.owner.GID)
}

// Foreign returns the number of files and folders below root that another user than the owner of root owns, and the
// path of the first. Files that vanish meanwhile do not count. It fails where a folder cannot be read.
func Foreign(ctx context.Context, root string) (count int, first string, err error) {
	owner := OwnerOf(root)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err = errors.Join(err, context.Cause(ctx)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if entry == nil {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // it vanished
		}
		if of := ownerOf(info); owner != nil && of.UID != owner.UID {
			if count++; count == 1 {
				first = path
			}
		}
		return nil
	})
	return count, first, err
}
