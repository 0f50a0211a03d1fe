package archive

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"gridcast/builder/season"
)

// The seasons from 2007 to the Hungarian Grand Prix of 2026, made by our importer from the
// release of F1DB that builder/source/sourcetest names, which is no part of the project, by:
// go test ./builder/archive -run EmbeddedIsImport -update
//
//go:embed seasons.zst
var embedded []byte

var decodeEmbedded = sync.OnceValues(func() (*season.Archive, error) {
	a, err := Decode(bytes.NewReader(embedded))
	if err != nil {
		return nil, fmt.Errorf("embedded seasons: %w", err)
	}
	return a, nil
})

// Embedded returns the seasons that gridcast comes with. They are decoded once.
func Embedded() (*season.Archive, error) { return decodeEmbedded() }

// EmbeddedBytes returns a copy of the file of the embedded seasons.
func EmbeddedBytes() []byte { return bytes.Clone(embedded) }

// DecodeFile returns the archive in a file that is in memory. The embedded one is decoded once.
func DecodeFile(file []byte) (*season.Archive, error) {
	if bytes.Equal(file, embedded) {
		return Embedded()
	}
	return Decode(bytes.NewReader(file))
}

// Sum returns the SHA-256 of an archive file in hexadecimal: its name in a store.
func Sum(file []byte) string {
	sum := sha256.Sum256(file)
	return hex.EncodeToString(sum[:])
}

// ReadFile reads an archive file and returns its Sum with it.
func ReadFile(path string) (*season.Archive, string, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("read archive: %w", err)
	}
	a, err := DecodeFile(file)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	return a, Sum(file), nil
}

// WriteFile writes an archive file and returns its Sum. It replaces the file that was there in
// one step, so that after any failure path holds the old archive or the new one.
func WriteFile(path string, a *season.Archive) (string, error) {
	var file bytes.Buffer
	if err := Encode(&file, a); err != nil {
		return "", err
	}
	if err := replace(path, file.Bytes()); err != nil {
		return "", fmt.Errorf("write archive %s: %w", path, err)
	}
	return Sum(file.Bytes()), nil
}

// replace writes a temporary file beside path and renames it. The data reaches the disk before the name does.
func replace(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".archive-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
