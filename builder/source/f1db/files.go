package f1db

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
)

// files are the files of a release by base name, in whichever folder.
type files map[string]file

type file struct {
	size int64
	open func() (io.ReadCloser, error)
}

// errNotF1DB says that a path holds no release.
var errNotF1DB = errors.New("not an F1DB release: want f1db-json-splitted.zip, or the folder it unpacks to, with f1db-races.json in it")

func inFolder(name string) (files, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	found := make(files)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		whole := filepath.Join(name, e.Name())
		found[e.Name()] = file{info.Size(), func() (io.ReadCloser, error) { return os.Open(whole) }}
	}
	return found, nil
}

func inZip(packed io.ReaderAt, size int64) (files, error) {
	z, err := zip.NewReader(packed, size)
	if errors.Is(err, zip.ErrFormat) {
		return nil, errNotF1DB
	}
	if err != nil {
		return nil, fmt.Errorf("open zip: %w", err)
	}
	found := make(files)
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		base := path.Base(f.Name)
		if _, ok := found[base]; ok {
			return nil, fmt.Errorf("%s is in the zip twice", base)
		}
		found[base] = file{int64(min(f.UncompressedSize64, 1<<62)), f.Open}
	}
	return found, nil
}
