package notes

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"gridcast/snapshots/blob"
)

// ErrLower means that every key which signed a note has signed a higher number, or another content under the same
// number.
var ErrLower = errors.New("lower than the highest number that its keys have signed")

// Ratchet keeps the highest number that each key has signed, in an object of a store that only its owner
// writes. Each key has its own, so that a stolen key which signs a huge number blocks no other key.
type Ratchet struct {
	document blob.Document[map[string]Mark]
}

// Mark is the highest number that a key has signed.
type Mark struct {
	Number  int64  `json:"number"`
	Content string `json:"content"` // a hash of the content under this number
}

// NewRatchet returns the ratchet in an object of a store.
func NewRatchet(store blob.Store, key string) *Ratchet {
	return &Ratchet{blob.Document[map[string]Mark]{Store: store, Key: key}}
}

// Check returns ErrLower unless at least one of the keys may sign the number now.
func (r *Ratchet) Check(ctx context.Context, keys []string, next Mark) error {
	marks, _, err := r.document.Load(ctx)
	if err == nil {
		err = allowed(marks, keys, next)
	}
	return err
}

// Raise is Check, and raises the marks of the keys. Raise writes them to disk before it returns, so call it
// before the content is used.
func (r *Ratchet) Raise(ctx context.Context, keys []string, next Mark) error {
	_, err := r.document.Update(ctx, func(marks *map[string]Mark) error {
		if err := allowed(*marks, keys, next); err != nil {
			return err
		}
		raised := map[string]Mark{}
		maps.Copy(raised, *marks)
		for _, key := range keys {
			if raised[key].Number < next.Number {
				raised[key] = next
			}
		}
		*marks = raised
		return nil
	})
	return err
}

func allowed(marks map[string]Mark, keys []string, next Mark) error {
	highest := int64(0)
	for _, key := range keys {
		mark := marks[key]
		if mark.Number < next.Number || mark == next {
			return nil
		}
		highest = max(highest, mark.Number)
	}
	return fmt.Errorf("%w: %d, after %d", ErrLower, next.Number, highest)
}
