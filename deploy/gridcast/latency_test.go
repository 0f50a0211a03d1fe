package main

import (
	"flag"
	"slices"
	"sync"
	"testing"
	"time"

	"gridcast/builder/archive/archivetest"
	"gridcast/deploy/clock"
	"gridcast/deploy/console"
	"gridcast/deploy/must"
	"gridcast/deploy/terminal"
	"gridcast/schemas/wire"
	"gridcast/snapshots/blob/s3test"
)

var verifyStore = flag.String("verify-store", "s3", "the store of that measurement: dir or s3")

var verifyRuns = flag.Int("verify-runs", 0, "measure so many times how long a verified result takes to be served")

// TestVerifyToServed measures the time from the request that verifies a result until the API
// of both edges answers with it. It asks the API, and does not rely on the status of an edge.
func TestVerifyToServed(t *testing.T) {
	if *verifyRuns == 0 {
		t.Skip("a measurement: give -verify-runs 50")
	}
	a := archivetest.Embedded(t)
	// The service was down for the last seasons of the archive: their results all wait.
	seasons := a.Facts().Seasons
	opened := seasons[len(seasons)-3].Rounds[0].StartsAt().AddDate(0, 0, -1)
	last := seasons[len(seasons)-1].Rounds
	after := last[len(last)-1].ResultKnownAt().AddDate(0, 0, 1)
	race := must.Get(clock.At(after, time.Now(), 1))(t)
	store := "dir:store"
	if *verifyStore == "s3" {
		store = onServer(t, s3test.Versity(t)).name
	}
	h := startHouseIn(t, store, archiveFile(t, archivetest.Seasons(t, 2023, 2024)), race, opened)

	var took []time.Duration
	for _, year := range seasons[len(seasons)-3:] {
		for _, r := range year.Rounds {
			if len(took) == *verifyRuns {
				break
			}
			took = append(took, h.timeVerify(t, year.Year, int64(year.Year)*1000+int64(r.Number)))
		}
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[min(len(took)-1, int(share*float64(len(took))))].Round(time.Millisecond)
	}
	t.Logf("verify pressed to served by both edges, %d runs: median %s, p99 %s, fastest %s, slowest %s", len(took), at(0.5), at(0.99), at(0), at(1))
}

// timeVerify verifies a result and returns the time until both edges serve it. It waits until everything
// after the earlier result is published, because no operator verifies two results within a second.
func (h *house) timeVerify(t *testing.T, year int, session int64) time.Duration {
	t.Helper()
	for before := int64(0); before != h.version(t, h.edges[0]); {
		before = h.version(t, h.edges[0])
		time.Sleep(2 * time.Second) // real processes: there is no clock to inject
	}
	form := h.form(t, session)
	began := time.Now()
	type version struct {
		number int64
		after  time.Duration
	}
	versions := make([][]version, len(h.edges)) // that an edge served, in order
	pressed := make(chan struct{})
	var wg sync.WaitGroup
	for i, c := range h.edges {
		wg.Go(func() {
			for over := false; !over; {
				select {
				case <-pressed:
					over = true // after one more look
				case <-time.After(2 * time.Millisecond):
				}
				versions[i] = append(versions[i], version{h.version(t, c), time.Since(began)})
			}
		})
	}
	run := h.post(t, session, form) // until both edges say that they serve it
	close(pressed)
	wg.Wait()
	if run.Last.Phase != console.Done {
		t.Fatalf("verify %d: got %+v", session, run.Last)
	}
	last := time.Duration(0)
	for i, c := range h.edges {
		served := slices.IndexFunc(versions[i], func(v version) bool { return v.number >= run.Last.Result.Version })
		if served < 0 {
			t.Fatalf("edge %d serves version %d, the result of %d is in %d", i+1, versions[i][len(versions[i])-1].number, session, run.Last.Result.Version)
		}
		last = max(last, versions[i][served].after)
		rows := data[[]wire.CalendarEntry](t, c.get(t, "/calendar?year="+terminal.Number(int64(year))))
		if !slices.ContainsFunc(rows, func(e wire.CalendarEntry) bool { return e.SessionKey == session && e.Status == wire.Finished }) {
			t.Fatalf("edge %d does not serve the result of %d", i+1, session)
		}
	}
	return last
}

// version is the served version, by the public status of an edge.
func (h *house) version(t testing.TB, c *client) int64 {
	return data[struct {
		Version int64 `json:"version"`
	}](t, c.do(t, "GET", "/status", nil)).Version
}
