package main

import (
	"net/http"
	"testing"
	"time"

	"gridcast/builder/source/codehosttest"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
)

// TestTimer fills a store with the two commands that a timer runs where no scheduler does, and reads every
// endpoint of the catalog.
func TestTimer(t *testing.T) {
	if testing.Short() {
		t.Skip("short: derives the track record")
	}
	t.Parallel() // most of it waits
	const now = "2026-03-09T20:00:00Z"
	instant := must.Get(time.Parse(time.RFC3339, now))(t)
	f1db := codehosttest.New(t, sourcetest.Path(t, sourcetest.F1DBHistory), func() time.Time { return instant })
	dir, store := t.TempDir(), []string{"--store", "dir:store", "--now", now}
	gridcast(t, dir, append([]string{"source", "pull", "--source", "f1db=" + f1db.URL, "--archive", seasons(t, 2024, 2024)}, store...)...)
	must.Show(t, "the output of a build, for title odds,", gridcast(t, dir, append([]string{"build"}, store...)...), "gridcast build --all")
	gridcast(t, dir, append([]string{"build", "--all"}, store...)...)
	must.Show(t, "a second run without new facts", gridcast(t, dir, append([]string{"build", "--all"}, store...)...), "up to date")
	key := newKey(t, dir, "dir:store", "pro")
	edge := startServer(t, dir, append([]string{"edge", "--cache-dir", "cache"}, store...)...)
	c := newClient(edge.url, key)
	edge.await(t, func() bool { return c.do(t, http.MethodGet, "/api/v1/bulk", nil).status == http.StatusOK }) // made beside other requests
	for _, e := range catalog.Endpoints {
		if a := c.do(t, http.MethodGet, catalog.BasePath+e.Path, nil); a.status != http.StatusOK {
			t.Errorf("%s: got status %d, want 200", e.Path, a.status)
		}
	}
}
