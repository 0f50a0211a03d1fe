package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// claimAttempts is the number of writes of Claim when every answer is lost and no object is there
// afterwards. The store has retried within each attempt.
const claimAttempts = 4

// Claim creates key with data and reports whether key holds data now. It is for objects that
// are written once and never replaced, and whose writer must know the outcome: after a doubtful
// answer of Create, Claim reads key back.
//
//   - true: key holds exactly data. A conflict with the same bytes is a success, because it may be
//     an earlier attempt of this call with a lost answer. Callers that must tell each
//     other apart put something unique into data, such as rand.Text().
//   - false and no error: key holds other data, and always will. Nothing was written.
//   - an error: the store failed. If the error wraps ErrUnknown, data may be or become written, and a crash may undo
//     it if the error wraps ErrUnsynced; otherwise it was not written. Calling Claim again with the same bytes is safe
//     in both cases.
//
// Any number of goroutines and processes may claim a key at once; if their bytes differ,
// exactly one of them gets true.
func Claim(ctx context.Context, s Store, key string, data []byte) (bool, error) {
	var doubt error // of the last attempt, if it may have been applied
	for range claimAttempts {
		_, err := s.Create(ctx, key, data)
		switch {
		case err == nil:
			return true, nil
		case inDoubt(err), errors.Is(err, ErrConflict):
			// The conflict may be our own: a store that repeats a write after a lost answer
			// is refused by the object of the first attempt.
			doubt = err
		default:
			return false, fmt.Errorf("claim %s: %w", key, errors.Join(doubt, err))
		}
		object, readErr := s.Get(ctx, key, int64(len(data)))
		switch {
		case readErr == nil && bytes.Equal(object.Data, data):
			err = confirm(ctx, s, key)
			return err == nil, err
		case readErr == nil:
			return false, nil
		case errors.Is(readErr, ErrTooLarge):
			return false, nil
		case !errors.Is(readErr, ErrNotFound):
			return false, fmt.Errorf("claim %s: %w: %w; reading back: %w", key, ErrUnknown, err, readErr)
		}
		// The key is empty: the write did not arrive, or not yet. Writing the same bytes
		// again is right in both cases. If the first arrives meanwhile, this one is refused
		// and the next read shows our bytes.
	}
	return false, fmt.Errorf("claim %s: %w: nothing there after %d writes: %w", key, ErrUnknown, claimAttempts, doubt)
}

// inDoubt reports whether a read tells the outcome of the write with this error.
func inDoubt(err error) bool { return errors.Is(err, ErrUnknown) && !errors.Is(err, ErrUnsynced) }

// Replace is Swap that reads a lost answer back: if key holds data then, the write succeeded. An error that
// wraps ErrUnknown leaves open whether data was written, or yet will be.
func Replace(ctx context.Context, s Store, key string, old Tag, data []byte) (Tag, error) {
	tag, err := s.Swap(ctx, key, old, data)
	if inDoubt(err) {
		if object, readErr := s.Get(ctx, key, int64(len(data))); readErr == nil && bytes.Equal(object.Data, data) {
			return object.Tag, nil
		}
	}
	return tag, err
}

// Put makes key hold data, in place of any other content, and reports whether it had to write. It removes an object of
// more than limit bytes before it writes. Put never writes equal bytes again. After a lost answer it takes equal bytes for
// its own.
func Put(ctx context.Context, s Store, key string, limit int64, data []byte) (wrote bool, err error) {
	_, err = s.Create(ctx, key, data) // most keys are new
	switch {
	case inDoubt(err): // Claim first, because Update cannot tell a missing object from an empty one
		if created, err := Claim(ctx, s, key, data); created || err != nil {
			return created, err
		}
	case !errors.Is(err, ErrConflict):
		return err == nil, err
	}
	same := func(data []byte) ([]byte, error) { return data, nil }
	d := Document[[]byte]{Store: s, Key: key, Limit: limit, Decode: same, Encode: same}
	_, err = d.Update(ctx, func(content *[]byte) error {
		wrote = !bytes.Equal(*content, data)
		*content = data
		return nil
	})
	if errors.Is(err, ErrTooLarge) {
		wrote = true
		if err = s.Delete(ctx, key); err == nil {
			_, err = s.Create(ctx, key, data)
		}
	}
	return wrote && err == nil, err
}
