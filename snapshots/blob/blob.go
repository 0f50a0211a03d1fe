// Package blob is the storage of published versions, the ledger, keys and archives:
// whole objects under slash-separated keys, with create-once and compare-and-swap.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"
)

var (
	// ErrNotFound means that there is no object under the key.
	ErrNotFound = errors.New("no such object")
	// ErrConflict means that the condition of a write did not hold, so nothing was written:
	// Create found an object; Swap found another tag, or none.
	ErrConflict = errors.New("object changed or already there")
	// ErrUnknown means that a write may or may not have been applied (timed out, answer lost,
	// 409 of a concurrent write). The caller must read back before it decides.
	ErrUnknown = errors.New("outcome of the write is unknown")
	// ErrUnsynced is an ErrUnknown of a write that is visible, but that a crash may undo. To read back proves nothing:
	// see Syncer.
	ErrUnsynced = fmt.Errorf("%w: the disk did not confirm it", ErrUnknown)
	// ErrTooLarge means that an object is larger than the reader's limit. None of it is returned.
	ErrTooLarge = errors.New("object is larger than allowed")
)

// MaxDocument is a limit for Get and Watch of a small document, such as a pointer, a setting or
// a file of the ledger, in bytes: far above the size of any of them, and little for a machine.
const MaxDocument = 8 << 20

// Tag identifies the bytes of an object at a read or write. It is opaque and
// comes from the store; two reads with the same tag returned the same bytes.
type Tag string

// Object is the content of a key.
type Object struct {
	Data []byte // owned by the receiver
	Tag  Tag
}

// Info describes an object in a listing.
type Info struct {
	Key      string
	Size     int64     // bytes
	Modified time.Time // by the store's clock
}

// Store holds objects. Keys are non-empty slash-separated paths of the characters [A-Za-z0-9._-]
// without empty, "." or ".." segments; others are refused with an error that names the key. A key
// must not be a folder of another, as "a" is of "a/b": a directory cannot hold both. Every method
// is safe for concurrent use by any number of goroutines and processes. A read that begins after a
// write returned sees that write or a later one. Methods retry safe requests within ctx; errors
// wrap one of the sentinels above where it applies and name the operation and the key.
type Store interface {
	// Get returns the object under key, or ErrNotFound, or ErrTooLarge if it has more than limit
	// bytes. It holds little more memory than the object has bytes and never more than about twice
	// the limit, for any stated size: a storage may lie, and its answer may have no end.
	Get(ctx context.Context, key string, limit int64) (Object, error)

	// Create writes data under a key that has no object. It returns ErrConflict if there is
	// one, ErrUnknown if the outcome is unknown. A reader sees all of data or no
	// object; once Create returned nil the object survives a crash.
	Create(ctx context.Context, key string, data []byte) (Tag, error)

	// Swap replaces the object under key if it still has the tag old; with an empty old it
	// is Create. It returns ErrConflict if the tag differs or the object is gone, ErrUnknown
	// if the outcome is unknown. Readers see the old or the new bytes, never a mix.
	Swap(ctx context.Context, key string, old Tag, data []byte) (Tag, error)

	// List yields the objects whose key begins with prefix, in ascending key order. It stops
	// at the first error. Objects written while it runs may be missing.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Delete removes the object under key; a missing object is no error.
	Delete(ctx context.Context, key string) error

	// Watch waits until the object under key has another tag than seen (the empty tag stands
	// for no object) and returns it as Get does; an object that vanished is ErrNotFound. It returns when
	// ctx ends, with its cause, and at the first failed poll, with that error: the caller
	// decides on the wait before the next watch. Watch notices a change within about a
	// second; of several changes in between it sees only the last.
	Watch(ctx context.Context, key string, seen Tag, limit int64) (Object, error)

	// String names the store for operators' logs and errors, without credentials. It reveals the place
	// of the store, so neither it nor an error of the store belongs in an answer to strangers.
	String() string
}

// maxHint is the largest stated size for which ReadAll reserves memory, in bytes.
const maxHint = 1 << 20

// ReadAll is io.ReadAll for stores: it returns ErrTooLarge for more than limit bytes. size is
// the storage's stated size; a true one saves copying, and a false one costs little.
func ReadAll(r io.Reader, size, limit int64) ([]byte, error) {
	// One byte more than expected, so that the read meets the end of the data.
	data := make([]byte, 0, max(min(size, limit, maxHint), 0)+1)
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > limit:
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, len(data))
		}
	}
}

// Clock is implemented by a Store whose storage has its own clock, with which a
// program can detect a wrong clock of its machine.
type Clock interface {
	// StoreTime returns the present instant of the storage's clock; the error of the
	// reading is at most within, either way. A reading is as cheap as possible: the store
	// remembers the clock of the last answers, and asks only if those are old or if the clock of
	// this machine was set since. The error is errors.ErrUnsupported if there is no such clock,
	// otherwise the reason why the storage did not answer.
	StoreTime(ctx context.Context) (at time.Time, within time.Duration, err error)
}

// Grouper is implemented by a Store that serves a group of concurrent writes by one wait.
type Grouper interface {
	// Writers returns the number of concurrent writes from which more make the store no faster; 0: it does not know.
	Writers() int
}

// Syncer is implemented by a Store in which an object can be visible before it survives a crash: another writer still
// waits for the disk, or got ErrUnsynced.
type Syncer interface {
	// Sync returns nil once the object under key survives a crash, and ErrUnsynced if the disk does not confirm it.
	Sync(ctx context.Context, key string) error
}

// confirm waits until the object under key survives a crash. Its caller has found there the bytes that it would write.
func confirm(ctx context.Context, s Store, key string) error {
	if s, ok := s.(Syncer); ok {
		return s.Sync(ctx, key)
	}
	return nil
}

// ProbeFolder is the prefix of the objects with which a store tests its server.
// They live for a moment; an old one comes from a killed process.
const ProbeFolder = "probe/"

// CheckKey returns the fault of key, or nil: see Store for the rule. Stores call it
// before every operation, so that all of them refuse a key that one of them could not hold.
func CheckKey(key string) error {
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return fmt.Errorf("key %q: segment %q not allowed", key, segment)
		}
	}
	return CheckPrefix(key)
}

// CheckPrefix is CheckKey for the prefix of a listing, which may be empty and may end
// anywhere in a key.
func CheckPrefix(prefix string) error {
	for i := range len(prefix) {
		c := prefix[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == '-', c == '/':
		default:
			return fmt.Errorf("key %q: character %q not allowed", prefix, c)
		}
	}
	return nil
}
