package keys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"gridcast/edge/limit"
	"gridcast/snapshots/blob"
)

// Follower keeps the table of the stored document current. What it can not read it refuses,
// and the last good table stays. A copy on disk bridges a start without the storage.
type Follower struct {
	store  blob.Store
	copyAt string // file of the copy; empty: none
	tiers  Tiers
	source limit.Source
	log    *slog.Logger

	table atomic.Pointer[Table]
	state atomic.Pointer[State]
}

// State says for status pages how the table came to be. It is immutable.
type State struct {
	Loaded  time.Time // when the table was made; zero: there is none
	Copied  bool      // from the copy on disk, the store has not answered yet
	Problem string    // of the latest look, empty if it was good
	Since   time.Time // when the problem began
}

// NewFollower returns a follower that has no table yet. With an empty folder it keeps no copy.
func NewFollower(store blob.Store, folder string, tiers Tiers, source limit.Source, log *slog.Logger) *Follower {
	f := &Follower{store: store, tiers: tiers, source: source, log: log}
	if folder != "" {
		f.copyAt = filepath.Join(folder, "keys.json")
	}
	f.state.Store(&State{})
	return f
}

// Table returns the current table, nil before the first one.
func (f *Follower) Table() *Table { return f.table.Load() }

// State returns how the current table came to be.
func (f *Follower) State() State { return *f.state.Load() }

// Run follows the document until ctx ends; then it returns nil. It starts from the copy on
// disk, if there is one, and asks the store at once.
func (f *Follower) Run(ctx context.Context) error {
	f.startFromCopy()
	var (
		seen    blob.Tag
		refused error // why the document with that tag is not the current table
		down    bool  // the latest look failed
	)
	for failures := 0; ; {
		look := func() (blob.Object, error) { return f.store.Watch(ctx, Object, seen, maxDocument) }
		if down {
			// Watch returns at a change only; this tells at once that the store is back.
			look = func() (blob.Object, error) { return f.store.Get(ctx, Object, maxDocument) }
		}
		object, err := look()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // err says that ctx has ended, which is how Run ends
		}
		down = err != nil
		if !down && object.Tag != seen {
			seen = object.Tag // also when it is refused: it will not get better
			if refused = f.apply(object.Data, false); refused == nil {
				f.keepCopy(object.Data)
			}
		}
		f.note(errors.Join(err, refused))
		if !down {
			failures = 0
			continue
		}
		failures++
		select {
		case <-time.After(backOff(failures)):
		case <-ctx.Done():
			return nil
		}
	}
}

// apply makes the document the current table, or changes nothing and says why.
func (f *Follower) apply(data []byte, copied bool) error {
	table, err := NewTable(data, f.tiers, f.source, f.table.Load())
	if err != nil {
		return err
	}
	f.table.Store(table)
	state := *f.state.Load()
	state.Loaded, state.Copied = time.Now(), copied
	f.state.Store(&state)
	f.log.Info("keys loaded", "keys", table.Len(), "from_copy", copied)
	for _, skipped := range table.Skipped() {
		f.log.Warn("key left out", "reason", skipped)
	}
	return nil
}

// note says what is wrong with the latest look, if anything. It keeps the first instant of a
// row of failures, and logs only what is new.
func (f *Follower) note(err error) {
	state := *f.state.Load()
	if err == nil {
		state.Problem, state.Since = "", time.Time{}
		f.state.Store(&state)
		return
	}
	if state.Problem == "" {
		state.Since = time.Now()
	}
	if state.Problem != err.Error() {
		f.log.Warn("keys not updated, the last table stays", "err", err)
	}
	state.Problem = err.Error()
	f.state.Store(&state)
}

func (f *Follower) startFromCopy() {
	if f.copyAt == "" {
		return
	}
	data, err := os.ReadFile(f.copyAt)
	if err == nil {
		err = f.apply(data, true)
	}
	if err != nil && !os.IsNotExist(err) {
		f.log.Warn("copy of the keys not used", "err", err)
	}
}

// keepCopy writes the document beside the old copy and renames it, so that a crash leaves
// one or the other.
func (f *Follower) keepCopy(data []byte) {
	if f.copyAt == "" {
		return
	}
	if err := writeFile(f.copyAt, data); err != nil {
		f.log.Warn("no copy of the keys on disk", "err", err)
	}
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keep copy of keys: %w", err)
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".keys-*")
	if err != nil {
		return fmt.Errorf("keep copy of keys: %w", err)
	}
	defer func() { _ = os.Remove(temporary.Name()) }() // fails once it is renamed, as it should
	_, err = temporary.Write(data)
	if closeErr := temporary.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("keep copy of keys: %w", err)
	}
	return nil
}

// backOff grows from half a second to five, by chance, so that edges do not ask in step.
func backOff(failures int) time.Duration {
	longest := min(time.Second<<min(failures-1, 3), 5*time.Second)
	return longest/2 + rand.N(longest/2) //nolint:gosec // spreads load, guards nothing
}
