package blobtest

import (
	"context"
	"errors"
	"testing"

	"gridcast/snapshots/blob"
)

// watching starts a Watch and returns a function that waits for its result.
func watching(t *testing.T, s blob.Store, key string, seen blob.Tag) func() (blob.Object, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	type answer struct {
		o   blob.Object
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		o, err := s.Watch(ctx, key, seen, blob.MaxDocument)
		answers <- answer{o, err}
	}()
	return func() (blob.Object, error) {
		t.Helper()
		defer cancel()
		a := <-answers
		if errors.Is(a.err, context.DeadlineExceeded) {
			t.Fatalf("watch %s: saw nothing within %v", key, timeout)
		}
		return a.o, a.err
	}
}

func watchSeesChange(t *testing.T, s blob.Store) {
	tag := create(t, s, "keys/keys.json", []byte("one"))
	wait := watching(t, s, "keys/keys.json", tag)
	fresh, err := s.Swap(t.Context(), "keys/keys.json", tag, []byte("two"))
	if err != nil {
		t.Fatalf("swap: %v", err)
	}
	o, err := wait()
	if err != nil || string(o.Data) != "two" || o.Tag != fresh {
		t.Errorf("got %q, tag %q, %v; want \"two\", tag %q", o.Data, o.Tag, err, fresh)
	}
}

func watchSeesCreation(t *testing.T, s blob.Store) {
	wait := watching(t, s, "folder/current.json", "")
	create(t, s, "folder/current.json", []byte("one"))
	if o, err := wait(); err != nil || string(o.Data) != "one" {
		t.Errorf("got %q, %v; want \"one\"", o.Data, err)
	}
}

func watchSeesRemoval(t *testing.T, s blob.Store) {
	tag := create(t, s, "current.json", []byte("one"))
	wait := watching(t, s, "current.json", tag)
	if err := s.Delete(t.Context(), "current.json"); err != nil {
		t.Fatalf("delete: %v", err)
	}
	_, err := wait()
	wantError(t, "watch of a removed object", err, blob.ErrNotFound)
}

func watchReturnsAtOnce(t *testing.T, s blob.Store) {
	create(t, s, "current.json", []byte("one"))
	for _, seen := range []blob.Tag{"", "another"} {
		if o, err := watching(t, s, "current.json", seen)(); err != nil || string(o.Data) != "one" {
			t.Errorf("seen %q: got %q, %v; want \"one\"", seen, o.Data, err)
		}
	}
}

func watchEnds(t *testing.T, s blob.Store) {
	tag := create(t, s, "current.json", []byte("one"))
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Watch(ctx, "current.json", tag, blob.MaxDocument)
		done <- err
	}()
	cancel(cause)
	wantError(t, "watch whose context ended", <-done, cause)
}
