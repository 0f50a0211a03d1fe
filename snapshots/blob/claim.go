package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// claimAttempts is how often Claim writes when every answer is lost and nothing is there
// afterwards. The store has retried within each attempt.
const claimAttempts = 4

// Claim creates key with data and reports whether key holds data now. It is for objects that
// are written once and never replaced, and whose writer must know what became of the write:
// whatever Create answered, key is read back where the answer left a doubt.
//
//   - true: key holds exactly data. A conflict with the same bytes is a success, for it may be
//     an earlier attempt of this call whose answer was lost. Callers that must tell each
//     other apart put something unique into data, such as rand.Text().
//   - false and no error: key holds something else, and always will. Nothing was written.
//   - an error: the store failed. Whether data was written, or yet will be, is not known if the
//     error wraps ErrUnknown; otherwise it was not. Calling Claim again with the same bytes is
//     safe in both cases.
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
		case errors.Is(err, ErrUnknown), errors.Is(err, ErrConflict):
			// A conflict may be with ourselves: a store that repeats a write whose answer
			// it lost is refused by the object that the first one made.
			doubt = err
		default:
			return false, fmt.Errorf("claim %s: %w", key, errors.Join(doubt, err))
		}
		object, readErr := s.Get(ctx, key, int64(len(data)))
		switch {
		case readErr == nil:
			return bytes.Equal(object.Data, data), nil
		case errors.Is(readErr, ErrTooLarge):
			return false, nil
		case !errors.Is(readErr, ErrNotFound):
			return false, fmt.Errorf("claim %s: %w: %w; reading back: %w", key, ErrUnknown, err, readErr)
		}
		// Nothing is there: the write did not arrive, or not yet. To write the same bytes
		// again is right in both cases; if the first arrives meanwhile, this one is refused
		// and reading back shows our bytes.
	}
	return false, fmt.Errorf("claim %s: %w: nothing there after %d writes: %w", key, ErrUnknown, claimAttempts, doubt)
}

// Replace is Swap whose lost answer is read back: if key holds data then, it was not lost. An error that
// wraps ErrUnknown still leaves open whether data was written, or yet will be.
func Replace(ctx context.Context, s Store, key string, old Tag, data []byte) (Tag, error) {
	tag, err := s.Swap(ctx, key, old, data)
	if errors.Is(err, ErrUnknown) {
		if object, readErr := s.Get(ctx, key, int64(len(data))); readErr == nil && bytes.Equal(object.Data, data) {
			return object.Tag, nil
		}
	}
	return tag, err
}
