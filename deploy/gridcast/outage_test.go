package main

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob/s3test"
)

// outageLength makes the outage of TestOutageUnderLoad longer than it usually is.
const outageLength = "GRIDCAST_OUTAGE"

// TestOutageUnderLoad stops the storage under two edges while clients ask them. One edge
// crashes meanwhile and starts again from its own copy. No request fails, and when the storage
// is back both edges follow.
func TestOutageUnderLoad(t *testing.T) {
	t.Parallel() // most of it waits
	const perSecond, keyCount = 400, 100
	outage := 3 * time.Second
	if text := os.Getenv(outageLength); text != "" {
		var err error
		if outage, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", outageLength, err)
		}
	}
	server := s3test.Versity(t)
	s := onServer(t, server)
	s.build(t, "2024-11-24T05:00:00Z", "--archive", seasons(t, 2024, 2024))
	dir := t.TempDir()
	startEdge := func(cache string) *process {
		return startServer(t, dir, "edge", "--store", s.name, "--cache-dir", cache, "--now", "2024-11-24T05:00:00Z")
	}
	keys := manyKeys(t, s, keyCount)
	steady := startEdge("steady")
	began := time.Now()
	crashing := startEdge("crashing")
	usual := time.Since(began) // for an edge to be ready on this machine now
	for _, copied := range []string{"keys/keys.json", "version/current.json"} {
		must.Until(t, "the edge has its own copy", func() bool {
			_, err := os.Stat(filepath.Join(dir, "crashing", copied))
			return err == nil
		})
	}

	l := newLoad(keys, steady.url, crashing.url)
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { l.run(ctx, perSecond) })
	defer group.Wait()
	defer stop()

	server.Stop()
	began = time.Now()
	must.Until(t, "the edges notice the outage", func() bool { return storeProblem(t, steady) && storeProblem(t, crashing) })

	l.balance(steady.url)
	crashing.kill(t)
	died := time.Now()
	restarted := startEdge("crashing")
	ready := time.Since(died)
	if ready-usual > 15*time.Second { // to ask the storage in vain takes 20
		t.Errorf("the edge was ready %v after its crash, and %v after its first start: it has waited for the storage", ready, usual)
	}
	l.balance(steady.url, restarted.url)

	must.Until(t, "the restarted edge notices the outage", func() bool { return storeProblem(t, restarted) })
	<-time.After(time.Until(began.Add(outage)))
	must.Hold(t, storeProblem(t, steady) && storeProblem(t, restarted), "an edge does not say any more that the storage is down")
	server.Start(t)
	back := time.Now()
	if r := s.build(t, "2024-11-24T06:00:01Z"); r.Version != 2 {
		t.Errorf("published version %d after the outage, want 2", r.Version)
	}
	published := time.Now()
	late := newKey(t, dir, s.name, "pro")
	for _, edge := range []*process{steady, restarted} {
		must.Until(t, "the edge follows again", func() bool { return servedVersion(t, edge) == 2 && !storeProblem(t, edge) })
		must.Until(t, "the edge learns of a new key", func() bool {
			return newClient(edge.url, late).do(t, "GET", "/api/v1/drivers", nil).status == 200
		})
	}
	stop()
	group.Wait()
	l.report(t)
	t.Logf("storage down for %.1f s; the crashed edge was ready after %.2f s; published %.2f s after the storage was back, followed by both %.2f s later",
		back.Sub(began).Seconds(), ready.Seconds(), published.Sub(back).Seconds(), time.Since(published).Seconds())
}

// edgeStatus is the public answer of /status.
type edgeStatus struct {
	Version      int64  `json:"version"`
	StoreProblem string `json:"store_problem"`
	LimitsFault  string `json:"limits_fault"`
	RaceTime     string `json:"race_time"`
}

func statusOf(t testing.TB, edge *process) edgeStatus {
	t.Helper()
	return data[edgeStatus](t, newClient(edge.url, "").do(t, "GET", "/status", nil))
}

func servedVersion(t testing.TB, edge *process) int64 { return statusOf(t, edge).Version }

func storeProblem(t testing.TB, edge *process) bool {
	return statusOf(t, edge).StoreProblem != ""
}
