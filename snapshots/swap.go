package snapshots

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gridcast/snapshots/blob"
)

// settleTime is how long a publish goes on to learn the outcome of its swap after its
// context has ended.
const settleTime = 5 * time.Second

// swap makes next the pointer if it still is the one with the tag old, of version base.
// Whatever the store answers, the pointer is read back: what it says is what readers see.
func (p *Publisher) swap(ctx context.Context, old blob.Tag, base int64, next Pointer) error {
	data, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("pointer: %w", err)
	}
	var unknown error // of a swap that may arrive yet
	for attempt := 0; ; attempt++ {
		_, swapErr := p.Store.Swap(ctx, PointerKey, old, data)
		if errors.Is(swapErr, blob.ErrUnknown) {
			unknown = swapErr
		}
		outcome, err := p.outcome(ctx, old, next)
		switch {
		case err != nil:
			return fmt.Errorf("make version %d current: %w", next.Version, errors.Join(blob.ErrUnknown, swapErr, err))
		case outcome == won:
			return nil
		case outcome == lost:
			return fmt.Errorf("make version %d current: %w (base was %d)", next.Version, ErrBaseChanged, base)
		case swapErr == nil:
			return fmt.Errorf("make version %d current: %w: the store took the pointer and returns the old one", next.Version, ErrDamaged)
		case attempt >= unknownAttempts || !errors.Is(swapErr, blob.ErrUnknown):
			return fmt.Errorf("make version %d current: %w", next.Version, errors.Join(unknown, swapErr))
		}
		// Still the old pointer. If the lost swap arrives later, this repetition is refused,
		// and reading back shows that the first one won.
	}
}

type outcome int

const (
	undecided outcome = iota // the pointer is the base's
	won                      // the version is current, or was until a later one followed
	lost                     // another version followed the base
)

// outcome reads the pointer back.
func (p *Publisher) outcome(ctx context.Context, old blob.Tag, next Pointer) (outcome, error) {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		defer cancel()
	}
	pointer, tag, err := LoadPointer(ctx, p.Store)
	switch {
	case errors.Is(err, ErrNone) && old == "", err == nil && tag == old:
		return undecided, nil
	case err != nil:
		return undecided, err
	case pointer.Version == next.Version && pointer.Manifest == next.Manifest:
		return won, nil
	}
	return p.ancestor(ctx, pointer, next.Version)
}

// ancestor says won if the version is among those that the pointer's version was built on.
func (p *Publisher) ancestor(ctx context.Context, pointer Pointer, version int64) (outcome, error) {
	at, hash := pointer.Version, pointer.Manifest
	for at > version {
		manifest, _, err := loadManifest(ctx, p.Store, at, hash)
		if err != nil {
			return undecided, err
		}
		at, hash = manifest.Base, manifest.BaseManifest
	}
	if at == version {
		return won, nil
	}
	return lost, nil
}
