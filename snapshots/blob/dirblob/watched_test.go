package dirblob_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
)

const watchedKey = "keys/keys.json"

// watched returns a store with one object, and the polls of its file.
func watched(t testing.TB, data []byte) (s *dirblob.Store, w *dirblob.Watched, path string, tag blob.Tag) {
	t.Helper()
	root := t.TempDir()
	s, err := dirblob.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if tag, err = s.Create(t.Context(), watchedKey, data); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(root, filepath.FromSlash(watchedKey))
	w = dirblob.NewWatched(path)
	t.Cleanup(w.Close)
	return s, w, path, tag
}

func wantUnchanged(t *testing.T, w *dirblob.Watched) {
	t.Helper()
	if o, err := w.Look(); !errors.Is(err, dirblob.ErrUnchanged) {
		t.Errorf("got %q, %v; want it unchanged", o.Data, err)
	}
}

func wantRead(t *testing.T, w *dirblob.Watched, data string) {
	t.Helper()
	if o, err := w.Look(); err != nil || string(o.Data) != data {
		t.Errorf("got %q, %v; want %q", o.Data, err, data)
	}
}

// The watch must see every swap, also when the bytes have the same size, the swaps follow one another
// within a tick of the file system's clock, and inodes are used again.
func TestWatchedSeesEverySwap(t *testing.T) {
	s, w, _, tag := watched(t, []byte("0"))
	wantRead(t, w, "0")
	for i := range 100 {
		wantUnchanged(t, w)
		for _, data := range []string{"x", string(rune('a' + i%26))} {
			var err error
			if tag, err = s.Swap(t.Context(), watchedKey, tag, []byte(data)); err != nil {
				t.Fatal(err)
			}
		}
		wantRead(t, w, string(rune('a'+i%26)))
	}
}

func TestWatchedSeesRemovalAndReturn(t *testing.T) {
	s, w, _, _ := watched(t, []byte("a"))
	wantRead(t, w, "a")
	if err := s.Delete(t.Context(), watchedKey); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Look(); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("removed: got %v", err)
	}
	if _, err := s.Create(t.Context(), watchedKey, []byte("b")); err != nil {
		t.Fatal(err)
	}
	wantRead(t, w, "b")
	wantUnchanged(t, w)
}

// A person may write to the file; no program of ours does.
func TestWatchedSeesAFileWrittenInPlace(t *testing.T) {
	_, w, path, _ := watched(t, []byte("a"))
	wantRead(t, w, "a")
	if err := os.WriteFile(path, []byte("longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantRead(t, w, "longer")
	if err := os.WriteFile(path, []byte("length"), 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	wantRead(t, w, "length")
	wantUnchanged(t, w)
}

// BenchmarkLook is the work of Watch in each second while an object of 24 MB, such as the list
// of 100,000 keys, is unchanged.
func BenchmarkLook(b *testing.B) {
	_, w, _, _ := watched(b, bytes.Repeat([]byte("0123456789abcdef"), 24<<20/16))
	if _, err := w.Look(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Look(); !errors.Is(err, dirblob.ErrUnchanged) {
			b.Fatal(err)
		}
	}
}

// BenchmarkGet reads such an object.
func BenchmarkGet(b *testing.B) {
	s, _, _, _ := watched(b, bytes.Repeat([]byte("0123456789abcdef"), 24<<20/16))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Get(b.Context(), watchedKey, blob.MaxDocument); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFirstLook reads such an object, like a Watch that finds another one.
func BenchmarkFirstLook(b *testing.B) {
	_, _, path, _ := watched(b, bytes.Repeat([]byte("0123456789abcdef"), 24<<20/16))
	b.ReportAllocs()
	for b.Loop() {
		w := dirblob.NewWatched(path)
		if _, err := w.Look(); err != nil {
			b.Fatal(err)
		}
		w.Close()
	}
}
