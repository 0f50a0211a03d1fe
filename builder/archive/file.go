package archive

import (
	_ "embed"
	"fmt"
	"os"
	"sync"

	"gridcast/snapshots/blob/dirblob"
)

// The seasons from 2007 to the Hungarian Grand Prix of 2026, made by our importer from the
// release of F1DB that builder/source/sourcetest names, which is no part of the project, by:
// go test ./builder/archive -run EmbeddedIsImport -update, which needs the tool zstd.
//
//go:embed seasons.zst
var embedded []byte

var readEmbedded = sync.OnceValues(func() (Stored, error) {
	stored, err := read(embedded)
	if err != nil {
		return Stored{}, fmt.Errorf("embedded seasons: %w", err)
	}
	return stored, nil
})

// Embedded returns the seasons that gridcast comes with. They are decoded once.
func Embedded() (Stored, error) { return readEmbedded() }

// ReadFile reads an archive file.
func ReadFile(path string) (Stored, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return Stored{}, fmt.Errorf("read archive: %w", err)
	}
	stored, err := Read(file)
	if err != nil {
		return Stored{}, fmt.Errorf("%s: %w", path, err)
	}
	return stored, nil
}

// WriteFile writes an archive file. It replaces the file that was there in one step, so that after any failure
// path holds the old archive or the new one.
func WriteFile(path string, s Stored) error {
	if err := dirblob.WriteFile(path, s.File(), 0o644, os.Rename); err != nil {
		return fmt.Errorf("write archive %s: %w", path, err)
	}
	return nil
}
