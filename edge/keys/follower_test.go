package keys_test

import (
	"bytes"
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

	"gridcast/deploy/must"
	"gridcast/edge/keys"
	"gridcast/edge/limit"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// follow runs a follower until the test ends.
func follow(t *testing.T, store blob.Store, folder string) *keys.Follower {
	t.Helper()
	return followUntil(t.Context(), t, store, folder)
}

// followUntil runs a follower until ctx ends, before the end of the test.
func followUntil(ctx context.Context, t *testing.T, store blob.Store, folder string) *keys.Follower {
	t.Helper()
	f := keys.NewFollower(keys.FollowerConfig{
		Store: store, CacheDir: folder, Tiers: keys.DefaultTiers(), Limits: limit.Memory{}, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(running(ctx, t, f))
	return f
}

// running runs a follower until ctx ends, or stop is called.
func running(ctx context.Context, t *testing.T, f *keys.Follower) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	return func() {
		cancel()
		must.Succeed(t, "Run", <-ended)
	}
}

// settle waits until everything that happens within a minute has happened.
func settle() {
	must.Advance(time.Minute)
}

// wantKeys checks the keys of a follower after a minute, and whether it has a problem.
func wantKeys(t *testing.T, f *keys.Follower, when string, n int, problem bool) {
	t.Helper()
	settle()
	h := f.Health()
	must.Hold(t, count(f) == n && (h.Problem != "") == problem, "%s: %d keys, problem %q; want %d and a problem: %t", when, count(f), h.Problem, n, problem)
}

// revokeFirst revokes the first key of a list.
func revokeFirst(list *keys.List) error {
	_, err := list.Revoke(list.Keys[0].ID, time.Now())
	return err
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
			state := f.Health()
			if count(f) != table || (problem == "") != (state.Problem == "") || !strings.Contains(state.Problem, problem) {
				t.Errorf("%s: got %d keys and problem %q, want %d and %q", when, count(f), state.Problem, table, problem)
			}
		}
		change := func(name string) {
			t.Helper()
			must.Do(t, keys.Update(t.Context(), inner, add(name)))
		}
		replace := func(data []byte) {
			t.Helper()
			object := must.Get(inner.Get(t.Context(), keys.Object, blob.MaxDocument))(t)
			must.Get(inner.Swap(t.Context(), keys.Object, object.Tag, data))(t)
		}

		want("an empty store", -1, "")
		change("a")
		want("one key", 1, "")
		change("b")
		want("two keys", 2, "")

		good := must.Get(inner.Get(t.Context(), keys.Object, blob.MaxDocument))(t)
		replace([]byte("half a docu"))
		want("a damaged document", 2, "decode keys")
		replace(good.Data)
		want("repaired", 2, "")

		down.Store(true)
		change("c") // wakes the running watch; the next one fails
		want("the store is down", 3, "connection refused")
		change("d")
		want("the store is still down", 3, "connection refused")
		down.Store(false)
		want("the store is back", 4, "")
		must.Do(t, inner.Delete(t.Context(), keys.Object))
		want("the document is gone", 4, "no such object")
	})
}

// lyingStore lets lie change the answers to reads of the list, while lie is set. Tags stay those of the
// store, as on S3.
type lyingStore struct {
	blob.Store
	lie atomic.Pointer[func(blob.Object) (blob.Object, error)]
}

func (s *lyingStore) Get(ctx context.Context, key string, limit int64) (blob.Object, error) {
	return s.answer(s.Store.Get(ctx, key, limit))
}

// Watch polls each second, like the store on S3.
func (s *lyingStore) Watch(ctx context.Context, key string, seen blob.Tag, limit int64) (blob.Object, error) {
	for {
		o, err := s.Get(ctx, key, limit)
		if err == nil && o.Tag != seen || err != nil && (seen != "" || !errors.Is(err, blob.ErrNotFound)) {
			return o, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return blob.Object{}, context.Cause(ctx)
		}
	}
}

func (s *lyingStore) answer(o blob.Object, err error) (blob.Object, error) {
	if lie := s.lie.Load(); lie != nil && err == nil {
		return (*lie)(o)
	}
	return o, err
}

