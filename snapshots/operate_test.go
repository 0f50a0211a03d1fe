package snapshots_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/zstd"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

func rollback(t *testing.T, s blob.Store, to int64) snapshots.Receipt {
	t.Helper()
	p := snapshots.Publisher{Store: s}
	return must.Get(p.Rollback(t.Context(), to, "operator", "wrong result", raceDay.Add(time.Hour)))(t)
}

func TestRollbackHolds(t *testing.T) {
	s := strict(t)
	publish(t, s, bodies{"drivers": "d1"})
	publish(t, s, bodies{"drivers": "d2"})
	r := rollback(t, s, 1)
	version, content := served(t, s)
	if r.Version != 3 || version != 3 || content["drivers"] != "d1" {
		t.Fatalf("version %d with %q is current, want 3 with the content of 1", version, content["drivers"])
	}
	base := loadBase(t, s)
	if !base.Pointer.Held || base.Pointer.Reason != "wrong result" || base.Manifest.RollbackOf != 1 || base.Manifest.Base != 2 {
		t.Errorf("pointer %+v, manifest rolls back %d on base %d; want held, with the reason, 1 on 2",
			base.Pointer, base.Manifest.RollbackOf, base.Manifest.Base)
	}

	p := snapshots.Publisher{Store: s}
	d := draftOf(base, bodies{"drivers": "d2"})
	d.BuiltAt = raceDay.Add(2 * time.Hour)
	must.Fail(t, "publish while held", must.Err(p.Publish(t.Context(), d)), snapshots.ErrHeld)
	d.EndHold = true
	r, err := p.Publish(t.Context(), d)
	must.Hold(t, err == nil && r.Version == 4, "publish with release: got version %d, %v; want 4", r.Version, err)
	must.Hold(t, !loadBase(t, s).Pointer.Held, "the pointer is held after the release")
}

// A draft with EndHold ends the hold also if its content equals that of the rollback.
func TestReleaseWithoutChange(t *testing.T) {
	s := strict(t)
	publish(t, s, bodies{"drivers": "d1"})
	publish(t, s, bodies{"drivers": "d2"})
	rollback(t, s, 1)
	d := draftOf(loadBase(t, s), bodies{"drivers": "d1"})
	d.BuiltAt, d.EndHold = raceDay.Add(2*time.Hour), true
	must.Get((&snapshots.Publisher{Store: s}).Publish(t.Context(), d))(t)
	base := loadBase(t, s)
	must.Hold(t, !base.Pointer.Held && base.Pointer.Version == 4, "pointer %+v, want version 4, not held", base.Pointer)
}

func TestRollbackRefuses(t *testing.T) {
	s := memblob.New() // objects are damaged on purpose
	publish(t, s, bodies{"drivers": "d1"})
	publish(t, s, bodies{"drivers": "d2"})
	publish(t, s, bodies{"drivers": "d3"})
	s.Corrupt("objects/2/drivers.json.gz", []byte("x"))
	p := snapshots.Publisher{Store: s}
	for _, to := range []int64{0, 3, 4} {
		must.Fail(t, fmt.Sprintf("rolled back to version %d", to), must.Err(p.Rollback(t.Context(), to, "operator", "why", raceDay)))
	}
	must.Fail(t, "rolled back without a reason", must.Err(p.Rollback(t.Context(), 1, "operator", "", raceDay)))
	must.Fail(t, "rollback to a damaged version", must.Err(p.Rollback(t.Context(), 2, "operator", "why", raceDay)), snapshots.ErrDamaged)
	wantServed(t, s, 3, "")
}

