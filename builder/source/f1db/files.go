package f1db

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// files are the files of a release by base name, in whichever folder.
type files struct {
	named   map[string]file
	archive io.Closer
}

type file struct {
	size int64
	open func() (io.ReadCloser, error)
}

// errNotF1DB says that a path holds no release.
var errNotF1DB = errors.New("not an F1DB release: want f1db-json-splitted.zip, or the folder it unpacks to, with f1db-races.json in it")

// open finds the files of the release in a folder or a zip archive.
func open(name string) (*files, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	var found *files
	if info.IsDir() {
		found, err = openFolder(name)
	} else {
		found, err = openZip(name)
	}
	if err != nil {
		return nil, err
	}
	if !found.has(racesTable.file()) {
		return nil, errors.Join(errNotF1DB, found.Close())
	}
	return found, nil
}

func openFolder(name string) (*files, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	found := &files{named: make(map[string]file)}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		whole := filepath.Join(name, e.Name())
		found.named[e.Name()] = file{info.Size(), func() (io.ReadCloser, error) { return os.Open(whole) }}
	}
	return found, nil
}

func openZip(name string) (*files, error) {
	z, err := zip.OpenReader(name)
	if errors.Is(err, zip.ErrFormat) {
		return nil, errNotF1DB
	}
	if err != nil {
		return nil, fmt.Errorf("open zip: %w", err)
	}
	found := &files{named: make(map[string]file), archive: z}
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		base := path.Base(f.Name)
		if _, ok := found.named[base]; ok {
			return nil, errors.Join(fmt.Errorf("%s is in the zip twice", base), z.Close())
		}
		found.named[base] = file{int64(min(f.UncompressedSize64, 1<<62)), f.Open}
	}
	return found, nil
}

func (f *files) has(name string) bool {
	_, ok := f.named[name]
	return ok
}

// names returns the names of all files in order.
func (f *files) names() []string {
	names := make([]string, 0, len(f.named))
	for name := range f.named {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Close closes the zip archive, if it is one.
func (f *files) Close() error {
	if f.archive == nil {
		return nil
	}
	return f.archive.Close()
}
