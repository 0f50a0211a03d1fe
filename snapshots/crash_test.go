package snapshots_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
)

// checkWhole compares every byte that an edge would serve with the manifest's hashes.
func checkWhole(t *testing.T, v *snapshots.Version) {
	t.Helper()
	must.Hold(t, len(v.Manifest.Entries) != 0, "version %d is empty", v.Pointer.Version)
	for path, b := range v.All() {
		if got := snapshots.Digest(b.Identity); got != b.Entry.SHA256 {
			t.Errorf("version %d serves %s with hash %s, manifest says %s", v.Pointer.Version, path, got, b.Entry.SHA256)
		}
		if got := snapshots.Digest(b.Encoded[snapshots.GZ]); got != b.Entry.Packed.SHA256 {
			t.Errorf("version %d serves %s as gzip with hash %s, manifest says %s", v.Pointer.Version, path, got, b.Entry.Packed.SHA256)
		}
		for _, coding := range []string{snapshots.BR, snapshots.ZST} {
			if got, err := decoders[coding](b.Encoded[coding]); err != nil || !bytes.Equal(got, b.Identity) {
				t.Errorf("version %d serves %s in %s as %q (%v), want %q", v.Pointer.Version, path, coding, got, err, b.Identity)
			}
		}
	}
}

var (
	crashBefore = bodies{"drivers": "d1", "calendar/2024": "c1", "next-race": "n1"}
	crashAfter  = bodies{"drivers": "d2", "calendar/2024": "c1", "next-race": "n2"}
)

// TestFaultAtEveryWrite lets each write of a publish fail in turn: the builder dies there, or does not know the outcome and must
// find out. The write is applied or not. An edge that follows serves the whole earlier version or the whole later one. The
// next run publishes, and a prune leaves nothing over.
func TestFaultAtEveryWrite(t *testing.T) {
	tests := []struct {
		name          string
		before, after bodies
		keys, writes  int
	}{
		// A claim, two bodies, their delta, a manifest and the pointer.
		{"few variants", crashBefore, crashAfter, 0, 1 + 2 + 1 + 1 + 1},
		// Also a note.
		{"signed", crashBefore, crashAfter, 1, 1 + 2 + 1 + 1 + 1 + 1},
		// A claim, a body, a part of the manifest, a manifest and the pointer.
		{"many variants", decades(), decades().with(bodies{"calendar/1950": "", "drivers": "d2"}), 0, 1 + 1 + 1 + 1 + 1},
	}
	if testing.Short() {
		tests = tests[:2] // the last takes two minutes under the race detector
	}
	for _, test := range tests {
		for _, fault := range []faultblob.Fate{
			{Err: faultblob.ErrKilled}, {Err: faultblob.ErrKilled, Applied: true}, {Err: blob.ErrUnknown}, {Err: blob.ErrUnknown, Applied: true},
		} {
			positions := 0
			for n, hit := 1, true; hit; n++ {
				t.Run(fmt.Sprintf("%s, write %d, %v, applied %v", test.name, n, fault.Err, fault.Applied), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { hit = faultAt(t, test.before, test.after, test.keys, n, fault) })
				})
				if hit {
					positions = n
				}
			}
			must.Hold(t, positions == test.writes, "%s: the builder met the fault at %d writes, want %d", test.name, positions, test.writes)
		}
	}
}

