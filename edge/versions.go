package edge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"gridcast/edge/keys"
	"gridcast/edge/resident"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/notes"
)

// world is a published world that the edge serves: the real one, or the simulated one of a sandbox. A request is
// answered from one of them.
type world struct {
	versions
	sandbox   bool
	store     blob.Store // its versions
	folder    string     // of its copy and of its downloads, below Config.CacheDir; empty: there is none
	look      chan struct{}
	countdown countdown
	downloads *downloads
}

func newWorld(e *Edge, sandbox bool) *world {
	w := &world{sandbox: sandbox, store: e.deps.Store, folder: e.cfg.CacheDir, look: make(chan struct{}, 1), countdown: countdown{header: countdownHeader}}
	w.signed = !e.cfg.Trust.Empty()
	if sandbox {
		w.store, w.countdown.header = blob.Under(w.store, snapshots.SandboxFolder), sandboxCountdownHeader
		if w.folder != "" {
			w.folder = filepath.Join(w.folder, sandboxFolder)
		}
	}
	w.downloads = &downloads{
		maker: e.deps.Downloads, log: e.log, wake: make(chan struct{}, 1), served: w.current, files: map[int]*resident.Download{},
		quiet: quietBeforeDownloads, slots: e.slots,
	}
	if w.folder != "" {
		w.downloads.folder = filepath.Join(w.folder, "downloads")
	}
	return w
}

// versions holds the served version, and the state of the others. The goroutine of
// follow writes it, and all goroutines read it.
type versions struct {
	set     atomic.Pointer[resident.Set]
	refused atomic.Pointer[Refused]
	problem atomic.Pointer[string] // of the latest poll of the store; nil: none

	opened    atomic.Bool               // the copy on disk has been read, or there is none
	absent    atomic.Bool               // the store has no version of this world
	confirmed atomic.Pointer[time.Time] // the last instant at which set was known to be current
	signed    bool                      // only signed versions are served
	goodUntil atomic.Pointer[time.Time] // until when set is current, by the publisher's signature; nil: not known
}

// Refused names a refused version and the reason. The edge keeps the version before it.
type Refused struct {
	Version int64        `json:"version,omitzero"` // 0: unknown
	At      wire.Instant `json:"at"`               // real time
	Reason  string       `json:"reason"`

	public string // the reason for everybody: it never names the store
}

// current returns the served set, nil before the first.
func (v *versions) current() *resident.Set { return v.set.Load() }

// looked reports whether there is a set, or a poll of the store has ended.
func (v *versions) looked() bool {
	return v.current() != nil || v.absent.Load() || v.confirmed.Load() != nil || v.problem.Load() != nil || v.refused.Load() != nil
}

// ratchetFolder holds the highest numbers that trusted keys have signed, below the folder of the world.
const ratchetFolder = "ratchet"

// versionFolder is the folder of the copy of the version, below that of its world.
const versionFolder = "version"

// sandboxFolder holds the copy and the downloads of the sandbox, below Config.CacheDir.
const sandboxFolder = "sandbox"

// Served returns the manifest of the newest version in the copy of an edge, and the name of its store. The
// error wraps snapshots.ErrNone or fs.ErrNotExist if there is none.
func Served(ctx context.Context, cacheDir string) (manifest snapshots.Manifest, store string, err error) {
	folder := filepath.Join(cacheDir, versionFolder)
	if _, err := os.Stat(folder); err != nil {
		return snapshots.Manifest{}, "", fmt.Errorf("copy of the edge: %w", err)
	}
	cache, err := dirblob.OpenReadOnly(folder)
	if err != nil {
		return snapshots.Manifest{}, "", err
	}
	return snapshots.LoadCached(ctx, cache)
}

// Forget removes the copies of version and keys, and the highest numbers that trusted keys have signed, so that an
// edge takes those of a new store.
func Forget(cacheDir string) error {
	remove := func(folder string) error { return os.RemoveAll(filepath.Join(cacheDir, folder)) }
	return errors.Join(remove(versionFolder), remove("keys"), remove(ratchetFolder), remove(sandboxFolder))
}

// followSandbox serves every new version of the sandbox until ctx ends. While the store has none, it looks for one
// every sandboxPause or when it is woken, because a request a second would double the cost of a storage. A sandbox ends
// with its pointer: requests with its keys then get real data, and the next sandbox may count its versions anew.
func (e *Edge) followSandbox(ctx context.Context) {
	w := e.sandbox
	for ctx.Err() == nil {
		if e.sandboxGone(ctx) {
			w.end(e.log)
		} else if err := e.follow(ctx, w); errors.Is(err, snapshots.ErrNone) {
			continue // it is gone
		} else if err != nil {
			e.log.Error("the sandbox cannot be followed", "err", err)
		}
		w.absent.Store(true)
		select {
		case <-w.look:
		case <-time.After(sandboxPause):
		case <-ctx.Done():
		}
	}
}

// end forgets the versions of a sandbox that the store has no more.
func (w *world) end(log *slog.Logger) {
	if w.set.Swap(nil) != nil {
		log.Info("the store has no sandbox any more: its keys get real data")
	}
	w.refused.Store(nil)
	w.problem.Store(nil)
	if w.folder != "" {
		err := errors.Join(os.RemoveAll(filepath.Join(w.folder, versionFolder)), os.RemoveAll(filepath.Join(w.folder, ratchetFolder)))
		if err != nil {
			log.Warn("the copy of a sandbox stays", "err", err)
		}
	}
}

