package keys

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"gridcast/edge/limit"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
)

// FollowerConfig says what a Follower follows.
type FollowerConfig struct {
	Store blob.Store
	// CacheDir is a folder for the follower's own copy of the document, from which it starts
	// when the store does not answer; empty: none.
	CacheDir string
	Tiers    Tiers
	Limits   limit.Source // makes the counters of the keys
	Log      *slog.Logger
}

// Follower keeps the table of the stored document current. What it cannot read it refuses and
// reads again, while the last good table stays.
type Follower struct {
	cfg   FollowerConfig
	cache blob.Store // nil: none

	table  atomic.Pointer[Table]
	state  atomic.Pointer[Health]
	panics atomic.Uint64
}

// Health says for status pages how the table came to be. It is immutable.
type Health struct {
	Loaded  time.Time // when the table was made; zero: there is none
	Copied  bool      // from the copy on disk, the store has not answered yet
	Current time.Time // when the table was last known to be that of the store; zero: never
	Problem string    // of the latest look, empty if it was good
	Since   time.Time // when the problem began
}

// StaleAfter is how old Health.Current may become. A look lasts at most a third of that.
const StaleAfter = 30 * time.Second

// Stale reports whether it is long ago at now that the table was known to be current, for
// whatever reason.
func (s *Health) Stale(now time.Time) bool { return now.Sub(s.Current) > StaleAfter }

// NewFollower returns a follower that has no table yet.
func NewFollower(cfg FollowerConfig) *Follower {
	f := &Follower{cfg: cfg}
	f.state.Store(&Health{})
	return f
}

// Table returns the current table, nil before the first one.
func (f *Follower) Table() *Table { return f.table.Load() }

// Health returns how the current table came to be.
func (f *Follower) Health() Health { return *f.state.Load() }

// Panics returns how many looks ended in a panic.
func (f *Follower) Panics() uint64 { return f.panics.Load() }

// Run follows the document until ctx ends; then it returns nil. It starts from the copy on
// disk, if there is one of this store, and asks the store at once.
func (f *Follower) Run(ctx context.Context) error {
	if f.cfg.CacheDir != "" {
		f.openCopy(ctx)
	}
	_ = blob.Follow(ctx, blob.FollowConfig{Store: f.cfg.Store, Key: Object, Limit: MaxSize, Take: f.take, Looked: f.looked}) // ends with ctx
	return nil
}

// take makes the document the current table, or changes nothing and says why.
func (f *Follower) take(ctx context.Context, o blob.Object) error {
	if err := f.apply(o.Data, false); err != nil {
		return err
	}
	if f.cache != nil {
		if err := f.keepCopy(ctx, o.Data); err != nil {
			f.cfg.Log.Warn("no copy of the keys on disk", "err", err)
		}
	}
	return nil
}

func (f *Follower) apply(document []byte, copied bool) error {
	table, err := NewTable(document, f.cfg.Tiers, f.cfg.Limits, f.table.Load())
	if err != nil {
		return err
	}
	f.table.Store(table)
	state := *f.state.Load()
	state.Loaded, state.Copied = time.Now(), copied
	f.state.Store(&state)
	f.cfg.Log.Info("keys loaded", "keys", table.Len(), "serial", table.Serial(), "from_copy", copied)
	for _, skipped := range table.Skipped() {
		f.cfg.Log.Warn("key left out", "reason", skipped)
	}
	return nil
}

// looked notes how a look went. It keeps the first instant of a row of failures, and logs only
// what is new.
func (f *Follower) looked(err error) {
	state := *f.state.Load()
	var panicked *blob.PanicError
	if errors.As(err, &panicked) {
		f.panics.Add(1)
		f.cfg.Log.Error("panic while following the keys", "panic", panicked.Value, "stack", string(panicked.Stack))
	}
	switch {
	case err == nil:
		state.Current, state.Problem, state.Since = time.Now(), "", time.Time{}
	case errors.Is(err, blob.ErrNotFound) && f.table.Load() == nil: // no key has been created yet
		state.Current, state.Problem, state.Since = time.Now(), "", time.Time{}
	default:
		if state.Problem == "" {
			state.Since = time.Now()
		}
		if state.Problem != err.Error() {
			f.cfg.Log.Warn("keys not updated, the last table stays", "err", err)
		}
		state.Problem = err.Error()
	}
	f.state.Store(&state)
}

// The copy, and the name of the store that it was made from.
const (
	copyKey   = "keys.json"
	sourceKey = "source.txt"
	maxSource = 4 << 10 // bytes
)

// openCopy opens the folder of the copy, and starts with the document in it.
func (f *Follower) openCopy(ctx context.Context) {
	cache, err := dirblob.Open(filepath.Join(f.cfg.CacheDir, "keys"))
	if err != nil {
		f.cfg.Log.Warn("no copy of the keys on disk", "err", err)
		return
	}
	f.cache = cache
	source, err := cache.Get(ctx, sourceKey, maxSource)
	if err == nil && string(source.Data) == f.cfg.Store.String() {
		var document blob.Object
		if document, err = cache.Get(ctx, copyKey, MaxSize); err == nil {
			err = f.apply(document.Data, true)
		}
	}
	if err != nil && !errors.Is(err, blob.ErrNotFound) {
		f.cfg.Log.Warn("copy of the keys not used", "err", err)
	}
}

// keepCopy replaces the copy. The document of another store goes first: a crash must not leave
// it under the name of this one.
func (f *Follower) keepCopy(ctx context.Context, document []byte) error {
	source := []byte(f.cfg.Store.String())
	kept, err := f.cache.Get(ctx, sourceKey, maxSource)
	if err != nil || !bytes.Equal(kept.Data, source) {
		if err := f.cache.Delete(ctx, copyKey); err != nil {
			return err
		}
		if err := f.replace(ctx, sourceKey, source); err != nil {
			return err
		}
	}
	return f.replace(ctx, copyKey, document)
}

func (f *Follower) replace(ctx context.Context, key string, data []byte) error {
	old, err := f.cache.Get(ctx, key, MaxSize)
	if err != nil && !errors.Is(err, blob.ErrNotFound) {
		if err := f.cache.Delete(ctx, key); err != nil { // what cannot be read is of no use
			return err
		}
	}
	_, err = f.cache.Swap(ctx, key, old.Tag, data)
	return err
}
