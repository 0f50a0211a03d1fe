package main

import (
	"flag"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/s3test"
)

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
			if time.Since(swapped) > time.Minute {
				t.Fatal("the edge does not follow")
			}
			<-time.After(time.Millisecond) // a real edge: there is no clock to inject
		}
		fromStart, fromSwap = append(fromStart, time.Since(began)), append(fromSwap, time.Since(swapped))
	}
	t.Logf("from the start of a publish to new bytes over HTTP: %s", quantiles(fromStart))
	t.Logf("from the end of it: %s", quantiles(fromSwap))
}
