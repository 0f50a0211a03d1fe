package snapshots_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// A reader with the version before takes the new bodies from the delta. Without a whole delta it reads their
// objects, and in every case it has the same version.
func TestDelta(t *testing.T) {
	const delta = "deltas/2"
	objects := map[string]int{}
	for _, name := range []string{"calendar/2026", "standings/drivers/2026", "predictions/2026", "results/2026", "results/session/2026022", "drivers", "next-race"} {
		objects["objects/2/"+name+".json.gz"] = 1
	}
	byOne := func(read map[string]int) map[string]int {
		all := maps.Clone(objects)
		maps.Copy(all, read)
		return all
	}
	for _, c := range []struct {
		name   string
		mangle func([]byte) []byte // of the delta
		err    error               // of reading the delta
		want   map[string]int      // reads beside pointer and manifest
	}{
		{"whole", nil, nil, map[string]int{delta: 1}},
		{"missing", nil, blob.ErrNotFound, byOne(map[string]int{delta: 1})},
		{"unreachable", nil, errors.New("the store does not answer"), byOne(map[string]int{delta: 1})},
		{"cut", func(data []byte) []byte { return data[:len(data)-1] }, nil, byOne(map[string]int{delta: 1})},
		{"of other bytes", func(data []byte) []byte { data[0] ^= 1; return data }, nil, byOne(map[string]int{delta: 1})},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner := memblob.New(memblob.Strict(t, snapshots.Immutable))
			publish(t, inner, decades())
			before, err := snapshots.Open(t.Context(), inner, nil)
			if err != nil {
				t.Fatal(err)
			}
			publish(t, inner, decades().with(verified("now")))
			var mu sync.Mutex
			read := map[string]int{}
			s := faultblob.Wrap(inner, func(_ context.Context, call faultblob.Call) faultblob.Fate {
				mu.Lock()
				defer mu.Unlock()
				read[call.Key]++
				if call.Key == delta {
					return faultblob.Fate{Err: c.err, Mangle: c.mangle}
				}
				return faultblob.Fate{}
			})
			v, err := snapshots.Open(t.Context(), s, before)
			if err != nil {
				t.Fatal(err)
			}
			want := maps.Clone(c.want)
			want[snapshots.PointerKey], want[snapshots.ManifestKey(2)] = 1, 1
			if diff := cmp.Diff(want, read); diff != "" {
				t.Errorf("reads (-want +got):\n%s", diff)
			}
			got := bodies{}
			for path, body := range v.All() {
				got[path] = string(body.Identity)
			}
			if _, want := served(t, inner); !cmp.Equal(want, got) {
				t.Errorf("bodies (-want +got):\n%s", cmp.Diff(want, got))
			}
		})
	}
}

// The first version and a version with one new body have no delta. A rollback has none either, and a version
// with equal documents costs a reader the pointer and the manifest.
func TestWithoutDelta(t *testing.T) {
	inner := memblob.New(memblob.Strict(t, snapshots.Immutable))
	var mu sync.Mutex
	reads := 0
	s := faultblob.Wrap(inner, func(_ context.Context, call faultblob.Call) faultblob.Fate {
		mu.Lock()
		defer mu.Unlock()
		if call.Op == faultblob.Get {
			reads++
		}
		return faultblob.Fate{}
	})
	open := func(before *snapshots.Version, want int) *snapshots.Version {
		t.Helper()
		reads = 0
		v, err := snapshots.Open(t.Context(), s, before)
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && reads != want {
			t.Errorf("version %d took %d reads, want %d", v.Pointer.Version, reads, want)
		}
		if v.Manifest.Delta != (snapshots.Delta{}) {
			t.Errorf("version %d has the delta %+v, want none", v.Pointer.Version, v.Manifest.Delta)
		}
		return v
	}
	all := decades()
	publish(t, inner, all)
	v := open(nil, 0)
	publish(t, inner, all.with(bodies{"drivers": "one body"}))
	v = open(v, 3)

	d := draftOf(loadBase(t, inner), nil)
	for _, e := range d.Base.Manifest.Entries {
		d.Variants = append(d.Variants, snapshots.Reused(e))
	}
	d.Archive = "another archive with the same documents"
	p := snapshots.Publisher{Store: inner}
	if _, err := p.Publish(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	v = open(v, 2)

	publish(t, inner, all.with(verified("then")))
	then, err := snapshots.Open(t.Context(), inner, v)
	if err != nil {
		t.Fatal(err)
	}
	if then.Manifest.Delta.Size == 0 {
		t.Error("a version with seven new bodies has no delta")
	}
	rollback(t, inner, 3)
	open(v, 2) // an edge that still serves version 3 has all bodies
	if found, err := snapshots.Verify(t.Context(), inner, 4, nil); err != nil || len(found.Faults) > 0 {
		t.Errorf("verify version 4 with its delta: %v, %v", found.Faults, err)
	}
}
