package keys

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gridcast/snapshots/blob"
)

// maxDocument is the largest document that is read, in bytes: some 200,000 keys.
const maxDocument = 64 << 20

// Load reads the document. A store without one yields an empty document and an empty tag.
func Load(ctx context.Context, store blob.Store) (*Document, blob.Tag, error) {
	object, err := store.Get(ctx, Object, maxDocument)
	if errors.Is(err, blob.ErrNotFound) {
		return &Document{Format: format}, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("load keys: %w", err)
	}
	d, err := Decode(object.Data)
	if err != nil {
		return nil, "", fmt.Errorf("load %s of %s: %w", Object, store, err)
	}
	return d, object.Tag, nil
}

// Update applies change to the document and stores it, if nobody else changed it meanwhile;
// otherwise it starts over with the newer document, so change may run more than once and must
// take everything from its argument. It returns the error of change as it is. When the answer
// of the store is lost and the document read back is not the one written, the change may be
// applied twice: a key nobody knows may remain, never a client without one.
func Update(ctx context.Context, store blob.Store, change func(*Document) error) error {
	for attempt := 0; ; attempt++ {
		d, tag, err := Load(ctx, store)
		if err != nil {
			return err
		}
		if err := change(d); err != nil {
			return err
		}
		data, err := d.Encode()
		if err != nil {
			return err
		}
		_, err = store.Swap(ctx, Object, tag, data)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, blob.ErrUnknown):
			if stored, err := store.Get(ctx, Object, maxDocument); err == nil && bytes.Equal(stored.Data, data) {
				return nil
			}
		case !errors.Is(err, blob.ErrConflict):
			return fmt.Errorf("update keys: %w", err)
		}
		if err := pause(ctx, attempt); err != nil {
			return fmt.Errorf("update keys: %w", err)
		}
	}
}

// pause waits before another attempt: longer each time, up to a second, and by chance, so
// that two writers do not meet again.
func pause(ctx context.Context, attempt int) error {
	longest := min(20*time.Millisecond<<min(attempt, 6), time.Second)
	select {
	case <-time.After(rand.N(longest)): //nolint:gosec // spreads writers, guards nothing
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
