package dirblob

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// createUnnamed makes a file without a name in the file system of folder. Some file systems cannot.
func createUnnamed(folder string) (*os.File, error) {
	return os.OpenFile(folder, os.O_WRONLY|unix.O_TMPFILE, 0o600)
}

// linkUnnamed gives an unnamed file a name. It needs /proc, the only way for a process without special rights.
func linkUnnamed(f *os.File, path string) error {
	err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "link", Old: f.Name(), New: path, Err: err}
	}
	return nil
}