// TestRollbackFromAnImpossiblePointer: a pointer to a number that no builder claimed is replaced, however
// large the number. Until then the error of a build names the remedy.
func TestRollbackFromAnImpossiblePointer(t *testing.T) {
	for _, number := range []int64{1<<63 - 1, 1<<53 + 1, 1 << 53, 1<<53 - 1, 3 + snapshots.MaxGap + 1} {
		s := memblob.New()
		for _, body := range []string{"d1", "d2", "d3"} {
			publish(t, s, bodies{"drivers": body})
		}
		pointer, _ := must.Get2(snapshots.LoadPointer(t.Context(), s))(t)
		s.Corrupt(snapshots.PointerKey, fmt.Appendf(nil, `{"version":%d,"manifest":%q,"at":"2026-01-01T00:00:00Z"}`, number, pointer.Manifest))
		err := must.Err(snapshots.LoadBase(t.Context(), s, nil))
		must.Hold(t, errors.Is(err, snapshots.ErrNoBase) && errors.Is(err, snapshots.ErrDamaged) == (number > 1<<53),
			"%d: build from it: got %v", number, err)
		r := rollback(t, s, 2)
		must.Hold(t, r.Version == 4, "%d: rolled back under number %d, want 4", number, r.Version)
		_, content := served(t, s)
		must.Hold(t, content["drivers"] == "d2", "%d: %q is current, want the content of 2", number, content["drivers"])
	}
}

// A rollback works if the current version is damaged.
func TestRollbackFromDamage(t *testing.T) {
	for _, key := range []string{snapshots.PointerKey, "no pointer", "manifests/3.json.gz", "objects/3/drivers.json.gz"} {
		t.Run(key, func(t *testing.T) {
			s := memblob.New()
			for _, body := range []string{"d1", "d2", "d3"} {
				publish(t, s, bodies{"drivers": body})
			}
			if key == "no pointer" {
				must.Do(t, s.Delete(t.Context(), snapshots.PointerKey))
			} else {
				s.Corrupt(key, []byte("{"))
			}
			r := rollback(t, s, 2)
			must.Hold(t, r.Version == 4, "rolled back under number %d, want 4", r.Version)
			wantServed(t, s, 4, "d2")
		})
	}
}

func TestList(t *testing.T) {
	s := strict(t)
	publish(t, s, bodies{"drivers": "d1"})
	publish(t, s, bodies{"drivers": "d22"})
	abandon(t, s, bodies{"drivers": "d3"})
	rollback(t, s, 1)
	got := must.Get(snapshots.List(t.Context(), s))(t)
	want := []snapshots.Summary{
		{Version: 4, Status: snapshots.Current, Held: true, Builder: "operator", Reason: "wrong result", BuiltAt: raceDay.Add(time.Hour), Base: 2, RollbackOf: 1, Variants: 1, Bytes: packedSize("d1")},
		{Version: 3, Status: snapshots.Unpublished},
		{Version: 2, Status: snapshots.Published, Builder: "test", BuiltAt: raceDay, Base: 1, Variants: 1, Bytes: packedSize("d22")},
		{Version: 1, Status: snapshots.Published, Builder: "test", BuiltAt: raceDay, Variants: 1, Bytes: packedSize("d1")},
	}
	must.Equal(t, "list", want, got)
}

// abandon publishes until the first object is written, and stops.
func abandon(t *testing.T, s blob.Store, content bodies) {
	t.Helper()
	var wrote atomic.Bool // folders are listed side by side
	dying := faultblob.Wrap(s, func(_ context.Context, call faultblob.Call) faultblob.Fate {
		if wrote.Load() {
			return faultblob.Fate{Err: faultblob.ErrKilled}
		}
		if call.Op == faultblob.Create && call.Key[0] == 'o' {
			wrote.Store(true)
		}
		return faultblob.Fate{}
	})
	p := snapshots.Publisher{Store: dying, Workers: 1}
	if _, err := p.Publish(t.Context(), draftOf(loadBase(t, s), content)); !errors.Is(err, faultblob.ErrKilled) {
		t.Fatalf("the builder was to be killed: %v", err)
	}
}

