package dirblob

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// NewFile begins the name of a file that WriteFile has not put in its place yet. A killed process leaves it behind.
const NewFile = ".new-"

// WriteFile writes a file that is in no store, whole or not at all: it writes another file beside it, whose data reaches the
// disk before place gives it the name. With os.Rename as place the file is replaced, with os.Link an existing one is an
// error.
func WriteFile(path string, data []byte, mode fs.FileMode, place func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), NewFile)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // after a rename there is nothing to remove
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return place(f.Name(), path)
}
