package dirblob

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"gridcast/snapshots/blob"
)

// piece is how much of a file is read and hashed in one step, in bytes. The scheduler can not
// interrupt the hashing of a slice, and there may be one processor only.
const piece = 256 << 10

// read returns the object in the file path. A file never changes once it has its name, so
// what is read is one object, whole.
func read(path string) (blob.Object, error) {
	f, err := open(path)
	if err != nil {
		return blob.Object{}, err
	}
	defer func() { _ = f.Close() }()
	return readObject(f, func(time.Duration) {})
}

func open(path string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, blob.ErrNotFound
	}
	return f, err
}

// readObject reads an open file. After each whole piece it calls pause with the time it took.
func readObject(f *os.File, pause func(time.Duration)) (blob.Object, error) {
	info, err := f.Stat()
	if err != nil {
		return blob.Object{}, err
	}
	data := make([]byte, 0, info.Size()+1) // the last byte is where the end of the file is met
	hash := sha256.New()
	for {
		began := time.Now()
		n, err := f.Read(data[len(data):min(len(data)+piece, cap(data))])
		data = data[:len(data)+n]
		hash.Write(data[len(data)-n:])
		if errors.Is(err, io.EOF) {
			return blob.Object{Data: data, Tag: tag(hash.Sum(nil))}, nil
		}
		if err != nil {
			return blob.Object{}, err
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, piece) // somebody writes to the file
		}
		if n == piece {
			pause(time.Since(began))
		}
	}
}

func tagOf(data []byte) blob.Tag {
	sum := sha256.Sum256(data)
	return tag(sum[:])
}

func tag(sum []byte) blob.Tag { return blob.Tag(hex.EncodeToString(sum[:16])) }
