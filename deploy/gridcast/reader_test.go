package main

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge/keys"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

// reader is a client that reads from an edge all the time and remembers its answers.
type reader struct {
	stop func() // ends reading; may be called twice

	// The fields below belong to the reading goroutine until it is stopped.
	bodies   map[string][]string // by catalog path: entity tags in order, each once in a row
	versions []int64             // that the edge said it serves, likewise
	read     int
}

// readTargets are the requested paths, by catalog path.
var readTargets = map[string]string{
	"standings/drivers/2024": "/standings?year=2024", "standings/constructors/2024": "/standings?year=2024&type=constructors",
	"calendar/2024": "/calendar?year=2024", "predictions/2024": "/predictions?year=2024", "accuracy/all": "/accuracy", "drivers": "/drivers",
}

// readFrom reads with the keys in turn until it is stopped, at the latest when the test ends.
func readFrom(t *testing.T, edge *process, keys []string) *reader {
	t.Helper()
	r := &reader{bodies: map[string][]string{}}
	c, paths := newClient(edge.url, ""), slices.Sorted(maps.Keys(readTargets))
	stopping := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(15 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
				r.look(t, c, keys[n%len(keys)], paths[n%len(paths)])
				r.versions = appendNew(r.versions, servedVersion(t, edge))
			case <-stopping:
				return
			}
		}
	})
	r.stop = sync.OnceFunc(func() { close(stopping); group.Wait() })
	t.Cleanup(r.stop)
	return r
}

// look reads one variant. Its body must match its tag.
func (r *reader) look(t *testing.T, c *client, key, path string) {
	a := c.do(t, http.MethodGet, "/api/v1"+readTargets[path], http.Header{"X-Api-Key": {key}})
	tag := tagOf(a.body)
	if a.status != http.StatusOK || a.header.Get("ETag") != tag {
		t.Errorf("GET %s: status %d, tag %s of a body whose tag is %s", readTargets[path], a.status, a.header.Get("ETag"), tag)
	}
	r.bodies[path] = appendNew(r.bodies[path], tag)
	r.read++
}

// appendNew appends an element that differs from the last one.
func appendNew[T comparable](row []T, next T) []T {
	if len(row) > 0 && row[len(row)-1] == next {
		return row
	}
	return append(row, next)
}

// check compares the read bodies with the published versions: those of each variant must appear in
// the published order.
func (r *reader) check(t *testing.T, s storage) {
	t.Helper()
	if !slices.IsSorted(r.versions) {
		t.Errorf("the edge served versions in the order %v", r.versions)
	}
	published := map[string][]string{} // entity tags by path, from the first version on
	versions := s.versions(t)
	for _, version := range slices.Backward(versions) {
		if version.Status == snapshots.Unpublished {
			continue
		}
		m := must.Get(snapshots.LoadManifest(t.Context(), s, version.Version))(t)
		for _, e := range m.Entries {
			published[e.Path] = appendNew(published[e.Path], `"`+snapshots.ETag(e.SHA256)+`"`)
		}
	}
	for path, seen := range r.bodies {
		rest := published[path]
		for _, tag := range seen {
			at := slices.Index(rest, tag)
			if at < 0 {
				t.Errorf("%s was served with the tags %v, published were %v", path, seen, published[path])
				break
			}
			rest = rest[at:]
		}
	}
	must.Hold(t, r.read > 0, "nothing was read")
	t.Logf("%d bodies read, of versions %v", r.read, r.versions)
}

// manyKeys creates keys in the store, so that no limit is met.
func manyKeys(t testing.TB, store blob.Store, n int) []string {
	t.Helper()
	created := make([]string, n)
	must.Do(t, keys.Update(t.Context(), store, func(doc *keys.List) error {
		for i := range created {
			var err error
			if _, created[i], err = doc.Create(keys.Request{Name: "load", Tier: "pro"}, time.Now()); err != nil {
				return err
			}
		}
		return nil
	}))
	return created
}

// tagOf is the entity tag that a body must have.
func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:])[:32] + `"`
}
