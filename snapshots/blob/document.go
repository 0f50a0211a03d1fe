package blob

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"gridcast/snapshots/retry"
)

// Document is an object that several processes read, edit and replace, such as settings.json.
// T is its content, for example a struct. A Document holds no state: make one where you need it.
type Document[T any] struct {
	Store Store
	Key   string
	Limit int64 // size limit in bytes; zero stands for MaxDocument

	// Decode reads the object. Its argument is empty if the store has no object, so that it
	// returns the content of a new document. An error says that the object is damaged. A nil
	// Decode stands for DecodeJSON into the zero T.
	Decode func(data []byte) (T, error)

	// Encode returns the bytes to store. Equal content must have equal bytes, because Update
	// recognises its own write by them. A nil Encode stands for indented JSON.
	Encode func(T) ([]byte, error)

	// Copied makes Update write the new content to CopyOf(Key) too, so that Heal can put it back: before an object that it
	// replaces, and after the first one, so that a copy without an object means that the object was lost. Update heals a
	// damaged or lost object before its edit.
	Copied bool
}

// CopyOf returns the key of the copy of a document.
func CopyOf(key string) string { return "copies/" + key }

// updateAttempts limits the writes of one Update. The store retries within each of them.
const updateAttempts = 50

// ErrDamaged means that Decode refused the bytes of a document.
var ErrDamaged = errors.New("is damaged")

// Load returns the content and the tag of the object. If the store has no object, the content is
// that of a new document and the tag is empty. The error wraps ErrDamaged, also if the object is lost and has a copy, or
// is the store's.
func (d Document[T]) Load(ctx context.Context) (T, Tag, error) {
	content, object, err := d.read(ctx)
	return content, object.Tag, err
}

// Swap replaces the object with content if it still has the tag old. Its errors are those of
// [Replace].
func (d Document[T]) Swap(ctx context.Context, old Tag, content T) (Tag, error) {
	data, err := d.encode(content)
	if err != nil {
		return "", err
	}
	return Replace(ctx, d.Store, d.Key, old, data)
}

// Update reads the object, lets edit change its content and replaces it. It returns the content
// that the object holds afterwards. If edit changes nothing, Update writes nothing,
// but waits until the object survives a crash.
//
// Update starts over with the newer content if another process replaced the object meanwhile, so
// edit may run several times and must depend on its argument alone. If the store loses the answer
// of a write, Update reads the object back: it returns without error if the object holds exactly
// the written bytes, and starts over otherwise. A lost write can therefore be applied twice, if
// another process replaced the object in between.
//
// An error of edit, of Decode or of the store ends Update. It wraps ErrUnknown if an earlier write
// may have been applied. After 50 writes Update returns the last error of the store, which wraps
// ErrConflict or ErrUnknown.
func (d Document[T]) Update(ctx context.Context, edit func(*T) error) (_ T, err error) {
	var none, content T
	var written []byte // by the last attempt, if its outcome is not known for certain
	var doubt error    // of the last write with an unknown outcome
	defer func() {
		if err != nil && doubt != nil && !errors.Is(err, ErrUnknown) {
			err = fmt.Errorf("%w; an earlier write may have been applied: %w", err, doubt)
		}
	}()
	backoff := retry.Rule{First: 20 * time.Millisecond, Longest: time.Second}
	for attempt := 1; ; attempt++ {
		current, object, err := d.read(ctx)
		if d.Copied && err != nil {
			_, _ = d.Heal(ctx) // the read shows whether it did
			current, object, err = d.read(ctx)
		}
		if err != nil {
			return none, err
		}
		if written != nil && bytes.Equal(object.Data, written) {
			return content, nil
		}
		before := object.Data
		if object.Tag == "" {
			before, _ = d.encode(current) // none: then any content is a change
		}
		content = current
		if err := edit(&content); err != nil {
			return none, err
		}
		if written, err = d.encode(content); err != nil {
			return none, err
		}
		if bytes.Equal(written, before) {
			if object.Tag != "" {
				err = confirm(ctx, d.Store, d.Key)
			}
			return content, err
		}
		if d.Copied && object.Tag != "" { // before the object, because an older copy would bring a revoked key back
			if err := d.copy(ctx, written); err != nil {
				return none, err
			}
		}
		switch _, err = d.Store.Swap(ctx, d.Key, object.Tag, written); {
		case err == nil:
			if d.Copied && object.Tag == "" {
				_, _ = d.Heal(ctx) // makes the copy, as the next Heal would
			}
			return content, nil
		case errors.Is(err, ErrConflict) && doubt == nil:
			// Another process was first. Equal bytes would be its write, and edit must see them.
			written = nil
		case inDoubt(err):
			doubt = err
		case !errors.Is(err, ErrConflict): // after a write in doubt, the conflict may be with that write
			return none, err
		}
		if attempt == updateAttempts {
			return none, fmt.Errorf("update %s: %d attempts: %w", d.Key, attempt, err)
		}
		if !backoff.Wait(ctx, attempt) {
			return none, fmt.Errorf("update %s: %w", d.Key, context.Cause(ctx))
		}
	}
}

