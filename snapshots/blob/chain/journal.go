package chain

import (
	"context"
	"fmt"
)

// Journal reads and appends entries of one type on a chain. E begins with a Link. A Journal is not
// safe for concurrent use, but any number of processes may append to one chain.
type Journal[E any] struct {
	Name    string // of the record, such as "facts log", for errors
	Chain   Chain
	Fold    func(*E) // gets each entry that is read or appended; may be nil
	Head    Head     // the last entry that was read
	Entries []E      // in order
}

// Refresh reads the entries that were appended since the last call. Damage is an error that wraps a *DamageError.
func (j *Journal[E]) Refresh(ctx context.Context) error {
	files, err := j.Chain.After(ctx, j.Head.Seq)
	if err != nil {
		return fmt.Errorf("read the %s: %w", j.Name, err)
	}
	for _, f := range files {
		head, damage := j.Chain.Follow(j.Head, f.Data)
		if f.Err != nil {
			damage = &DamageError{Key: j.Chain.Key(f.Seq), Want: "an entry", Got: f.Err.Error()}
		}
		if damage != nil {
			return fmt.Errorf("read the %s: %w", j.Name, damage)
		}
		var e E
		if err := Decode(f.Data, &e); err != nil {
			return fmt.Errorf("read the %s: %s: %w", j.Name, j.Chain.Key(f.Seq), err)
		}
		j.add(head, &e)
	}
	return nil
}

// Append adds an entry whose link is Head.Next(). It returns false if another process appended
// first: then Refresh, decide again, and Append the new entry.
func (j *Journal[E]) Append(ctx context.Context, e E) (won bool, err error) {
	data, err := Encode(e)
	var head Head
	if err == nil {
		head, won, err = j.Chain.Append(ctx, j.Head, data)
	}
	if err != nil {
		return false, fmt.Errorf("append to the %s: %w", j.Name, err)
	}
	if won {
		j.add(head, &e)
	}
	return won, nil
}

func (j *Journal[E]) add(head Head, e *E) {
	j.Head, j.Entries = head, append(j.Entries, *e)
	if j.Fold != nil {
		j.Fold(e)
	}
}
