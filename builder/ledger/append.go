package ledger

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"gridcast/snapshots/blob"
)

// maxUnknown is how often in a row a write of unknown outcome is made again before the caller
// is told.
const maxUnknown = 4

// Append adds the events that decide returns, as one file, all of them or none. It gives them
// their ids, the instant and the actor, and returns them so.
//
// decide gets the state at the head and is called again, with the new state, whenever somebody
// else appended in between: it must base what it returns on that state alone. If it returns no
// events, or an error, nothing is written; its error is returned as it is.
//
// The error wraps a *RefusedError if an event breaks a rule, ErrOlder if at is before the
// head, ErrKind if the ledger was not opened to append, and blob.ErrUnknown if it could not be
// learned whether the events are in the ledger: then Refresh, once the store answers, tells.
func (l *Ledger) Append(ctx context.Context, at time.Time, actor string, decide func(*State) ([]Event, error)) ([]Event, error) {
	if l.kind == AnyKind {
		return nil, fmt.Errorf("append to the ledger: %w: it was loaded to be read only", ErrKind)
	}
	at = at.UTC().Round(0) // no monotonic reading: what is written is what is read back
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if err := l.refresh(ctx); err != nil {
			return nil, fmt.Errorf("append to the ledger: %w", err)
		}
		events, err := decide(l.State())
		if err != nil || len(events) == 0 {
			return nil, err
		}
		events = stamp(events, at, actor)
		won, err := l.write(ctx, events)
		if err != nil {
			return nil, fmt.Errorf("append to the ledger: %w", err)
		}
		if won {
			return events, nil
		}
	}
}

// stamp returns the events with what Append fills in.
func stamp(events []Event, at time.Time, actor string) []Event {
	stamped := make([]Event, len(events))
	for i, e := range events {
		e.ID, e.At, e.Actor = rand.Text(), at, actor
		stamped[i] = e
	}
	return stamped
}

// write checks the events and makes them the file after the head. It returns false if that
// place went to somebody else.
func (l *Ledger) write(ctx context.Context, events []Event) (won bool, err error) {
	if err := l.State().admit(events); err != nil {
		return false, err
	}
	head := l.Head()
	if head.Seq == maxSeq {
		return false, fmt.Errorf("%s is the last file there can be", Key(head.Seq))
	}
	data, err := File{Seq: head.Seq + 1, Previous: head.Hash, Kind: l.kind, Events: events}.Encode()
	if err != nil {
		return false, err
	}
	if _, err := DecodeFile(data); err != nil {
		return false, fmt.Errorf("the events can not be written down as they are: %w", err)
	}
	if won, err = l.create(ctx, Key(head.Seq+1), data); !won || err != nil {
		return false, err
	}
	return true, l.extend([][]byte{data})
}

// create puts data under key and says whether it is there. False means that something else is.
// The ids in data make it unlike anything else that could be there.
func (l *Ledger) create(ctx context.Context, key string, data []byte) (won bool, err error) {
	for range maxUnknown {
		_, err = l.store.Create(ctx, key, data)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, blob.ErrConflict) && !errors.Is(err, blob.ErrUnknown) {
			return false, err
		}
		// Not even a conflict is a defeat yet: the store may have repeated a write whose
		// first answer was lost.
		object, readErr := l.store.Get(ctx, key, blob.MaxDocument)
		if readErr == nil {
			return bytes.Equal(object.Data, data), nil
		}
		if !errors.Is(readErr, blob.ErrNotFound) {
			return false, fmt.Errorf("%w: %w; reading back: %w", blob.ErrUnknown, err, readErr)
		}
		// Nothing there: writing the same bytes again is safe, whatever became of the first.
	}
	return false, fmt.Errorf("%w: %w", blob.ErrUnknown, err)
}
