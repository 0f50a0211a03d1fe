package snapshots_test

import (
	"context"
	"errors"
	"maps"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/deploy/must"
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
	inner := memblob.New(memblob.Strict(t, snapshots.Immutable))
	publish(t, inner, decades())
	before := must.Get(snapshots.Open(t.Context(), inner, nil))(t)
	publish(t, inner, decades().with(verified("now")))
	_, published := served(t, inner)
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
			v := must.Get(snapshots.Open(t.Context(), s, before))(t)
			want := maps.Clone(c.want)
			want[snapshots.PointerKey], want[snapshots.ManifestKey(2)] = 1, 1
			must.Equal(t, "reads", want, read)
			got := bodies{}
			for path, body := range v.All() {
				got[path] = string(body.Identity)
			}
			if !cmp.Equal(published, got) {
				t.Errorf("bodies (-want +got):\n%s", cmp.Diff(published, got))
			}
		})
	}
}

// reader counts the reads of a store by the folder of the object.
func reader(inner blob.Store) (store blob.Store, take func() map[string]int) {
	var mu sync.Mutex
	reads := map[string]int{}
	store = faultblob.Wrap(inner, func(_ context.Context, call faultblob.Call) faultblob.Fate {
		mu.Lock()
		defer mu.Unlock()
		if folder := path.Dir(call.Key); call.Op == faultblob.Get {
			reads[strings.SplitN(folder, "/", 2)[0]]++
		}
		return faultblob.Fate{}
	})
	return store, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		defer clear(reads)
		return maps.Clone(reads)
	}
}

// A version costs an edge few reads: of the pointer, which is in no folder, of manifests, deltas and objects.
func TestReadsOfAnEdge(t *testing.T) {
	inner := memblob.New(memblob.Strict(t, snapshots.Immutable))
	s, take := reader(inner)
	open := func(what string, before *snapshots.Version, want map[string]int) *snapshots.Version {
		t.Helper()
		take()
		v := must.Get(snapshots.Open(t.Context(), s, before))(t)
		must.Equal(t, what, want, take())
		return v
	}
	all := decades()
	publish(t, inner, all)
	v := open("an edge without a copy", nil, map[string]int{".": 1, "manifests": 1 + 8 + 4 + 1, "deltas": 1})

	all = all.with(bodies{"drivers": "one body"})
	publish(t, inner, all)
	v = open("a version with one new body has no delta", v, map[string]int{".": 1, "manifests": 1, "objects": 1})

	d := draftOf(loadBase(t, inner), nil)
	for _, e := range d.Base.Manifest.Entries {
		d.Variants = append(d.Variants, snapshots.Reused(e))
	}
	d.Archive = "another archive with the same documents"
	must.Get((&snapshots.Publisher{Store: inner}).Publish(t.Context(), d))(t)
	v = open("a version with the same documents", v, map[string]int{".": 1, "manifests": 1})

	publish(t, inner, all.with(verified("then")))
	publish(t, inner, all.with(verified("now")))
	open("two versions with seven new bodies each", v, map[string]int{".": 1, "manifests": 1, "deltas": 1})
	open("an edge without a copy, some versions later", nil, map[string]int{".": 1, "manifests": 1 + 8 + 4 + 1, "deltas": 2})

	rollback(t, inner, 3)
	open("an edge that serves the version of a rollback", v, map[string]int{".": 1, "manifests": 2}) // one body has changed since the part of no season
	for version := range int64(6) {
		found, err := snapshots.Verify(t.Context(), inner, version+1, nil)
		must.Hold(t, err == nil && len(found.Faults) == 0, "verify version %d: %v, %v", version+1, found.Faults, err)
	}
}

// A manifest drops a delta when more than half of its bodies are old, such as four of seven. Prune removes the delta with the last version that
// names it.
func TestDeltaIsDropped(t *testing.T) {
	inner, content := memblob.New(), decades()
	for _, changes := range []bodies{verified("first"), verified("second"), verified("third"), {"calendar/2026": "4", "drivers": "4", "next-race": "4", "results/2026": "4"}, {"calendar/2026": "5", "drivers": "5"}} {
		content = content.with(changes)
		publish(t, inner, content)
	}
	var got []int64
	for _, delta := range loadBase(t, inner).Manifest.Deltas {
		got = append(got, delta.Version)
	}
	must.Equal(t, "deltas of version 5", []int64{1, 4, 5}, got)
	must.Get(snapshots.Prune(t.Context(), inner, 1, time.Now().Add(48*time.Hour), false))(t)
	left := map[string]bool{}
	for info, err := range inner.List(t.Context(), "deltas/") {
		must.Do(t, err)
		left[info.Key] = true
	}
	must.Equal(t, "deltas after prune", map[string]bool{"deltas/1": true, "deltas/4": true, "deltas/5": true}, left)
}
