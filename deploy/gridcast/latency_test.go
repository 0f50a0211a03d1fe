package main

import (
	"flag"
	"slices"
	"sync"
	"testing"
	"time"

	"gridcast/builder/archive"
	"gridcast/deploy/clock"
	"gridcast/deploy/console"
	"gridcast/schemas/wire"
	"gridcast/snapshots/blob/s3test"
)

var verifyStore = flag.String("verify-store", "s3", "the store of that measurement: dir or s3")

var verifyRuns = flag.Int("verify-runs", 0, "measure so many times how long a verified result takes to be served")

// TestVerifyToServed measures the time from the request that verifies a result until the API
// of both edges answers with it. It looks at the API itself, not at what the edges say.
func TestVerifyToServed(t *testing.T) {
	if *verifyRuns == 0 {
		t.Skip("a measurement: give -verify-runs 50")
	}
	a, err := archive.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	// The service was down for the last seasons of the archive: their results all wait.
	seasons := a.Facts().Seasons
	opened := seasons[len(seasons)-3].Rounds[0].StartsAt().AddDate(0, 0, -1)
	last := seasons[len(seasons)-1].Rounds
	after := last[len(last)-1].ResultKnownAt().AddDate(0, 0, 1)
	race, err := clock.At(after, time.Now(), 1)
	if err != nil {
		t.Fatal(err)
	}
	store := "dir:store"
	if *verifyStore == "s3" {
		store = onServer(t, s3test.Versity(t)).name
	}
	h := startHouseIn(t, store, race, opened)

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

// timeVerify verifies a result and returns how long it took until both edges serve it.
func (h *house) timeVerify(t *testing.T, year int, session int64) time.Duration {
	t.Helper()
	form := h.form(t, session)
	before := make([]int64, len(h.edges))
	for i, c := range h.edges {
		before[i] = h.version(t, c)
	}
	began := time.Now()
	served := make([]time.Duration, len(h.edges))
	var wg sync.WaitGroup
	for i, c := range h.edges {
		wg.Go(func() {
			for h.version(t, c) == before[i] && time.Since(began) < time.Minute {
				time.Sleep(2 * time.Millisecond) // real processes: there is no clock to inject
			}
			served[i] = time.Since(began)
		})
	}
	run := h.post(t, session, form)
	wg.Wait()
	if run.Last.Phase != console.Done {
		t.Fatalf("verify %d: got %+v", session, run.Last)
	}
	for i, c := range h.edges {
		rows := data[[]wire.CalendarEntry](t, c.get(t, "/calendar?year="+sessionCell(int64(year))))
		if !slices.ContainsFunc(rows, func(e wire.CalendarEntry) bool { return e.SessionKey == session && e.Status == wire.Finished }) {
			t.Fatalf("edge %d does not serve the result of %d", i+1, session)
		}
	}
	return slices.Max(served)
}

// version is what an edge serves, by its public status.
func (h *house) version(t testing.TB, c *client) int64 {
	return data[struct {
		Version int64 `json:"version"`
	}](t, c.do(t, "GET", "/status", nil)).Version
}
