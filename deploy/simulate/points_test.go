package simulate_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"

	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/edge/keys"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/notes"
)

// reached counts the named points that the seeds have reached: messages of warnings and errors, and sentinel errors.
type reached struct {
	mu    sync.Mutex
	count map[string]int
}

var points = &reached{count: map[string]int{}}

// sentinels are the exported errors of the packages that the world runs, by package and name.
var sentinels = map[string]error{
	"blob.ErrNotFound": blob.ErrNotFound, "blob.ErrConflict": blob.ErrConflict, "blob.ErrUnknown": blob.ErrUnknown, "blob.ErrUnsynced": blob.ErrUnsynced,
	"blob.ErrTooLarge": blob.ErrTooLarge, "blob.ErrUnconditional": blob.ErrUnconditional,
	"snapshots.ErrLower": snapshots.ErrLower, "snapshots.ErrRatchet": snapshots.ErrRatchet, "snapshots.ErrNotAccepted": snapshots.ErrNotAccepted,
	"snapshots.ErrNewKey": snapshots.ErrNewKey, "snapshots.ErrNone": snapshots.ErrNone, "snapshots.ErrDamaged": snapshots.ErrDamaged,
	"snapshots.ErrBuild": snapshots.ErrBuild, "snapshots.ErrNoBase": snapshots.ErrNoBase, "snapshots.ErrUnsigned": snapshots.ErrUnsigned,
	"snapshots.ErrNoSigner": snapshots.ErrNoSigner, "snapshots.ErrMovedBack": snapshots.ErrMovedBack, "snapshots.ErrHeld": snapshots.ErrHeld,
	"snapshots.ErrBaseChanged": snapshots.ErrBaseChanged, "snapshots.ErrMayNotFollow": snapshots.ErrMayNotFollow,
	"notes.ErrUntrusted": notes.ErrUntrusted, "notes.ErrLower": notes.ErrLower,
	"keys.ErrNoKey": keys.ErrNoKey, "keys.ErrInactive": keys.ErrInactive, "keys.ErrFull": keys.ErrFull, "keys.ErrDamaged": keys.ErrDamaged,
	"keys.ErrUntrusted": keys.ErrUntrusted, "keys.ErrNoSigner": keys.ErrNoSigner, "keys.ErrOlder": keys.ErrOlder,
	"ledger.ErrNotOpened": ledger.ErrNotOpened, "ledger.ErrKind": ledger.ErrKind, "ledger.ErrClock": ledger.ErrClock, "ledger.ErrNewer": ledger.ErrNewer,
	"ledger.ErrEarlier": ledger.ErrEarlier, "ledger.ErrAlreadyFrozen": ledger.ErrAlreadyFrozen, "ledger.ErrStarted": ledger.ErrStarted,
	"ledger.ErrPast": ledger.ErrPast, "ledger.ErrNotStarted": ledger.ErrNotStarted, "ledger.ErrAlreadyVerified": ledger.ErrAlreadyVerified,
	"ledger.ErrUnchanged": ledger.ErrUnchanged, "ledger.ErrNotHeld": ledger.ErrNotHeld, "ledger.ErrNoStart": ledger.ErrNoStart,
	"ledger.ErrUnknownSession": ledger.ErrUnknownSession, "ledger.ErrByPerson": ledger.ErrByPerson, "ledger.ErrOlder": ledger.ErrOlder,
	"live.ErrImplausible": live.ErrImplausible, "live.ErrHeld": live.ErrHeld, "live.ErrNoEffect": live.ErrNoEffect,
}

// met counts the sentinels in an error.
func (r *reached) met(w *world, err error) {
	if err == nil {
		return
	}
	w.note("error %v", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			r.count[name]++
		}
	}
}

// handler collects the messages of a process.
func (r *reached) handler(w *world) slog.Handler { return collector{r, w} }

type collector struct {
	r *reached
	w *world
}

func (collector) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }
func (c collector) WithAttrs([]slog.Attr) slog.Handler         { return c }
func (c collector) WithGroup(string) slog.Handler              { return c }

// Handle implements [slog.Handler].
func (c collector) Handle(_ context.Context, record slog.Record) error {
	c.w.note("%s %s", record.Level, record.Message)
	record.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			c.r.met(c.w, err)
		}
		return true
	})
	if record.Level >= slog.LevelWarn {
		c.r.mu.Lock()
		defer c.r.mu.Unlock()
		c.r.count[record.Message]++
	}
	return nil
}

// checkPoints demands that the seeds have reached every named point.
func checkPoints(t *testing.T, counts []map[string]int) {
	t.Helper()
	all := map[string]int{}
	for _, count := range counts {
		for name, n := range count {
			all[name] += n
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Logf("%6d  %s", all[name], name)
	}
}
