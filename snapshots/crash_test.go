package snapshots_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
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

// TestCrashAtEveryWrite kills a builder at each of its writes in turn, then runs another one. An edge that follows
// sees the whole earlier version or the whole later one, and nothing else.
func TestCrashAtEveryWrite(t *testing.T) {
	tests := []struct {
		name          string
		before, after bodies
		writes        int
	}{
		// A claim, two bodies, their delta, a manifest and the pointer.
		{"few variants", crashBefore, crashAfter, 1 + 2 + 1 + 1 + 1},
		// A claim, a body, a part of the manifest, a manifest and the pointer.
		{"many variants", decades(), decades().with(bodies{"calendar/1950": "", "drivers": "d2"}), 1 + 1 + 1 + 1 + 1},
	}
	if testing.Short() {
		tests = tests[:1] // the others take two minutes under the race detector
	}
	for _, test := range tests {
		for _, applied := range []bool{false, true} {
			positions := 0
			for n := 1; ; n++ {
				died := false
				t.Run(fmt.Sprintf("%s, write %d, applied %v", test.name, n, applied), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { died = crashAt(t, test.before, test.after, n, applied) })
				})
				if !died {
					break
				}
				positions = n
			}
			must.Hold(t, positions == test.writes, "%s: the builder was killed at %d writes, want %d", test.name, positions, test.writes)
		}
	}
}

func crashAt(t *testing.T, before, after bodies, n int, applied bool) bool {
	clock := &clock{now: time.Now()}
	s := memblob.New(memblob.Strict(t, snapshots.Immutable), memblob.Clock(clock.Now))
	publish(t, s, before)
	e := follow(t, s, memblob.New())

	store, died := faultblob.Mortal(s, n, applied)
	p := snapshots.Publisher{Store: store, Workers: 1}
	_, err := p.Publish(t.Context(), draftOf(loadBase(t, s), after))
	synctest.Wait()
	if died() != (err != nil) {
		t.Errorf("killed: %v; publish returned %v", died(), err)
	}
	reached, content := served(t, s)
	want := map[int64]bodies{1: before, 2: after}[reached]
	must.Hold(t, cmp.Equal(content, want), "after the kill version %d is %v, want %v", reached, content, want)

	r := publish(t, s, after)
	synctest.Wait()
	must.Hold(t, r.Version >= reached && (r.Version == reached) == r.Unchanged,
		"the next run published version %d over %d, unchanged %v", r.Version, reached, r.Unchanged)
	_, content = served(t, s)
	must.Hold(t, cmp.Equal(content, after), "after the next run: %v, want %v", content, after)
	for i, v := range e.versions {
		checkWhole(t, v)
		if i > 0 && v.Pointer.Version <= e.versions[i-1].Pointer.Version {
			t.Errorf("the edge went from version %d to %d", e.versions[i-1].Pointer.Version, v.Pointer.Version)
		}
	}
	for _, report := range e.reports {
		must.Hold(t, report.State == snapshots.Following, "the edge was told %s: %v", report.State, report.Err)
	}
	_ = e.stop()

	clock.now = clock.now.Add(2 * snapshots.PruneAge)
	must.Get(snapshots.Prune(t.Context(), s, 1, clock.now, false))(t)
	checkNothingLeftOver(t, s)
	return died()
}

// checkNothingLeftOver checks that the current version reaches every object except claims.
func checkNothingLeftOver(t *testing.T, s blob.Store) {
	t.Helper()
	base := loadBase(t, s)
	want := map[string]bool{snapshots.PointerKey: true, snapshots.ManifestKey(base.Pointer.Version): true}
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

// Each write of a publish fails once in two ways: it is refused for an unknown reason, or it is applied and its
// answer is lost. The builder must find out and finish.
func TestDoubtfulWrites(t *testing.T) {
	for _, applied := range []bool{false, true} {
		for n := 1; ; n++ {
			hit := false
			t.Run(fmt.Sprintf("write %d, applied %v", n, applied), func(t *testing.T) {
				s := strict(t)
				publish(t, s, crashBefore)
				writes := 0
				doubtful := faultblob.Wrap(s, func(_ context.Context, call faultblob.Call) faultblob.Fate {
					if !call.Op.Writes() {
						return faultblob.Fate{}
					}
					if writes++; writes != n {
						return faultblob.Fate{}
					}
					hit = true
					return faultblob.Fate{Err: blob.ErrUnknown, Applied: applied}
				})
				p := snapshots.Publisher{Store: doubtful, Workers: 1}
				r, err := p.Publish(t.Context(), draftOf(loadBase(t, s), crashAfter))
				must.Hold(t, err == nil && r.Version == 2, "got version %d, %v; want 2", r.Version, err)
				version, content := served(t, s)
				must.Hold(t, version == 2 && cmp.Equal(content, crashAfter), "version %d with %v is current", version, content)
			})
			if !hit {
				break
			}
		}
	}
}

// The answer to the swap is lost, and another builder publishes on top before the first one reads back. The first
// one has succeeded all the same, because its version was current.
func TestWonAndSucceeded(t *testing.T) {
	s := strict(t)
	publish(t, s, crashBefore)
	overtaken := faultblob.Wrap(s, func(_ context.Context, call faultblob.Call) faultblob.Fate {
		if call.Op == faultblob.Swap {
			return faultblob.Fate{Err: blob.ErrUnknown, Applied: true}
		}
		if base := loadBase(t, s); call == (faultblob.Call{Op: faultblob.Get, Key: snapshots.PointerKey}) && base.Pointer.Version == 2 {
			publish(t, s, bodies{"drivers": "d3"})
		}
		return faultblob.Fate{}
	})
	p := snapshots.Publisher{Store: overtaken}
	r, err := p.Publish(t.Context(), draftOf(loadBase(t, s), crashAfter))
	must.Hold(t, err == nil && r.Version == 2, "got version %d, %v; want 2 and no error", r.Version, err)
	wantServed(t, s, 3, "")
}

func TestBaseChanged(t *testing.T) {
	s := strict(t)
	publish(t, s, crashBefore)
	stale := loadBase(t, s)
	publish(t, s, crashAfter)
	p := snapshots.Publisher{Store: s}
	must.Fail(t, "a stale base", must.Err(p.Publish(t.Context(), draftOf(stale, bodies{"drivers": "d9"}))), snapshots.ErrBaseChanged)
	version, content := served(t, s)
	must.Hold(t, version == 2 && cmp.Equal(content, crashAfter), "version %d with %v is current, want the second", version, content)
}

// A store that returns other bytes for an uploaded object publishes nothing.
func TestUploadIsCheckedBeforeTheSwap(t *testing.T) {
	s := memblob.New()
	publish(t, s, crashBefore)
	bad := faultblob.Wrap(s, func(_ context.Context, call faultblob.Call) faultblob.Fate {
		if call.Key == "objects/2/drivers.json.gz" && call.Op == faultblob.Get {
			return faultblob.Fate{Mangle: func(data []byte) []byte { return data[:1] }}
		}
		return faultblob.Fate{}
	})
	p := snapshots.Publisher{Store: bad}
	must.Fail(t, "other bytes for an uploaded object", must.Err(p.Publish(t.Context(), draftOf(loadBase(t, s), crashAfter))), snapshots.ErrDamaged)
	wantServed(t, s, 1, "")
}