// TestFollowerAfterALie uses a store that lies for a while about a list of three keys. Meanwhile the follower
// serves the last good table, and soon after the lie the right one. A running follower
// has two keys before the lie, a new follower with a copy too, and one without a copy
// none.
func TestFollowerAfterALie(t *testing.T) {
	const lieFor, currentWithin = 25 * time.Second, 10 * time.Second
	const cannotKnow = -2
	endless := bytes.Repeat([]byte{' '}, keys.MaxSize+1)
	var older blob.Object // of one key
	mangle := func(change func(data []byte) []byte) func(blob.Object) (blob.Object, error) {
		return func(o blob.Object) (blob.Object, error) { return blob.Object{Data: change(o.Data), Tag: o.Tag}, nil }
	}
	for _, tt := range []struct {
		name  string
		lie   func(blob.Object) (blob.Object, error)
		fresh int // keys of a follower without a copy meanwhile; -1: no table
	}{
		{"damaged", mangle(func(data []byte) []byte {
			data = bytes.Clone(data)
			data[bytes.Index(data, []byte(`"sha256":"`))+40] ^= 1
			return data
		}), -1},
		{"truncated", mangle(func(data []byte) []byte { return data[:len(data)/2] }), -1},
		{"endless", mangle(func([]byte) []byte { return endless }), -1},
		{"empty", mangle(func([]byte) []byte { return nil }), -1},
		{"replaced", mangle(func([]byte) []byte { return []byte(`{"version":3,"manifest":"b3"}`) }), -1},
		{"stale", func(blob.Object) (blob.Object, error) { return older, nil }, 1},
		{"stale with the tag of now", mangle(func([]byte) []byte { return older.Data }), cannotKnow},
		{"missing", func(blob.Object) (blob.Object, error) { return blob.Object{}, blob.ErrNotFound }, -1},
		{"refused", func(blob.Object) (blob.Object, error) { return blob.Object{}, errors.New("connection refused") }, -1},
		{"panicking", func(blob.Object) (blob.Object, error) { panic("no such length") }, -1},
	} {
		for _, state := range []string{"running", "restarted with its copy", "fresh"} {
			if state == "fresh" && tt.fresh == cannotKnow {
				continue // an intact older list under the right tag convinces an edge without memory
			}
			t.Run(tt.name+"/"+state, func(t *testing.T) {
				folder := t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					store := &lyingStore{Store: memblob.New()}
					change := func(name string) {
						t.Helper()
						must.Do(t, keys.Update(t.Context(), store.Store, add(name)))
					}
					change("a")
					older = must.Get(store.Store.Get(t.Context(), keys.Object, keys.MaxSize))(t)
					change("b")
					meanwhile := 2
					var f *keys.Follower
					if state == "fresh" {
						folder, meanwhile = "", tt.fresh
					} else {
						ctx, stop := context.WithCancel(t.Context())
						f = followUntil(ctx, t, store, folder)
						settle()
						if state != "running" {
							stop()
							synctest.Wait()
							f = nil
						}
						defer stop()
					}
					store.lie.Store(&tt.lie)
					change("c")
					if f == nil {
						f = follow(t, store, folder)
					}
					must.Advance(lieFor)
					if count(f) != meanwhile {
						t.Errorf("during the lie: got %d keys, want %d", count(f), meanwhile)
					}
					silent := state == "fresh" && (tt.name == "missing" || meanwhile == 1)
					problem := f.Health().Problem
					must.Hold(t, (problem == "") == silent, "during the lie: got problem %q", problem)
					if (f.Panics() > 0) != (tt.name == "panicking") {
						t.Errorf("got %d panics", f.Panics())
					}
					must.Advance(lieFor)
					if meanwhile == 2 && !silent {
						state := f.Health()
						must.Hold(t, state.Stale(time.Now()), "after %v of lies: got state %+v, want it stale", 2*lieFor, state)
					}
					store.lie.Store(nil)
					must.Advance(currentWithin)
					if state := f.Health(); count(f) != 3 || state.Problem != "" || state.Copied {
						t.Errorf("%v after the lie: got %d keys, state %+v, want three keys and no problem", currentWithin, count(f), state)
					}
					settle()
					state := f.Health()
					must.Hold(t, !state.Stale(time.Now()), "a minute after the lie: got state %+v, want it current", state)
				})
			})
		}
	}
}

