package keys

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"gridcast/edge/limit"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/notes"
)

// FollowerConfig names the store and the copy of a Follower.
type FollowerConfig struct {
	Store blob.Store
	// CacheDir is a folder for the follower's own copy of the list. The follower starts from it
	// when the store does not answer; empty: no copy.
	CacheDir string
	// Trust are the keys of operators. The follower then takes only lists that one of them has signed, and
	// none with a lower serial number than the highest of each key, which it keeps in CacheDir, so it needs one.
	// Empty: any.
	Trust notes.Trust
	// Fresh reads the text of the verified fresh.note about the list, before a list is used; nil: there is none. The text is
	// empty if the note cannot be read: then the version is reported stale.
	Fresh  func(context.Context) string
	Tiers  Tiers
	Limits limit.Source // makes the counters of the keys
	Log    *slog.Logger
}

// Follower keeps the table of the stored list current. It refuses an unreadable list and
// reads it again, while the last good table stays.
type Follower struct {
	cfg      FollowerConfig
	cache    blob.Store // nil: none
	marks    *notes.Ratchet
	noMarks  error  // why there is no disk for the marks; nil: there is one, or none is needed
	marksErr string // why the marks are in memory alone; empty: they are on disk too

	mu     sync.Mutex // guards the group
	fresh  string     // the last text of fresh.note; empty: none
	list   notes.Mark // of the table
	signed []string   // the keys that signed the list
	behind atomic.Pointer[string]

	table  atomic.Pointer[Table]
	state  atomic.Pointer[Health]
	panics atomic.Uint64
	opened atomic.Bool
}

// Health describes for status pages the origin of the table. It is immutable.
type Health struct {
	Loaded  time.Time // the table was made then; zero: there is none
	Copied  bool      // it comes from the copy on disk; the store has not answered yet
	Current time.Time // the last instant at which the table was known to be the store's; zero: never
	Problem string    // fault of the latest poll, empty if there was none
	Behind  string    // why the list is older than fresh.note says; empty: it is not
}

// StaleAfter is the age at which Health.Current becomes stale, and the confirmation of a version too. A poll of the
// store lasts at most a third of it.
const StaleAfter = 30 * time.Second

// Stale reports whether the follower has not known the table to be current for longer than StaleAfter,
// for any reason, or the list is older than fresh.note says.
func (s *Health) Stale(now time.Time) bool { return s.Behind != "" || now.Sub(s.Current) > StaleAfter }

// NewFollower returns a follower that has no table yet.
func NewFollower(cfg FollowerConfig) *Follower {
	f := &Follower{cfg: cfg, marks: notes.NewRatchet(nil, "")}
	f.state.Store(&Health{})
	f.behind.Store(new(string))
	return f
}

// Table returns the current table, nil before the first one.
func (f *Follower) Table() *Table { return f.table.Load() }

// Opened reports whether Run has read the copy on disk, or there is none.
func (f *Follower) Opened() bool { return f.opened.Load() }

// Health returns the origin of the current table.
func (f *Follower) Health() Health {
	state := *f.state.Load()
	state.Behind = *f.behind.Load()
	return state
}

// Freshen takes the text of a verified fresh.note. From then on the follower refuses every list that is older, and
// Health says so if the table is of an older one. It is safe for concurrent use.
func (f *Follower) Freshen(ctx context.Context, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if text == "" {
		return
	}
	behind := ""
	named, signed, err := readFreshText(text, f.cfg.Trust)
	if err == nil && text != f.fresh {
		f.fresh = text
		_ = f.marks.Raise(ctx, signed, named) // without a disk the mark is in memory, and an earlier text raises none
	}
	switch {
	case err != nil:
		behind = "fresh.note of the publisher names a list of keys that no trusted key has signed"
	case f.list == notes.Mark{}:
	case named.Number == f.list.Number && named != f.list, f.marks.Check(ctx, f.signed, f.list) != nil:
		behind = fmt.Sprintf("the publisher has signed that the list of keys with serial number %d is current; this edge has another one, with %d", named.Number, f.list.Number)
	}
	if behind != "" && behind != *f.behind.Load() {
		f.cfg.Log.Error("the list of keys is not the latest: a revoked key may still be accepted", "reason", behind)
	}
	f.behind.Store(&behind)
}

// Panics returns the number of polls that ended in a panic.
func (f *Follower) Panics() uint64 { return f.panics.Load() }

// Run follows the list until ctx ends; then it returns nil. It starts from the copy on
// disk, if that is a copy of this store, and polls the store at once.
func (f *Follower) Run(ctx context.Context) error {
	if f.cfg.CacheDir != "" {
		f.openCopy(ctx)
	}
	f.opened.Store(true)
	if !f.cfg.Trust.Empty() {
		marks, err := dirblob.Open(filepath.Join(f.cfg.CacheDir, "ratchet"))
		if f.noMarks = err; err == nil {
			f.mu.Lock()
			f.marks, f.fresh = notes.NewRatchet(marks, "keys.json"), ""
			f.mu.Unlock()
		}
	}
	_ = blob.Follow(ctx, blob.FollowConfig{Store: f.cfg.Store, Key: Object, Limit: MaxSize, Take: f.take, Looked: f.looked}) // ends with ctx
	return nil
}

