package chain

import (
	"context"
	"fmt"
)

// Journal reads and appends entries of one type on a chain. E begins with a Link. A Journal is not
// safe for concurrent use, but any number of processes may append to one chain.
type Journal[E any] struct {
	Chain   Chain
	Head    Head // the last entry that was read
	Entries []E  // in order
}

// Refresh reads the entries that were appended since the last call and hands each to fold, unless
// fold is nil. Damage is an error that wraps a *DamageError.
func (j *Journal[E]) Refresh(ctx context.Context, fold func(*E)) error {
	files, err := j.Chain.After(ctx, j.Head.Seq)
	if err != nil {
		return err
	}
	for _, f := range files {
		head, damage := j.Chain.Follow(j.Head, f.Data)
		if damage != nil {
			return damage
		}
		var e E
		if err := Decode(f.Data, &e); err != nil {
			return fmt.Errorf("%s: %w", j.Chain.Key(f.Seq), err)
		}
		j.add(head, &e, fold)
	}
	return nil
}

// Append adds an entry whose link is Head.Next(). It returns false if another process appended
// first: then Refresh, decide again, and Append the new entry.
func (j *Journal[E]) Append(ctx context.Context, e E, fold func(*E)) (bool, error) {
	data, err := Encode(e)
	if err != nil {
		return false, err
	}
	head, won, err := j.Chain.Append(ctx, j.Head, data)
	if err != nil || !won {
		return false, err
	}
	j.add(head, &e, fold)
	return true, nil
}

func (j *Journal[E]) add(head Head, e *E, fold func(*E)) {
	j.Head, j.Entries = head, append(j.Entries, *e)
	if fold != nil {
		fold(e)
	}
}