// faultAt reports whether the builder made so many writes.
func faultAt(t *testing.T, before, after bodies, keys, n int, fault faultblob.Fate) (hit bool) {
	clock := &clock{now: time.Now()}
	s := memblob.New(memblob.Strict(t, snapshots.Immutable), memblob.Clock(clock.Now))
	var key *notes.Signers
	if keys > 0 {
		key = signers(t, keyFile(t, origin))
		key.New = true
	}
	publish := func(s blob.Store, content bodies) (snapshots.Receipt, error) {
		p := snapshots.Publisher{Store: s, Workers: 1, Signers: key}
		return p.Publish(t.Context(), draftOf(ownBase(t, &p), content))
	}
	must.Get(publish(s, before))(t)
	writes := 0
	e := followSigned(t, s, []*notes.Signers{key}[:keys]...)
	killed := fault.Err == faultblob.ErrKilled //nolint:errorlint // of the table
	r, err := publish(faultblob.Wrap(s, func(_ context.Context, call faultblob.Call) faultblob.Fate {
		if call.Op.Writes() {
			writes++
		}
		if writes == n && call.Op.Writes() || writes >= n && killed {
			hit = true
			return fault
		}
		return faultblob.Fate{}
	}), after)
	must.Hold(t, (err != nil) == (hit && killed), "publish returns version %d, %v", r.Version, err)
	reached, content := served(t, s)
	e.want(t, "after the fault", reached, nil)
	must.Equal(t, fmt.Sprintf("version %d after the fault", reached), map[int64]bodies{1: before, 2: after}[reached], content)
	must.Hold(t, killed && hit || reached == 2, "version %d is current, want 2", reached)

	r = must.Get(publish(s, after))(t)
	must.Hold(t, r.Version >= reached && (r.Version == reached) == r.Unchanged,
		"the next run published version %d over %d, unchanged %v", r.Version, reached, r.Unchanged)
	e.want(t, "after the next run", r.Version, nil)
	must.Equal(t, "content", after, e.lastContent())
	for i, v := range e.versions {
		checkWhole(t, v)
		must.Hold(t, i == 0 || v.Pointer.Version > e.versions[i-1].Pointer.Version, "the edge takes version %d after a later one", v.Pointer.Version)
	}
	for _, report := range e.reports {
		must.Hold(t, report.State == snapshots.Following, "the edge was told %s: %v", report.State, report.Err)
	}
	_ = e.stop()

	clock.now = clock.now.Add(2 * snapshots.PruneAge)
	must.Get(snapshots.Prune(t.Context(), s, 1, clock.now, false))(t)
	checkNothingLeftOver(t, s)
	return hit
}

// checkNothingLeftOver checks that the current version reaches every object except claims.
func checkNothingLeftOver(t *testing.T, s blob.Store) {
	t.Helper()
	base := loadBase(t, s)
	want := map[string]bool{snapshots.PointerKey: true, snapshots.ManifestKey(base.Pointer.Version): true}
	if base.Pointer.Signed {
		want[snapshots.NoteKey(base.Pointer.Version)] = true
	}
	for _, object := range base.Manifest.Objects() {
		key := object.Key
		want[key] = true
	}
	got := map[string]bool{}
	for _, key := range keysOf(t, s) {
		if snapshots.Immutable(key) && key[0] == 'v' {
			continue
		}
		got[key] = true
	}
	must.Equal(t, "after the prune", want, got)
}

// A store that returns other bytes for an object of the new version publishes nothing.
func TestUploadIsCheckedBeforeTheSwap(t *testing.T) {
	content := decades().with(crashBefore)
	whole := memblob.New()
	publish(t, whole, content)
	known := keysOf(t, whole)
	publish(t, whole, content.with(crashAfter))
	for _, key := range keysOf(t, whole) {
		if slices.Contains(known, key) || strings.HasPrefix(key, "versions/") {
			continue
		}
		s := memblob.New()
		publish(t, s, content)
		p := snapshots.Publisher{Store: faultblob.Wrap(s, func(_ context.Context, call faultblob.Call) (fate faultblob.Fate) {
			if call.Key == key && call.Op == faultblob.Get {
				fate.Mangle = func(data []byte) []byte { return data[:1] }
			}
			return fate
		})}
		must.Fail(t, "other bytes for "+key, must.Err(p.Publish(t.Context(), draftOf(loadBase(t, s), content.with(crashAfter)))), snapshots.ErrDamaged)
		wantServed(t, s, 1, "")
	}
}