// take makes the list the current table, or changes nothing and returns the reason.
func (f *Follower) take(ctx context.Context, o blob.Object) error {
	if f.cfg.Fresh != nil {
		f.Freshen(ctx, f.cfg.Fresh(ctx))
	}
	if err := f.apply(ctx, o.Data, false); err != nil {
		return err
	}
	if f.cache != nil {
		if err := f.keepCopy(ctx, o.Data); err != nil {
			f.cfg.Log.Warn("no copy of the keys on disk", "err", err)
		}
	}
	return nil
}

func (f *Follower) apply(ctx context.Context, document []byte, copied bool) error {
	list, signed, err := f.checkSigned(ctx, document, copied)
	if err != nil {
		return err
	}
	table, err := NewTable(document, f.cfg.Tiers, f.cfg.Limits, f.table.Load())
	if err != nil {
		return err
	}
	f.table.Store(table)
	f.mu.Lock()
	f.list, f.signed = list, signed
	f.behind.Store(new(string)) // checkSigned has compared it
	f.mu.Unlock()
	state := *f.state.Load()
	state.Loaded, state.Copied = time.Now(), copied
	f.state.Store(&state)
	f.cfg.Log.Info("keys loaded", "keys", table.Len(), "serial", table.Serial(), "from_copy", copied)
	for i, reason := range table.Skipped() {
		if i == maxFaults {
			f.cfg.Log.Warn("more keys left out", "keys", len(table.Skipped())-i)
			break
		}
		f.cfg.Log.Warn("key left out", "reason", reason)
	}
	return nil
}

// checkSigned refuses a list that no trusted key has signed, and one that is older than its keys or fresh.note have signed. It
// raises the ratchet before the list is used. The copy is exempt from the ratchet, because no operator writes it. It
// returns the list and the keys that signed it.
func (f *Follower) checkSigned(ctx context.Context, document []byte, copied bool) (list notes.Mark, signed []string, err error) {
	o, err := parse(document) // NewTable compares the checksum, which the note names
	if err != nil {
		return list, nil, fmt.Errorf("decode keys: %w", err)
	}
	list = notes.Mark{Number: o.serial, Content: o.sum}
	signed, err = provenBy(f.cfg.Trust, o.note, list)
	if err != nil || copied {
		return list, signed, err
	}
	if f.cfg.Trust.Empty() {
		err = f.marks.Check(ctx, signed, list)
	} else {
		err = f.marks.Raise(ctx, signed, list)
	}
	if errors.Is(err, notes.ErrLower) {
		return list, signed, fmt.Errorf("list of keys: serial number: %w", err)
	}
	problem := ""
	if err != nil { // a disk stops no newer list, because it may revoke a key
		if problem = cmp.Or(f.noMarks, err).Error(); problem != f.marksErr {
			f.cfg.Log.Error("the highest serial number of the keys is in memory alone: after a restart this edge accepts an older list", "err", problem)
		}
	}
	f.marksErr = problem
	return list, signed, nil
}

// looked records the outcome of a poll, and logs only new faults.
func (f *Follower) looked(err error) {
	state := *f.state.Load()
	var panicked *blob.PanicError
	if errors.As(err, &panicked) {
		f.panics.Add(1)
		f.cfg.Log.Error("panic while following the keys", "panic", panicked.Value, "stack", string(panicked.Stack))
	}
	switch {
	case err == nil, errors.Is(err, blob.ErrNotFound) && f.table.Load() == nil: // no key has been created yet
		state.Current, state.Problem = time.Now(), ""
	default:
		if state.Problem != err.Error() {
			f.cfg.Log.Warn("keys not updated, the last table stays", "err", err)
		}
		state.Problem = err.Error()
	}
	f.state.Store(&state)
}

// The copy, and the name of its store.
const (
	copyKey   = "keys.json"
	sourceKey = "source.txt"
	maxSource = 4 << 10 // bytes
)

// openCopy opens the folder of the copy, and starts with the list in it.
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
			err = f.apply(ctx, document.Data, true)
		}
	}
	if err != nil && !errors.Is(err, blob.ErrNotFound) {
		f.cfg.Log.Warn("copy of the keys not used", "err", err)
	}
}

// keepCopy replaces the copy. It first deletes the list of another store, because a crash must not leave
// that list under the name of this store.
func (f *Follower) keepCopy(ctx context.Context, document []byte) error {
	source := []byte(f.cfg.Store.String())
	kept, err := f.cache.Get(ctx, sourceKey, maxSource)
	if err != nil || !bytes.Equal(kept.Data, source) {
		if err := f.cache.Delete(ctx, copyKey); err != nil {
			return err
		}
		if _, err := blob.Put(ctx, f.cache, sourceKey, maxSource, source); err != nil {
			return err
		}
	}
	_, err = blob.Put(ctx, f.cache, copyKey, MaxSize, document)
	return err
}