func TestVerify(t *testing.T) {
	s := memblob.New()
	publish(t, s, bodies{"drivers": "d1", "calendar/2024": "c1"})
	got, err := snapshots.Verify(t.Context(), s, 0, nil)
	delta := loadBase(t, s).Manifest.Deltas[0]
	want := snapshots.Verification{Version: 1, Objects: 2 + 1, Bytes: packedSize("d1", "c1") + delta.Size}
	diff := cmp.Diff(want, got)
	must.Hold(t, err == nil && diff == "", "%v (-want +got):\n%s", err, diff)

	s.Corrupt("objects/1/drivers.json.gz", []byte("dX"))
	must.Do(t, s.Delete(t.Context(), "objects/1/calendar/2024.json.gz"))
	got, err = snapshots.Verify(t.Context(), s, 1, nil)
	if err != nil || len(got.Faults) != 2 {
		t.Fatalf("got faults %v, %v; want 2", got.Faults, err)
	}
	joined := errors.Join(got.Faults...)
	must.Hold(t, errors.Is(joined, snapshots.ErrDamaged) && errors.Is(joined, blob.ErrNotFound),
		"faults %v: want one damaged, one missing", joined)
}

func TestDiff(t *testing.T) {
	const rendered = `"meta":{"api":"gridcast-v1","generated_at":"2024-11-24T06:00:00+00:00"}}`
	standings := func(rows string) string { return `{"ok":true,"data":[` + rows + `],` + rendered }
	s := strict(t)
	publish(t, s, bodies{
		"standings/drivers/2024": standings(`{"position":1,"driver":"VER","points":403},{"position":2,"driver":"NOR","points":340}`),
		"calendar/2024":          `{"data":{"sessions":[1,2]}}`,
		"drivers":                `{"data":[],` + rendered,
		"gone":                   "1",
		"next-race":              "no JSON",
	})
	publish(t, s, bodies{
		"standings/drivers/2024": standings(`{"position":1,"driver":"NOR","points":410},{"position":2,"driver":"VER","points":403},{"position":3,"driver":"P&A","points":1}`),
		"calendar/2024":          `{"data":{"sessions":[1,3,4],"winner":"VER"}}`,
		"drivers":                `{"data":[],"meta":{"api":"gridcast-v1","generated_at":"2025-01-01T00:00:00+00:00"}}`,
		"here":                   "1",
		"next-race":              "still none",
	})
	from := must.Get(snapshots.LoadManifest(t.Context(), s, 1))(t)
	to := must.Get(snapshots.LoadManifest(t.Context(), s, 0))(t)
	got := must.Get(snapshots.Diff(t.Context(), s, from, to))(t)
	want := []snapshots.Difference{
		{Path: "calendar/2024", Kind: snapshots.Changed, Values: []snapshots.ValueChange{
			{At: "data.sessions[1]", Old: "2", New: "3"},
			{At: "data.sessions[2]", New: "4"},
			{At: "data.winner", New: `"VER"`},
		}},
		{Path: "drivers", Kind: snapshots.Changed},
		{Path: "gone", Kind: snapshots.Removed},
		{Path: "here", Kind: snapshots.Added},
		{Path: "next-race", Kind: snapshots.Changed, Values: []snapshots.ValueChange{{At: "(not JSON)", Old: `"no JSON"`, New: `"still none"`}}},
		{Path: "standings/drivers/2024", Kind: snapshots.Changed, Values: []snapshots.ValueChange{
			{At: "data[driver=VER].position", Old: "1", New: "2"},
			{At: "data[driver=NOR].position", Old: "2", New: "1"},
			{At: "data[driver=NOR].points", Old: "340", New: "410"},
			{At: "data[driver=P&A]", New: `{"position":3,"driver":"P&A","points":1}`},
		}},
	}
	must.Equal(t, "changes", want, got)
}

