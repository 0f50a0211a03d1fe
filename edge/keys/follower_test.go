package keys_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge/keys"
	"gridcast/edge/limit"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
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

func count(f *keys.Follower) int {
	if table := f.Table(); table != nil {
		return table.Len()
	}
	return -1
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
	var panics atomic.Uint64
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
		{"panicking", func(blob.Object) (blob.Object, error) { panics.Add(1); panic("no such length") }, -1},
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
					must.Equal(t, "panics", panics.Swap(0), f.Panics())
					must.Advance(lieFor)
					if meanwhile == 2 && !silent {
						state := f.Health()
						must.Hold(t, state.Stale(time.Now()), "after %v of lies: got state %+v, want it stale", 2*lieFor, state)
					}
					store.lie.Store(nil)
					panics.Store(0)
					must.Advance(currentWithin)
					if state := f.Health(); count(f) != 3 || state.Problem != "" || state.Copied {
						t.Errorf("%v after the lie: got %d keys, state %+v, want three keys and no problem", currentWithin, count(f), state)
					}
					settle()
					must.Hold(t, folder == "" || len(must.Get(os.ReadDir(folder))(t)) == 1, "an edge that trusts no key keeps more than its copy")
					state := f.Health()
					must.Hold(t, !state.Stale(time.Now()), "a minute after the lie: got state %+v, want it current", state)
				})
			})
		}
	}
}

// TestStale looks at a table exactly as old as it may be, and at a word of the publisher that names no list.
func TestStale(t *testing.T) {
	h := keys.Health{Current: now}
	must.Hold(t, !h.Stale(now.Add(keys.StaleAfter)) && h.Stale(now.Add(keys.StaleAfter+1)), "a table is stale at another age than %v", keys.StaleAfter)
	f := keys.NewFollower(keys.FollowerConfig{Log: slog.New(slog.DiscardHandler)})
	f.Freshen(t.Context(), "no list")
	must.Hold(t, f.Health().Behind != "", "a word that names no list is taken for one")
	var list keys.List
	must.Hold(t, list.Sign(nil, false) == nil && list.Signature == nil, "nil keys sign a list")
	must.Equal(t, "the word without a list", "", must.Get(keys.FreshText(memblob.New(), notes.Trust{})(t.Context(), ""))(t))
}

// named is a store with another name.
type named struct {
	blob.Store
	name string
}

func (s named) String() string { return s.name }
