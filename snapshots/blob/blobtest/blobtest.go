// Package blobtest is the suite that every blob.Store must pass: the contract of blob.Store,
// sentence by sentence.
package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gridcast/snapshots/blob"
)

// timeout bounds an operation that a store promises within about a second.
const timeout = 10 * time.Second

// Run runs the suite; open returns an empty store without other users.
func Run(t *testing.T, open func(t *testing.T) blob.Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s blob.Store)
	}{
		{"get of nothing", getOfNothing},
		{"create then get", createThenGet},
		{"get has a limit", getHasALimit},
		{"create is once", createIsOnce},
		{"swap replaces", swapReplaces},
		{"swap refuses", swapRefuses},
		{"swap without old creates", swapCreates},
		{"delete", deletes},
		{"list", lists},
		{"list stops", listStops},
		{"keys", keys},
		{"data is owned by the receiver", ownership},
		{"ended context", endedContext},
		{"creates race", createsRace},
		{"swaps race", swapsRace},
		{"readers see whole objects", wholeObjects},
		{"watch sees a change", watchSeesChange},
		{"watch sees a creation", watchSeesCreation},
		{"watch sees a removal", watchSeesRemoval},
		{"watch returns at once", watchReturnsAtOnce},
		{"watch ends with its context", watchEnds},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

func getOfNothing(t *testing.T, s blob.Store) {
	_, err := s.Get(t.Context(), "folder/nothing.json", blob.MaxDocument)
	wantError(t, "get of a missing key", err, blob.ErrNotFound)
}

func createThenGet(t *testing.T, s blob.Store) {
	for _, test := range []struct {
		key  string
		data []byte
	}{
		{"current.json", []byte(`{"version":1}`)},
		{"objects/1/standings/drivers/2026.json.gz", []byte("\x1f\x8b\x00\xff\n")},
		{"empty", []byte{}},
		{"large", large(3 << 20)},
	} {
		tag := create(t, s, test.key, test.data)
		o := get(t, s, test.key)
		if !bytes.Equal(o.Data, test.data) {
			t.Errorf("%s: read %s, want %s", test.key, short(o.Data), short(test.data))
		}
		if tag == "" || o.Tag != tag {
			t.Errorf("%s: tag when written %q, when read %q; want equal and not empty", test.key, tag, o.Tag)
		}
	}
}

func getHasALimit(t *testing.T, s blob.Store) {
	data := large(3 << 20)
	tag := create(t, s, "a/large", data)
	o, err := s.Get(t.Context(), "a/large", int64(len(data)))
	if err != nil || !bytes.Equal(o.Data, data) || o.Tag != tag {
		t.Errorf("an object of the limit's size: got %d bytes, tag %q, %v", len(o.Data), o.Tag, err)
	}
	for _, limit := range []int64{0, 1, 4096, int64(len(data)) - 1} {
		o, err := s.Get(t.Context(), "a/large", limit)
		wantError(t, fmt.Sprintf("get of %d bytes, limit %d", len(data), limit), err, blob.ErrTooLarge)
		if o.Data != nil || o.Tag != "" {
			t.Errorf("limit %d: %d bytes were returned", limit, len(o.Data))
		}
		_, err = s.Watch(t.Context(), "a/large", "", limit)
		wantError(t, fmt.Sprintf("watch of %d bytes, limit %d", len(data), limit), err, blob.ErrTooLarge)
	}
	create(t, s, "a/empty", nil)
	if o, err := s.Get(t.Context(), "a/empty", 0); err != nil || len(o.Data) != 0 {
		t.Errorf("an empty object, limit 0: got %q, %v", o.Data, err)
	}
}

func createIsOnce(t *testing.T, s blob.Store) {
	create(t, s, "a/b", []byte("first"))
	_, err := s.Create(t.Context(), "a/b", []byte("second"))
	wantError(t, "second create", err, blob.ErrConflict)
	_, err = s.Create(t.Context(), "a/b", []byte("first"))
	wantError(t, "second create of the same bytes", err, blob.ErrConflict)
	wantData(t, s, "a/b", "first")
}

func swapReplaces(t *testing.T, s blob.Store) {
	tag := create(t, s, "a/b", []byte("one"))
	for _, next := range []string{"two", "three", ""} {
		fresh, err := s.Swap(t.Context(), "a/b", tag, []byte(next))
		if err != nil {
			t.Fatalf("swap to %q: %v", next, err)
		}
		if fresh == tag {
			t.Fatalf("swap to %q: the tag stayed %q", next, tag)
		}
		wantData(t, s, "a/b", next)
		tag = fresh
	}
}

func swapRefuses(t *testing.T, s blob.Store) {
	stale := create(t, s, "a/b", []byte("one"))
	fresh, err := s.Swap(t.Context(), "a/b", stale, []byte("two"))
	if err != nil {
		t.Fatalf("swap: %v", err)
	}
	_, err = s.Swap(t.Context(), "a/b", stale, []byte("three"))
	wantError(t, "swap with a stale tag", err, blob.ErrConflict)
	wantData(t, s, "a/b", "two")
	_, err = s.Swap(t.Context(), "a/b", "", []byte("three"))
	wantError(t, "swap of an existing object without old", err, blob.ErrConflict)
	wantData(t, s, "a/b", "two")
	if err := s.Delete(t.Context(), "a/b"); err != nil {
		t.Fatalf("delete: %v", err)
	}
	_, err = s.Swap(t.Context(), "a/b", fresh, []byte("three"))
	wantError(t, "swap of an object that is gone", err, blob.ErrConflict)
	_, err = s.Get(t.Context(), "a/b", blob.MaxDocument)
	wantError(t, "get after a refused swap", err, blob.ErrNotFound)
}

func swapCreates(t *testing.T, s blob.Store) {
	tag, err := s.Swap(t.Context(), "keys/keys.json", "", []byte("one"))
	if err != nil {
		t.Fatalf("swap without old: %v", err)
	}
	if o := get(t, s, "keys/keys.json"); o.Tag != tag {
		t.Errorf("tag when written %q, when read %q", tag, o.Tag)
	}
}

func deletes(t *testing.T, s blob.Store) {
	create(t, s, "a/b/c", []byte("c"))
	create(t, s, "a/d", []byte("d"))
	for range 2 { // a missing object is no error
		if err := s.Delete(t.Context(), "a/b/c"); err != nil {
			t.Fatalf("delete: %v", err)
		}
	}
	_, err := s.Get(t.Context(), "a/b/c", blob.MaxDocument)
	wantError(t, "get after delete", err, blob.ErrNotFound)
	wantData(t, s, "a/d", "d")
	create(t, s, "a/b/c", []byte("again"))
	wantData(t, s, "a/b/c", "again")
}

func keys(t *testing.T, s blob.Store) {
	for _, key := range []string{"", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "a b", "ä", "a\x00b", "@new/a", "a?b", "a%2Fb", `a\b`} {
		if _, err := s.Create(t.Context(), key, []byte("x")); err == nil {
			t.Errorf("create under key %q: no error", key)
		}
		if _, err := s.Get(t.Context(), key, blob.MaxDocument); err == nil || errors.Is(err, blob.ErrNotFound) {
			t.Errorf("get of key %q: got %v, want a refusal of the key", key, err)
		}
	}
	for _, key := range []string{"a", "A.b_c-d/9", ".hidden", "..."} {
		create(t, s, key, []byte(key))
		wantData(t, s, key, key)
	}
}

func ownership(t *testing.T, s blob.Store) {
	data := []byte("first")
	create(t, s, "a", data)
	data[0] = 'X'
	got := get(t, s, "a").Data
	got[1] = 'X'
	wantData(t, s, "a", "first")
}

func endedContext(t *testing.T, s blob.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Create(ctx, "a", []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("create after the context ended: got %v, want %v", err, context.Canceled)
	}
	if _, err := s.Get(ctx, "a", blob.MaxDocument); !errors.Is(err, context.Canceled) {
		t.Errorf("get after the context ended: got %v, want %v", err, context.Canceled)
	}
	_, err := s.Get(t.Context(), "a", blob.MaxDocument)
	wantError(t, "get after a create whose context had ended", err, blob.ErrNotFound)
}