// clock is the store's; tests move it.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func TestPrune(t *testing.T) {
	c := &clock{now: raceDay}
	s := memblob.New(memblob.Strict(t, snapshots.Immutable), memblob.Clock(c.Now))
	publish(t, s, bodies{"drivers": "d1", "calendar/2024": "c1"}) // 1
	publish(t, s, bodies{"drivers": "d2", "calendar/2024": "c1"}) // 2
	abandon(t, s, bodies{"drivers": "d9", "calendar/2024": "c9"}) // 3
	probe(t, s, "dead")
	c.now = c.now.Add(48 * time.Hour)
	publish(t, s, bodies{"drivers": "d4", "calendar/2024": "c1"}) // 4
	abandon(t, s, bodies{"drivers": "d9", "calendar/2024": "c9"}) // 5
	probe(t, s, "alive")
	before := keysOf(t, s)

	dry := must.Get(snapshots.Prune(t.Context(), s, 1, c.now, true))(t)
	must.Equal(t, "the dry run changed the store", before, keysOf(t, s))
	real := must.Get(snapshots.Prune(t.Context(), s, 1, c.now, false))(t)
	must.Equal(t, "the dry run said something else", dry, real)

	// Version 4 still uses the calendar of version 1. Version 5 is too young to be pruned.
	removed := map[string]bool{}
	for _, info := range real.Removed {
		removed[info.Key] = true
	}
	wantRemoved := map[string]bool{
		"manifests/1.json.gz": true, "manifests/2.json.gz": true,
		"versions/1.json": true, "versions/2.json": true, "versions/3.json": true,
		"objects/1/drivers.json.gz": true, "objects/2/drivers.json.gz": true,
		"objects/3/calendar/2024.json.gz": true,
		"probe/dead":                      true,
	}
	must.Equal(t, "removed", wantRemoved, removed)
	result, err := snapshots.Verify(t.Context(), s, 0, nil)
	must.Hold(t, err == nil && len(result.Faults) == 0, "the current version after the prune: %v, %v", result.Faults, err)
	r := publish(t, s, bodies{"drivers": "d6", "calendar/2024": "c1"})
	must.Hold(t, r.Version == 6, "next version is %d, want 6", r.Version)
}

// probe leaves an object of a process that was killed while it checked the server.
func probe(t *testing.T, s blob.Store, name string) {
	t.Helper()
	must.Get(s.Create(t.Context(), blob.ProbeFolder+name, []byte("one")))(t)
}

func TestPruneRemovesWhatNoVersionWasDerivedFrom(t *testing.T) {
	c := &clock{now: raceDay}
	s := memblob.New(memblob.Strict(t, snapshots.Immutable), memblob.Clock(c.Now))
	for n, body := range []string{"d1", "d2", "d3"} {
		base := loadBase(t, s)
		d := draftOf(base, bodies{"drivers": body})
		d.Derived = fmt.Sprintf("%s%d.json", snapshots.DerivedFolder, n+1)
		for _, key := range []string{d.Derived, d.Derived + ".unused", fmt.Sprintf("%s%d", snapshots.SharedFolder, n+1)} {
			must.Get(s.Create(t.Context(), key, []byte("{}")))(t)
			c.now = c.now.Add(time.Hour)
		}
		must.Get((&snapshots.Publisher{Store: s}).Publish(t.Context(), d))(t)
	}
	c.now = c.now.Add(48 * time.Hour)
	must.Get(snapshots.Prune(t.Context(), s, 2, c.now, false))(t)
	left := keysOf(t, s, snapshots.DerivedFolder)
	// The derived documents of the kept versions stay, and the latest ones.
	must.Equal(t, "derived files left", []string{"derived/2.json", "derived/3.json", "derived/3.json.unused", "derived/parts/3"}, left)
}

