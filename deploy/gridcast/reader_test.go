package main

import (
	"flag"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/s3test"
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
	t.Logf("%d bodies read, of versions %v", r.read, r.versions)
}

var publishRuns = flag.Int("publish-runs", 0, "measure so many times how long a published version takes to be served")

// TestPublishToServed measures the time from a publish until an edge answers with the new bytes
// over HTTP. It asks the API, and does not rely on the status of the edge.
func TestPublishToServed(t *testing.T) {
	if *publishRuns == 0 {
		t.Skip("a measurement: give -publish-runs 100")
	}
	t.Run("directory", func(t *testing.T) { publishToServed(t, inDirectory(t)) })
	t.Run("versitygw", func(t *testing.T) { publishToServed(t, onServer(t, s3test.Versity(t))) })
}

func publishToServed(t *testing.T, s storage) {
	s.build(t, "2024-11-24T05:00:00Z", "--archive", seasons(t, 2023, 2024))
	keys, asked := manyKeys(t, s, 200), 0
	c := newClient(startServer(t, t.TempDir(), "edge", "--store", s.name).url, "")
	ask := func() string { // the keys in turn, so that looking often meets no limit
		asked++
		a := c.do(t, http.MethodGet, "/api/v1/standings?year=2024", http.Header{"X-Api-Key": {keys[asked%len(keys)]}})
		return a.header.Get("ETag")
	}
	var fromStart, fromSwap []time.Duration
	publisher := snapshots.Publisher{Store: s}
	random := rand.New(rand.NewPCG(1, 1))
	for range *publishRuns {
		// A publish comes at any moment between two looks of the edge, not right after one.
		<-time.After(within(random, time.Second))
		draft, body := nextStandings(t, s)
		began := time.Now()
		must.Get(publisher.Publish(t.Context(), draft))(t)
		swapped := time.Now()
		for want := tagOf(body); ask() != want; {
			must.Require(t, time.Since(swapped) <= time.Minute, "the edge does not follow")
			<-time.After(time.Millisecond) // a real edge: there is no clock to inject
		}
		fromStart, fromSwap = append(fromStart, time.Since(began)), append(fromSwap, time.Since(swapped))
	}
	t.Logf("from the start of a publish to new bytes over HTTP: %s", quantiles(fromStart))
	t.Logf("from the end of it: %s", quantiles(fromSwap))
}
