package dirblob_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
)

const watchedKey = "keys/keys.json"

// watched returns a store with one object, and the polls of its file.
func watched(t testing.TB, data []byte) (s *dirblob.Store, w *dirblob.Watched, path string, tag blob.Tag) {
	t.Helper()
	root := t.TempDir()
	s = must.Get(dirblob.Open(root))(t)
	tag = must.Get(s.Create(t.Context(), watchedKey, data))(t)
	path = filepath.Join(root, filepath.FromSlash(watchedKey))
	w = dirblob.NewWatched(path)
	t.Cleanup(w.Close)
	return s, w, path, tag
}

func wantUnchanged(t *testing.T, w *dirblob.Watched) {
	t.Helper()
	o, err := w.Look()
	must.Hold(t, errors.Is(err, dirblob.ErrUnchanged), "got %q, %v; want it unchanged", o.Data, err)
}

func wantRead(t *testing.T, w *dirblob.Watched, data string) {
	t.Helper()
	o, err := w.Look()
	must.Hold(t, err == nil && string(o.Data) == data, "got %q, %v; want %q", o.Data, err, data)
}

// The watch must see every swap, also when the bytes have the same size, the swaps follow one another
// within a tick of the file system's clock, and inodes are used again.
func TestWatchedSeesEverySwap(t *testing.T) {
	s, w, _, tag := watched(t, []byte("0"))
	wantRead(t, w, "0")
	for i := range 100 {
		wantUnchanged(t, w)
		for _, data := range []string{"x", string(rune('a' + i%26))} {
			tag = must.Get(s.Swap(t.Context(), watchedKey, tag, []byte(data)))(t)
		}
		wantRead(t, w, string(rune('a'+i%26)))
	}
}

func TestWatchedSeesRemovalAndReturn(t *testing.T) {
	s, w, _, _ := watched(t, []byte("a"))
	wantRead(t, w, "a")
	must.Do(t, s.Delete(t.Context(), watchedKey))
	must.Fail(t, "removed", must.Err(w.Look()), blob.ErrNotFound)
	must.Get(s.Create(t.Context(), watchedKey, []byte("b")))(t)
	wantRead(t, w, "b")
	wantUnchanged(t, w)
}

// A person may write to the file; no program of ours does.
func TestWatchedSeesAFileWrittenInPlace(t *testing.T) {
	_, w, path, _ := watched(t, []byte("a"))
	wantRead(t, w, "a")
	must.Do(t, os.WriteFile(path, []byte("longer"), 0o600))
	wantRead(t, w, "longer")
	must.Do(t, os.WriteFile(path, []byte("length"), 0o600))
	later := time.Now().Add(time.Hour)
	must.Do(t, os.Chtimes(path, later, later))
	wantRead(t, w, "length")
	wantUnchanged(t, w)
}

// TestWatchOfALargeSeenObject waits with little memory, because every edge with many keys waits all day.
func TestWatchOfALargeSeenObject(t *testing.T) {
	const size = 8 << 20
	s, _, _, tag := watched(t, make([]byte, size))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	o, err := s.Watch(ctx, watchedKey, tag, size)
	must.Hold(t, errors.Is(err, context.DeadlineExceeded), "got %d bytes, %v; want the end of the wait", len(o.Data), err)
	runtime.ReadMemStats(&after)
	took := after.TotalAlloc - before.TotalAlloc
	must.Hold(t, took <= size/4, "the wait took %d bytes of memory for an object of %d", took, size)
	o, err = s.Watch(t.Context(), watchedKey, "other", size)
	must.Hold(t, err == nil && len(o.Data) == size && o.Tag == tag,
		"after another object: got %d bytes, tag %s, %v", len(o.Data), o.Tag, err)
}
