package notes

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gridcast/snapshots/blob"
)

// ErrLower means that every key which signed a note has signed a higher number, or another content under the same
// number.
var ErrLower = errors.New("lower than the highest number that its keys have signed")

// errNoDisk is the error of a ratchet without a store.
var errNoDisk = errors.New("there is no disk for the highest numbers")

// Ratchet keeps the highest number that each key has signed, in memory and in an object of a store that only its owner
// writes. Each key has its own, so that a stolen key which signs a huge number blocks no other key. An object that cannot
// be decoded counts as empty and is replaced. It is safe for concurrent use.
type Ratchet struct {
	document blob.Document[map[string]Mark]

	mu    sync.Mutex // guards marks
	marks map[string]Mark
}

// Mark is the highest number that a key has signed.
type Mark struct {
	Number  int64  `json:"number"`
	Content string `json:"content"` // a hash of the content under this number
}

// NewRatchet returns the ratchet in an object of a store. A nil store keeps the numbers in memory alone.
func NewRatchet(store blob.Store, key string) *Ratchet {
	decode := func(data []byte) (marks map[string]Mark, err error) {
		if blob.DecodeJSON(data, &marks) != nil {
			marks = map[string]Mark{} // the next Raise replaces it
		}
		return marks, nil
	}
	return &Ratchet{document: blob.Document[map[string]Mark]{Store: store, Key: key, Decode: decode}, marks: map[string]Mark{}}
}

// Check returns ErrLower unless at least one of the keys may sign the number now, as far as memory and disk know.
func (r *Ratchet) Check(ctx context.Context, keys []string, next Mark) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.document.Store != nil {
		marks, _, _ := r.document.Load(ctx) // none with an error: then memory decides
		raise(r.marks, marks)
	}
	return allowed(r.marks, keys, next)
}

// Raise is Check, and raises the marks of the keys. Call it before the content is used. It returns after the marks are
// on disk. Any other error than ErrLower says that they are in memory alone, so that an older content could follow after
// a restart.
func (r *Ratchet) Raise(ctx context.Context, keys []string, next Mark) error {
	if err := r.Check(ctx, keys, next); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range keys {
		raise(r.marks, map[string]Mark{key: next})
	}
	if r.document.Store == nil {
		return errNoDisk
	}
	_, err := r.document.Update(ctx, func(marks *map[string]Mark) error {
		raised := map[string]Mark{}
		raise(raised, *marks)
		raise(raised, r.marks)
		*marks = raised
		return nil
	})
	return err
}

// raise raises the marks to others where those are higher.
func raise(marks, others map[string]Mark) {
	for key, mark := range others {
		if marks[key].Number < mark.Number {
			marks[key] = mark
		}
	}
}

func allowed(marks map[string]Mark, keys []string, next Mark) error {
	var highest int64
	for _, key := range keys {
		mark := marks[key]
		if mark.Number < next.Number || mark == next {
			return nil
		}
		highest = max(highest, mark.Number)
	}
	return fmt.Errorf("%w: %d, after %d", ErrLower, next.Number, highest)
}
