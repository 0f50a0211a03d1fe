package edge

import (
	"context"
	"errors"
	"fmt"
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

// versions holds the served version, and the state of the others. The goroutine of
// followVersions writes it, and all goroutines read it.
type versions struct {
	set     atomic.Pointer[resident.Set]
	refused atomic.Pointer[Refused]
	problem atomic.Pointer[string] // of the latest poll of the store; nil: none

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
	return v.current() != nil || v.confirmed.Load() != nil || v.problem.Load() != nil || v.refused.Load() != nil
}

// ratchetFolder holds the highest numbers that trusted keys have signed, below Config.CacheDir.
const ratchetFolder = "ratchet"

// versionFolder is the folder of the copy of the version, below Config.CacheDir.
const versionFolder = "version"

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
	return errors.Join(remove(versionFolder), remove("keys"), remove(ratchetFolder))
}

// followVersions serves every new version until ctx ends.
func (e *Edge) followVersions(ctx context.Context) error {
	config := snapshots.FollowConfig{
		Store:       e.deps.Store,
		Deliver:     e.accept,
		Report:      e.report,
		Wake:        e.look,
		Lean:        resident.Lean,
		CacheFailed: func(err error) { e.log.Warn("no copy of the version on disk", "err", err) },
		Trust:       e.cfg.Trust,
		Pin:         e.cfg.Pin,
		Fresh: func(fresh snapshots.Fresh) {
			e.keys.Freshen(ctx, fresh.Keys)
			if known := e.versions.goodUntil.Load(); !fresh.Until.IsZero() && (known == nil || fresh.Until.After(*known)) {
				e.versions.goodUntil.Store(&fresh.Until)
			}
		},
	}
	if !e.cfg.Trust.Empty() {
		marks, err := dirblob.Open(filepath.Join(e.cfg.CacheDir, ratchetFolder))
		if err != nil {
			return fmt.Errorf("ratchet of versions: %w", err)
		}
		config.Ratchet = notes.NewRatchet(marks, "versions.json")
	}
	if e.cfg.CacheDir != "" {
		cache, err := dirblob.Open(filepath.Join(e.cfg.CacheDir, versionFolder))
		if err != nil {
			return fmt.Errorf("cache of versions: %w", err)
		}
		config.Cache = cache
	}
	if err := snapshots.Follow(ctx, config); ctx.Err() == nil {
		return fmt.Errorf("follow versions: %w", err)
	}
	return nil
}

// Look makes the edge poll for a new version at once, instead of within a second.
func (e *Edge) Look() {
	select {
	case e.look <- struct{}{}:
	default: // the edge is about to poll
	}
}

// accept makes a version the served one. If the edge cannot serve a version although
// every hash in it is right, accept keeps the last one and returns the reason.
func (e *Edge) accept(version *snapshots.Version) error {
	start := time.Now()
	set, err := resident.Load(version, e.versions.current())
	if err != nil {
		return err
	}
	e.metrics.loaded.Inc()
	e.versions.set.Store(set)
	e.downloads.look()
	e.log.Info("version served", "version", version.Pointer.Version, "variants", len(version.Manifest.Entries),
		"bytes", version.Bytes(), "took", time.Since(start), "held", version.Pointer.Held)
	return nil
}

// report records the outcome of a poll of the store.
func (e *Edge) report(r snapshots.FollowReport) {
	if r.State == snapshots.Following || r.State == snapshots.Waiting {
		now := time.Now()
		e.versions.confirmed.Store(&now)
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
		e.metrics.refused.Inc()
		e.versions.refused.Store(&Refused{Version: r.Version, At: wire.Instant(time.Now()), Reason: r.Err.Error(), public: public})
		e.log.Error("version refused, the last one stays", "version", r.Version, "err", r.Err)
	case snapshots.Unreachable:
		text := r.Err.Error()
		problem = &text
		e.log.Warn("store does not answer, the last version stays", "err", r.Err)
	}
	e.versions.problem.Store(problem)
}

// stale reports whether the edge has not confirmed for longer than keys.StaleAfter that its version is current,
// for any reason. A signed version also needs the publisher's word that it is current now.
func (v *versions) stale(now time.Time) bool {
	confirmed, until := v.confirmed.Load(), v.goodUntil.Load()
	return confirmed == nil || now.Sub(*confirmed) > keys.StaleAfter || v.signed && (until == nil || now.After(*until))
}
