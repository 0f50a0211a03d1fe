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

// watched returns a store with one object.
func watched(t testing.TB, data []byte) (s *dirblob.Store, path string, tag blob.Tag) {
	t.Helper()
	root := t.TempDir()
	s = must.Get(dirblob.Open(root))(t)
	tag = must.Get(s.Create(t.Context(), watchedKey, data))(t)
	return s, filepath.Join(root, filepath.FromSlash(watchedKey)), tag
}

// wantRead waits until the object is another one than the caller has seen, and returns its tag.
func wantRead(t *testing.T, s *dirblob.Store, seen blob.Tag, data string) blob.Tag {
	t.Helper()
	o, err := s.Watch(t.Context(), watchedKey, seen, blob.MaxDocument)
	must.Hold(t, err == nil && string(o.Data) == data, "got %q, %v; want %q", o.Data, err, data)
	return o.Tag
}

// The watch must see every swap, also when the bytes have the same size, the swaps follow one another
// within a tick of the file system's clock, and inodes are used again.
func TestWatchedSeesEverySwap(t *testing.T) {
	s, _, tag := watched(t, []byte("0"))
	for i := range 100 {
		seen := tag
		for _, data := range []string{"x", string(rune('a' + i%26))} {
			tag = must.Get(s.Swap(t.Context(), watchedKey, tag, []byte(data)))(t)
		}
		must.Equal(t, "tag", tag, wantRead(t, s, seen, string(rune('a'+i%26))))
	}
}

func TestWatchedSeesRemovalAndReturn(t *testing.T) {
	s, _, tag := watched(t, []byte("a"))
	must.Do(t, s.Delete(t.Context(), watchedKey))
	must.Fail(t, "removed", must.Err(s.Watch(t.Context(), watchedKey, tag, blob.MaxDocument)), blob.ErrNotFound)
	must.Get(s.Create(t.Context(), watchedKey, []byte("b")))(t)
	wantRead(t, s, "", "b")
	wantRead(t, s, tag, "b")
}

// A person may write to the file in place, even without another size or time; no program of ours does.
func TestWatchedSeesAFileWrittenInPlace(t *testing.T) {
	s, path, tag := watched(t, []byte("before"))
	written := must.Get(os.Stat(path))(t).ModTime()
	file := must.Get(os.OpenFile(path, os.O_WRONLY, 0))(t)
	defer func() { _ = file.Close() }()
	for _, data := range []string{"second", "length"} {
		waiting := make(chan blob.Object, 1)
		go func() {
			o, _ := s.Watch(t.Context(), watchedKey, tag, blob.MaxDocument)
			waiting <- o
		}()
		must.Get(file.WriteAt([]byte(data), 0))(t)
		must.Do(t, os.Chtimes(path, written, written))
		o := <-waiting
		must.Equal(t, "content", data, string(o.Data))
		tag = o.Tag
	}
}

// TestWatchOfALargeSeenObject waits with little memory, because every edge with many keys waits all day.
func TestWatchOfALargeSeenObject(t *testing.T) {
	const size = 8 << 20
	s, _, tag := watched(t, make([]byte, size))
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
