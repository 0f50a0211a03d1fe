package dirblob

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// wholeSystems are the file systems whose sync is known to cover every file and folder.
var wholeSystems = []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC}

// syncAll syncs the file system of f. It returns errors.ErrUnsupported if that may leave something behind, or hide a
// failed write.
func syncAll(f *os.File) error {
	var system unix.Statfs_t
	var kernel unix.Utsname
	_, _ = unix.Fstatfs(int(f.Fd()), &system), unix.Uname(&kernel) // without an answer: no type, and version 0
	if !slices.Contains(wholeSystems, system.Type) || !reliable(unix.ByteSliceToString(kernel.Release[:])) {
		return errors.ErrUnsupported
	}
	return unix.Syncfs(int(f.Fd()))
}