// TestPruneKeepsPartsOfDerivedFiles has each derived file name a part that is older than the latest one, as when two
// schedulers share a store.
func TestPruneKeepsPartsOfDerivedFiles(t *testing.T) {
	c := &clock{now: raceDay}
	s := memblob.New(memblob.Strict(t, snapshots.Immutable), memblob.Clock(c.Now))
	create := func(key, text string) {
		t.Helper()
		packed := bytes.NewBuffer(nil)
		z := must.Get(zstd.NewWriter(packed))(t)
		if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		must.Get(s.Create(t.Context(), key, packed.Bytes()))(t)
		c.now = c.now.Add(time.Hour)
	}
	part := func(n int) string { return fmt.Sprintf("%s%d", snapshots.SharedFolder, n) }
	for n := range 6 {
		create(part(n), "{}")
	}
	for n, body := range []string{"d0", "d1", "d2"} { // the version n names the part n
		base := loadBase(t, s)
		d := draftOf(base, bodies{"drivers": body})
		d.Derived = fmt.Sprintf("%s%d.zst", snapshots.DerivedFolder, n)
		create(d.Derived, fmt.Sprintf(`{"data":{},"shared":%q}`, part(n)))
		must.Get((&snapshots.Publisher{Store: s}).Publish(t.Context(), d))(t)
	}
	create(snapshots.DerivedFolder+"latest.zst", fmt.Sprintf(`{"shared":%q}`, part(3)))
	c.now = c.now.Add(48 * time.Hour)
	must.Get(snapshots.Prune(t.Context(), s, 2, c.now, false))(t)
	left := keysOf(t, s, snapshots.DerivedFolder)
	want := []string{"derived/1.zst", "derived/2.zst", "derived/latest.zst", part(1), part(2), part(3), part(5)}
	must.Equal(t, "derived files left", want, left)
}

func TestPruneKeepsVersionsToRollBackTo(t *testing.T) {
	c := &clock{now: raceDay}
	s := memblob.New(memblob.Strict(t, snapshots.Immutable), memblob.Clock(c.Now))
	for _, body := range []string{"d1", "d2", "d3", "d4"} {
		publish(t, s, bodies{"drivers": body})
	}
	c.now = c.now.Add(48 * time.Hour)
	got := must.Get(snapshots.Prune(t.Context(), s, 3, c.now, false))(t)
	must.Equal(t, "kept", []int64{4, 3, 2}, got.Kept, cmpopts.EquateEmpty())
	rollback(t, s, 2)
	wantServed(t, s, 0, "d2")
}

// TestPruneCountsChanges shows that a version which changes only /live does not count as a kept one, and stays as long as
// its base.
func TestPruneCountsChanges(t *testing.T) {
	c := &clock{now: raceDay}
	s := memblob.New(memblob.Strict(t, snapshots.Immutable), memblob.Clock(c.Now))
	for i, body := range []string{"d1", "d2", "d3"} { // versions 1, 3 and 5
		publish(t, s, bodies{"drivers": body, "live/none": strconv.Itoa(2 * i)})
		publish(t, s, bodies{"drivers": body, "live/none": strconv.Itoa(2*i + 1)})
	}
	rollback(t, s, 4) // version 7, which has the documents of 4
	c.now = c.now.Add(48 * time.Hour)
	for keep, want := range map[int][]int64{1: {7}, 2: {7, 6, 5}, 3: {7, 6, 5, 4, 3}, 9: {7, 6, 5, 4, 3, 2, 1}} {
		got := must.Get(snapshots.Prune(t.Context(), s, keep, c.now, true))(t)
		must.Equal(t, fmt.Sprintf("%d to keep", keep), want, got.Kept)
	}
}

func TestPruneRefuses(t *testing.T) {
	c := &clock{now: raceDay}
	s := memblob.New(memblob.Clock(c.Now))
	publish(t, s, bodies{"drivers": "d1"})
	publish(t, s, bodies{"drivers": "d2"})
	c.now = c.now.Add(48 * time.Hour)
	must.Fail(t, "pruned with 0 to keep", must.Err(snapshots.Prune(t.Context(), s, 0, c.now, false)))
	s.Corrupt("manifests/2.json.gz", []byte("{}"))
	before := keysOf(t, s)
	must.Fail(t, "prune with a damaged current version", must.Err(snapshots.Prune(t.Context(), s, 1, c.now, false)), snapshots.ErrDamaged)
	must.Equal(t, "it removed something", before, keysOf(t, s))
}

// keysOf lists the keys of a store, or those below some prefixes.
func keysOf(t *testing.T, s blob.Store, prefixes ...string) (keys []string) {
	t.Helper()
	for _, prefix := range append(prefixes, "")[:max(1, len(prefixes))] {
		for info, err := range s.List(t.Context(), prefix) {
			must.Do(t, err)
			keys = append(keys, info.Key)
		}
	}
	return keys
}