// TestFollowerTakesWhatIsRestored accepts an older list only if it was restored on purpose.
func TestFollowerTakesWhatIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memblob.New()
		var id, key string
		must.Do(t, keys.Update(t.Context(), store, func(d *keys.List) error {
			record, secret, err := d.Create(keys.Request{Name: "leaked", Tier: "pro"}, now)
			id, key = record.ID, secret
			return err
		}))
		backup := must.Get(store.Get(t.Context(), keys.Object, keys.MaxSize))(t)
		f := follow(t, store, "")
		must.Do(t, keys.Update(t.Context(), store, func(d *keys.List) error {
			_, err := d.Revoke(id, now)
			return err
		}))
		settle()
		copied := func() {
			t.Helper()
			current := must.Get(store.Get(t.Context(), keys.Object, keys.MaxSize))(t)
			must.Get(store.Swap(t.Context(), keys.Object, current.Tag, backup.Data))(t)
			settle()
		}
		accepted := func() bool {
			hash, _ := keys.Sum([]byte(key))
			return f.Table().Lookup(hash, now) != nil
		}
		if copied(); accepted() || count(f) != 0 || !strings.Contains(f.Health().Problem, "older") {
			t.Errorf("the backup was copied into the store: got %d keys, problem %q, want the revocation to stay", count(f), f.Health().Problem)
		}
		document := must.Get(keys.Decode(backup.Data))(t)
		must.Do(t, keys.Restore(t.Context(), store, document, f.Table().Serial(), nil))
		if settle(); !accepted() || count(f) != 1 || f.Health().Problem != "" {
			t.Errorf("restored: got %d keys, problem %q, want the key of the backup", count(f), f.Health().Problem)
		}
		// A list in an earlier format is refused.
		backup.Data = must.Get(os.ReadFile("testdata/before.json"))(t)
		if copied(); !accepted() || count(f) != 1 || f.Health().Problem == "" {
			t.Errorf("an earlier format: got %d keys, problem %q, want the last table and a problem", count(f), f.Health().Problem)
		}
	})
}

func TestFollowerStartsFromItsCopy(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store := named{memblob.New(), "one"}
		must.Do(t, keys.Update(t.Context(), store, add("a")))
		f := follow(t, store, folder)
		settle()
		if count(f) != 1 || f.Health().Copied {
			t.Errorf("got %d keys, copied %t", count(f), f.Health().Copied)
		}
	})
	dead := func(name string) blob.Store {
		return named{faultblob.Wrap(memblob.New(), func(context.Context, faultblob.Call) faultblob.Fate {
			return faultblob.Fate{Err: errors.New("connection refused")}
		}), name}
	}
	start := func(store, what string, want int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			f := follow(t, dead(store), folder)
			settle()
			if state := f.Health(); count(f) != want || state.Copied != (want >= 0) || state.Problem == "" || !state.Stale(time.Now()) {
				t.Errorf("%s: got %d keys, state %+v, want %d from the copy, and the problem", what, count(f), state, want)
			}
		})
	}
	start("one", "without the store", 1)
	start("two", "without another store", -1)
	start("one", "without the store, again", 1)
	document := filepath.Join(folder, "keys", "keys.json")
	data := must.Get(os.ReadFile(document))(t)
	data[len(data)/2] ^= 1
	must.Do(t, os.WriteFile(document, data, 0o600))
	start("one", "from a damaged copy", -1)
	synctest.Test(t, func(t *testing.T) {
		store := named{memblob.New(), "two"}
		must.Do(t, keys.Update(t.Context(), store, add("b")))
		follow(t, store, folder)
		settle()
	})
	start("two", "after another store was followed", 1)
	start("one", "after another store was followed", -1)
}

// TestFollowerWithoutACopy: a folder that cannot be opened costs the copy alone, and the log says so.
func TestFollowerWithoutACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, folder := memblob.New(), t.TempDir()
		must.Do(t, keys.Update(t.Context(), store, add("a")))
		must.Do(t, os.WriteFile(filepath.Join(folder, "keys"), nil, 0o600))
		var log bytes.Buffer
		f := keys.NewFollower(keys.FollowerConfig{
			Store: store, CacheDir: folder, Tiers: keys.DefaultTiers(), Limits: limit.Memory{}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		stop := running(t.Context(), t, f)
		settle()
		must.Equal(t, "keys", 1, count(f))
		stop()
		must.Show(t, "the log", log.String(), "no copy of the keys on disk")
	})
}

// named is a store with another name.
type named struct {
	blob.Store
	name string
}

func (s named) String() string { return s.name }