// sandboxGone reports whether the store has no pointer of a sandbox, and has that of the real world: a folder that is not
// mounted looks like a store without objects.
func (e *Edge) sandboxGone(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, serveAtLatest)
	defer cancel()
	if _, _, err := snapshots.LoadPointer(ctx, e.sandbox.store); !errors.Is(err, snapshots.ErrNone) {
		return false
	}
	_, _, err := snapshots.LoadPointer(ctx, e.real.store)
	return err == nil
}

// sandboxPause is the time between two looks for a sandbox.
const sandboxPause = 30 * time.Second

// follow serves every new version of a world until ctx ends. It returns snapshots.ErrNone when the store has no sandbox any
// more.
func (e *Edge) follow(ctx context.Context, w *world) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	config := snapshots.FollowConfig{
		Store:   w.store,
		Deliver: func(v *snapshots.Version) error { return e.accept(w, v) },
		Report: func(r snapshots.FollowReport) {
			if w.sandbox && errors.Is(r.Err, snapshots.ErrNone) {
				if w.absent.Store(true); e.sandboxGone(ctx) {
					end(snapshots.ErrNone)
				}
				return
			}
			e.report(w, r)
		},
		Wake:        w.look,
		Lean:        resident.Lean,
		Cached:      func() { w.opened.Store(true) },
		CacheFailed: func(err error) { e.log.Warn("no copy of the version on disk", "err", err) },
		Trust:       e.cfg.Trust,
		Pin:         e.cfg.Pin,
		Fresh: func(fresh snapshots.Fresh) {
			if !w.sandbox {
				e.keys.Freshen(ctx, fresh.Keys)
			}
			if known := w.goodUntil.Load(); !fresh.Until.IsZero() && (known == nil || fresh.Until.After(*known)) {
				w.goodUntil.Store(&fresh.Until)
			}
		},
	}
	if w.sandbox {
		config.Lean, config.Pin = resident.LeanSandbox, 0
	}
	if !e.cfg.Trust.Empty() {
		marks, err := dirblob.Open(filepath.Join(w.folder, ratchetFolder))
		if err != nil {
			return fmt.Errorf("ratchet of versions: %w", err)
		}
		config.Ratchet = notes.NewRatchet(marks, "versions.json")
	}
	if w.folder != "" {
		cache, err := dirblob.Open(filepath.Join(w.folder, versionFolder))
		if err != nil {
			return fmt.Errorf("cache of versions: %w", err)
		}
		config.Cache = cache
	}
	err := snapshots.Follow(ctx, config)
	switch gone := context.Cause(ctx); {
	case ctx.Err() == nil:
		return fmt.Errorf("follow versions: %w", err)
	case errors.Is(gone, snapshots.ErrNone):
		return gone
	}
	return nil
}

// Look makes the edge poll for a new version at once, instead of within a second.
func (e *Edge) Look() {
	for _, w := range []*world{e.real, e.sandbox} {
		select {
		case w.look <- struct{}{}:
		default: // the edge is about to poll
		}
	}
}

// accept makes a version the served one of its world. If the edge cannot serve a version although
// every hash in it is right, accept keeps the last one and returns the reason. A signature says nothing about the
// place of a version in the store, so its clock does.
func (e *Edge) accept(w *world, version *snapshots.Version) error {
	start := time.Now()
	if (version.Manifest.Clock != "") != w.sandbox {
		return fmt.Errorf("a version with the race clock %q: simulated versions belong below %s, and no other ones do", version.Manifest.Clock, snapshots.SandboxFolder)
	}
	set, err := resident.Load(version, w.current())
	if err != nil {
		return err
	}
	e.metrics.loaded.Inc()
	w.set.Store(set)
	w.downloads.look()
	e.log.Info("version served", "sandbox", w.sandbox, "version", version.Pointer.Version, "variants", len(version.Manifest.Entries),
		"bytes", version.Bytes(), "took", time.Since(start), "held", version.Pointer.Held)
	return nil
}

// report records the outcome of a poll of the store.
func (e *Edge) report(w *world, r snapshots.FollowReport) {
	if r.State == snapshots.Following || r.State == snapshots.Waiting {
		now := time.Now()
		w.confirmed.Store(&now)
	}
	if r.Repeated {
		return
	}
	var problem *string
	switch r.State {
	case snapshots.Refused, snapshots.Failed:
		public := r.Public()
		if errors.Is(r.Err, snapshots.ErrNotAccepted) {
			public = r.Err.Error() // it is about the content of the version, and reveals nothing about the store
		}
		var panicked *blob.PanicError
		if errors.As(r.Err, &panicked) {
			e.metrics.followPanics.Inc()
			e.log.Error("panic while following versions", "panic", panicked.Value, "stack", string(panicked.Stack))
		}
		if !w.sandbox { // of a sandbox, gridcast_edge_sandbox_stale tells
			e.metrics.refused.Inc()
		}
		w.refused.Store(&Refused{Version: r.Version, At: wire.Instant(time.Now()), Reason: r.Err.Error(), public: public})
		e.log.Error("version refused, the last one stays", "sandbox", w.sandbox, "version", r.Version, "err", r.Err)
	case snapshots.Unreachable:
		text := r.Err.Error()
		problem = &text
		e.log.Warn("store does not answer, the last version stays", "sandbox", w.sandbox, "err", r.Err)
	}
	w.problem.Store(problem)
}

// stale reports whether the edge has not confirmed for longer than keys.StaleAfter that its version is current,
// for any reason. A signed version also needs the publisher's word that it is current now.
func (v *versions) stale(now time.Time) bool {
	confirmed, until := v.confirmed.Load(), v.goodUntil.Load()
	return confirmed == nil || now.Sub(*confirmed) > keys.StaleAfter || v.signed && (until == nil || now.After(*until))
}
