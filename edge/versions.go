package edge

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"gridcast/edge/resident"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/dirblob"
)

// versions holds the version that is served, and what is known about the others. It is
// written by the goroutine of followVersions and read by all.
type versions struct {
	set     atomic.Pointer[resident.Set]
	refused atomic.Pointer[Refused]
	problem atomic.Pointer[string] // of the latest look at the store; nil: none
}

// Refused says which version was not taken and why. The one before it stays.
type Refused struct {
	Version int64        `json:"version,omitzero"` // 0: it could not be learned
	At      wire.Instant `json:"at"`               // real time
	Reason  string       `json:"reason"`
}

// current returns the set that is served, nil before the first.
func (v *versions) current() *resident.Set { return v.set.Load() }

// followVersions serves every new version until ctx ends.
func (e *Edge) followVersions(ctx context.Context) error {
	config := snapshots.FollowConfig{
		Store:       e.deps.Store,
		Deliver:     e.accept,
		Report:      e.report,
		CacheFailed: func(err error) { e.log.Warn("no copy of the version on disk", "err", err) },
	}
	if e.cfg.CacheDir != "" {
		cache, err := dirblob.Open(filepath.Join(e.cfg.CacheDir, "version"))
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

// accept makes a version the one that is served, or says why the edge cannot serve it, although
// every hash in it is right, and leaves the last one.
func (e *Edge) accept(version *snapshots.Version) error {
	start := time.Now()
	set, err := resident.Load(version, e.versions.current())
	if err != nil {
		return err
	}
	e.versions.set.Store(set)
	e.metrics.loaded.Inc()
	e.log.Info("version served", "version", version.Pointer.Version, "variants", len(version.Manifest.Entries),
		"bytes", version.Bytes(), "took", time.Since(start), "held", version.Pointer.Held)
	return nil
}

// report notes how a look at the store went.
func (e *Edge) report(r snapshots.Report) {
	if r.Repeated {
		return
	}
	switch r.State {
	case snapshots.Refused, snapshots.Failed:
		e.noteRefused(r.Version, r.Err)
	case snapshots.Unreachable:
		problem := r.Err.Error()
		e.versions.problem.Store(&problem)
		e.log.Warn("store does not answer, the last version stays", "err", r.Err)
	default:
		e.versions.problem.Store(nil)
	}
}

// noteRefused says that a version was not taken; the one before it stays.
func (e *Edge) noteRefused(version int64, err error) {
	e.metrics.refused.Inc()
	e.versions.refused.Store(&Refused{Version: version, At: wire.Instant(time.Now()), Reason: err.Error()})
	e.log.Error("version refused, the last one stays", "version", version, "err", err)
}
