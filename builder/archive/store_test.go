package archive_test

import (
	"bytes"
	"context"
	"errors"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/archive"
	"gridcast/builder/season"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// packed returns the small facts after a change, in parts.
func packed(t *testing.T, base archive.Stored, change func(*season.Facts)) archive.Stored {
	t.Helper()
	facts := smallFacts()
	change(&facts)
	a, err := season.New(facts)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := archive.Pack(a, base)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// keys returns the keys of the archives in a store.
func keys(t *testing.T, store blob.Store) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	for info, err := range store.List(t.Context(), "archives/") {
		if err != nil {
			t.Fatal(err)
		}
		found[info.Key] = info.Size
	}
	return found
}

// A changed season replaces one part. A store opened anew reads the same facts, and a store that has the archive
// before reads the list and the new part alone.
func TestPartsOfASeason(t *testing.T) {
	inner := memblob.New(memblob.Strict(t, snapshots.Immutable))
	reads := map[string]int{}
	var mu sync.Mutex
	store := faultblob.Wrap(inner, func(_ context.Context, call faultblob.Call) faultblob.Fate {
		mu.Lock()
		defer mu.Unlock()
		if call.Op == faultblob.Get {
			reads[path.Dir(call.Key)]++
		}
		return faultblob.Fate{}
	})
	writer, follower := archive.NewStore(inner), archive.NewStore(store)
	first := packed(t, archive.Stored{}, func(*season.Facts) {})
	if err := writer.Put(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if _, err := follower.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := keys(t, inner)
	if len(before) != 1+3 {
		t.Errorf("an archive of two seasons: objects %v, want the list and three parts", before)
	}
	rename := func(f *season.Facts) { f.Seasons[1].Rounds[0].Name = "Another Grand Prix" }
	next := packed(t, first, rename)
	if whole := packed(t, archive.Stored{}, rename); whole.SHA256 != next.SHA256 || !bytes.Equal(whole.File(), next.File()) {
		t.Errorf("digest %s with parts of the archive before, %s without", next.SHA256, whole.SHA256)
	}
	if err := writer.Put(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if after := keys(t, inner); len(after) != len(before)+2 {
		t.Errorf("after a change of one season: objects %v, want a list and a part more than %v", after, before)
	}
	clear(reads)
	got, err := follower.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{".": 1, "archives": 1, "archives/parts": 1}, reads); diff != "" {
		t.Errorf("reads of a changed archive (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(next.Archive.Facts(), got.Archive.Facts()); diff != "" || got.SHA256 != next.SHA256 {
		t.Errorf("digest %s, want %s; facts (-want +got):\n%s", got.SHA256, next.SHA256, diff)
	}
	if !bytes.Equal(next.File(), got.File()) {
		t.Error("the file of the loaded archive differs")
	}
	list, err := follower.List(t.Context())
	if err != nil || len(list) != 2 || list[0].Bytes+list[1].Bytes == 0 {
		t.Errorf("list: %+v, %v; want two archives with their sizes", list, err)
	}
}

// Decades that are over share a part.
func TestPartsOfDecades(t *testing.T) {
	store := memblob.New()
	stored := packed(t, archive.Stored{}, func(f *season.Facts) {
		for year := 2005; year < 2024; year++ {
			s := season.Season{Year: year, Rounds: []season.Round{{Number: 1, GrandPrix: "g", Name: "G", Circuit: "c", Date: time.Date(year, 5, 1, 0, 0, 0, 0, time.UTC)}}}
			f.Seasons = slices.Insert(f.Seasons, len(f.Seasons)-2, s)
		}
	})
	if err := archive.NewStore(store).Put(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	// The list; the header, the 2000s, the 2010s, and 2020 to 2025.
	if got := keys(t, store); len(got) != 1+1+2+6 {
		t.Errorf("%d objects, want 10: %v", len(got), got)
	}
	again, err := archive.Read(stored.File())
	if err != nil || again.SHA256 != stored.SHA256 {
		t.Errorf("its file: digest %s, %v; want %s", again.SHA256, err, stored.SHA256)
	}
}

// A damaged part is an error that names it, and a part that an earlier release compressed otherwise is the same part.
func TestDamagedParts(t *testing.T) {
	stored := packed(t, archive.Stored{}, func(*season.Facts) {})
	for name, c := range map[string]struct {
		folder string
		mangle func([]byte) []byte
		is     error // of Load and of Keep; nil: both succeed
	}{
		"a part that is cut":        {"archives/parts", func(data []byte) []byte { return data[:len(data)/2] }, archive.ErrDamaged},
		"a part with other lines":   {"archives/parts", func([]byte) []byte { return lines(t, "{}\n") }, archive.ErrDamaged},
		"a part compressed anew":    {"archives/parts", func(data []byte) []byte { return lines(t, unpacked(t, data)) }, nil},
		"a list with other members": {"archives", func([]byte) []byte { return []byte("{}") }, archive.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			store := memblob.New()
			if err := archive.NewStore(store).Put(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
			for key := range keys(t, store) {
				if path.Dir(key) == c.folder {
					o, err := store.Get(t.Context(), key, archive.MaxFile)
					if err != nil {
						t.Fatal(err)
					}
					store.Corrupt(key, c.mangle(o.Data))
				}
			}
			got, err := archive.NewStore(store).Load(t.Context())
			kept := archive.NewStore(store).Keep(t.Context(), stored)
			if !errors.Is(err, c.is) || !errors.Is(kept, c.is) {
				t.Fatalf("load: %v, keep: %v; want %v", err, kept, c.is)
			}
			if c.is == nil && !cmp.Equal(stored.Archive.Facts(), got.Archive.Facts()) {
				t.Error("it has other facts")
			}
		})
	}
}