// Heal replaces a damaged or lost object by its copy, and reports whether it did. The copy of a whole object follows it.
// Without a copy that can be read Heal does nothing: then a person decides.
func (d Document[T]) Heal(ctx context.Context) (healed bool, err error) {
	object, whole, err := d.get(ctx, d.Key)
	switch {
	case err != nil && !errors.Is(err, ErrNotFound):
		return false, err
	case whole:
		return false, d.copy(ctx, object.Data)
	}
	kept, whole, err := d.get(ctx, CopyOf(d.Key))
	switch {
	case errors.Is(err, ErrNotFound), err == nil && !whole: // a read of the document reports it
		return false, nil
	case err != nil:
		return false, err
	}
	_, err = Replace(ctx, d.Store, d.Key, object.Tag, kept.Data)
	return err == nil, err
}

// get reads the object or its copy, and reports whether its content can be decoded.
func (d Document[T]) get(ctx context.Context, key string) (object Object, whole bool, err error) {
	if object, err = d.Store.Get(ctx, key, cmp.Or(d.Limit, MaxDocument)); err != nil {
		return object, false, err
	}
	_, damaged := d.decode(object)
	return object, damaged == nil, nil
}

// copy makes the copy of the object hold data.
func (d Document[T]) copy(ctx context.Context, data []byte) error {
	limit := cmp.Or(d.Limit, MaxDocument)
	if kept, err := d.Store.Get(ctx, CopyOf(d.Key), limit); err == nil && bytes.Equal(kept.Data, data) {
		return nil
	}
	_, err := Put(ctx, d.Store, CopyOf(d.Key), limit, data)
	return err
}

// read returns the content of the object and the object itself, which is empty if there is none. An object without which
// there is a copy is lost.
func (d Document[T]) read(ctx context.Context) (T, Object, error) {
	var content T
	limit := cmp.Or(d.Limit, MaxDocument)
	object, err := d.Store.Get(ctx, d.Key, limit)
	if errors.Is(err, ErrNotFound) && d.Copied {
		if _, err = d.Store.Get(ctx, CopyOf(d.Key), limit); err == nil || errors.Is(err, ErrTooLarge) {
			// Another process may have written both since the first look.
			if object, err = d.Store.Get(ctx, d.Key, limit); errors.Is(err, ErrNotFound) {
				return content, Object{}, fmt.Errorf("%s in %s %w: it is lost, and a running scheduler or the next change puts its copy back", d.Key, d.Store, ErrDamaged)
			}
		}
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return content, Object{}, err
	}
	if content, err = d.decode(object); err != nil {
		return content, Object{}, fmt.Errorf("%s in %s %w: %w", d.Key, d.Store, ErrDamaged, err)
	}
	return content, object, nil
}

// decode takes an object without bytes for damaged, as a full disk or an editor leaves it: no writer makes one. Decode
// gets a blank in its place.
func (d Document[T]) decode(object Object) (content T, err error) {
	data := object.Data
	if object.Tag != "" && len(data) == 0 {
		data = []byte(" ")
	}
	if d.Decode != nil {
		return d.Decode(data)
	}
	return content, DecodeJSON(data, &content)
}

func (d Document[T]) encode(content T) ([]byte, error) {
	encode := d.Encode
	if encode == nil {
		encode = func(content T) ([]byte, error) { return json.MarshalIndent(content, "", "  ") }
	}
	data, err := encode(content)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", d.Key, err)
	}
	return data, nil
}

// DecodeJSON decodes the one JSON value of data into a pointer; without data it does nothing. It
// refuses unknown fields, because a program that ignores a field deletes it with its next edit.
func DecodeJSON(data []byte, into any) error {
	if len(data) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data after the value")
	}
	return nil
}

// claimAttempts is the number of writes of Claim when every answer is lost and no object is there
// afterwards. The store has retried within each attempt.
const claimAttempts = 4

// Claim creates key with data and reports whether key holds data now. It is for objects that
// are written once and never replaced, by a writer that must know the outcome: after a doubtful
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
