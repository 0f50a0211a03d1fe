package keys_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/edge/keys"
	"gridcast/edge/limit"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// follow runs a follower until the test ends.
func follow(t *testing.T, store blob.Store, folder string) *keys.Follower {
	t.Helper()
	f := keys.NewFollower(store, folder, keys.DefaultTiers(), limit.Memory{}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return f
}

// settle lets everything happen that happens within a minute.
func settle() {
	time.Sleep(time.Minute) // of the bubble's clock
	synctest.Wait()
}

func count(f *keys.Follower) int {
	if table := f.Table(); table != nil {
		return table.Len()
	}
	return -1
}

func TestFollowerKeepsTheLastGoodTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memblob.New()
		var down atomic.Bool
		store := faultblob.Wrap(inner, func(_ context.Context, c faultblob.Call) faultblob.Fate {
			if down.Load() && !c.Op.Writes() {
				return faultblob.Fate{Err: errors.New("connection refused")}
			}
			return faultblob.Fate{}
		})
		f := follow(t, store, "")
		want := func(when string, table int, problem string) {
			t.Helper()
			settle()
			state := f.State()
			if count(f) != table || (problem == "") != (state.Problem == "") || !strings.Contains(state.Problem, problem) {
				t.Errorf("%s: got %d keys and problem %q, want %d and %q", when, count(f), state.Problem, table, problem)
			}
			if (problem == "") != state.Since.IsZero() {
				t.Errorf("%s: the problem began at %v", when, state.Since)
			}
		}
		change := func(name string) {
			t.Helper()
			if err := keys.Update(t.Context(), inner, add(name)); err != nil {
				t.Fatal(err)
			}
		}
		replace := func(data []byte) {
			t.Helper()
			object, err := inner.Get(t.Context(), keys.Object, blob.MaxDocument)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := inner.Swap(t.Context(), keys.Object, object.Tag, data); err != nil {
				t.Fatal(err)
			}
		}

		want("an empty store", -1, "")
		change("a")
		want("one key", 1, "")
		change("b")
		want("two keys", 2, "")

		good, err := inner.Get(t.Context(), keys.Object, blob.MaxDocument)
		if err != nil {
			t.Fatal(err)
		}
		replace([]byte("half a docu"))
		want("a damaged document", 2, "decode keys")
		replace(good.Data)
		want("repaired", 2, "")

		down.Store(true)
		change("c") // wakes the watch that is under way; the next one fails
		want("the store is down", 3, "connection refused")
		change("d")
		want("the store is still down", 3, "connection refused")
		down.Store(false)
		want("the store is back", 4, "")
		if err := inner.Delete(t.Context(), keys.Object); err != nil {
			t.Fatal(err)
		}
		want("the document is gone", 4, "no such object")
	})
}

func TestFollowerStartsFromItsCopy(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store := memblob.New()
		if err := keys.Update(t.Context(), store, add("a")); err != nil {
			t.Fatal(err)
		}
		f := follow(t, store, folder)
		settle()
		if count(f) != 1 || f.State().Copied {
			t.Errorf("got %d keys, copied %t", count(f), f.State().Copied)
		}
	})
	dead := faultblob.Wrap(memblob.New(), func(context.Context, faultblob.Call) faultblob.Fate {
		return faultblob.Fate{Err: errors.New("connection refused")}
	})
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, dead, folder)
		settle()
		if count(f) != 1 || !f.State().Copied || f.State().Problem == "" {
			t.Errorf("without the store: got %d keys, state %+v, want the copy", count(f), f.State())
		}
	})
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 1 {
		t.Errorf("got files %v, %v, want the copy alone", files, err)
	}
	if err := os.WriteFile(filepath.Join(folder, "keys.json"), []byte("cut sh"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, dead, folder)
		settle()
		if count(f) != -1 {
			t.Errorf("from a damaged copy: got %d keys, want no table", count(f))
		}
	})
}
