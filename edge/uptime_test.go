package edge_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/schemas/wire"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/uptime"
)

// from makes an edge read a store that has no version and no keys yet.
func from(store *memblob.Store) option {
	return func(_ *edge.Config, d *edge.Deps, s *setup) { d.Store, s.keys, s.version = store, false, false }
}

func TestMeasuredAvailability(t *testing.T) {
	store := memblob.New()
	edgetest.Measure(t, store)
	w := newWorld(t, from(store))
	var report wire.Success[uptime.Report]
	w.await("the measurements", func() bool {
		report = wire.Success[uptime.Report]{}
		return json.Unmarshal(w.do("GET", "/uptime.json").body, &report) == nil && len(report.Data.Targets) == 2
	})
	r := w.do("GET", "/uptime.json")
	service(t, "/uptime.json", r)
	again := w.do("GET", "/uptime.json", "If-None-Match: "+r.Header.Get("ETag"))
	must.Equal(t, "the same again", 304, again.StatusCode)
	public := report.Data.Targets[0]
	must.Equal(t, "the longest outage", &uptime.Outage{From: "00:00", Minutes: 30, Fault: uptime.Timeout}, public.Days[70].Worst)
	must.Equal(t, "a day that nobody measured", uptime.Day{Date: "2026-09-14", Unknown: 1440}, public.Days[22])
	must.Equal(t, "the time to serve a result", 1.75, public.Days[89].Served)
	page := string(w.do("GET", "/status", "Accept: text/html").body)
	for want, count := range map[string]int{
		"<svg": 2, `class="unmeasured"`: 4 + 61, `class="down"`: 4, ": not measured</title>": 4 + 61, "Public address: 99.974 %": 1,
		`<p class="outage">2026-11-01: 30 min down, the longest outage from 00:00 for 30 min (timeout)</p>`: 2,
	} {
		got := strings.Count(page, want)
		must.Hold(t, got == count, "the page has %q %d times, want %d", want, got, count)
	}
	must.Hide(t, "a document for strangers", page+string(r.body), "internal")
}

// TestMeasurementsOutOfReach: an edge logs once that the store has stopped answering, and once more in the next outage.
func TestMeasurementsOutOfReach(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var log must.Buffer
		var down atomic.Bool
		newWorld(t, piped, func(_ *edge.Config, d *edge.Deps, _ *setup) {
			d.Store = faultblob.Wrap(d.Store, func(_ context.Context, call faultblob.Call) (f faultblob.Fate) {
				if call.Key == uptime.Key && down.Load() {
					f.Err = fs.ErrPermission
				}
				return f
			})
			d.Log = slog.New(slog.NewTextHandler(&log, nil))
		})
		for outage := range 2 {
			down.Store(true)
			must.Advance(5 * time.Minute)
			must.Equal(t, "warnings", outage+1, strings.Count(log.String(), "measurements of availability"))
			down.Store(false)
			must.Advance(5 * time.Minute)
		}
	})
}

// TestMeasurementsOfStrangers: a document that no scheduler wrote neither stops an edge nor runs a script of its own.
func TestMeasurementsOfStrangers(t *testing.T) {
	for name, document := range map[string]string{
		"none":    "",
		"damaged": "{",
		"a script": `{"updated":"2026-11-20T12:00:00Z","targets":{"public":{"2026-11-18":{"date":"2026-11-18","up":0,"down":9,"unknown":0,"slow":0,"late":0,
			"worst_outage":{"from":"<script>alert(1)</script>","minutes":9,"fault":"\"/><script>"}}}}}`,
	} {
		store := memblob.New()
		if document != "" {
			must.Get(store.Create(t.Context(), uptime.Key, []byte(document)))(t)
		}
		w := newWorld(t, from(store))
		if name == "a script" {
			w.await("the measurements", func() bool { return strings.Contains(string(w.do("GET", "/uptime.json").body), "2026-11-18") })
		}
		r := w.do("GET", "/uptime.json")
		service(t, "/uptime.json", r)
		must.Equal(t, name, 200, r.StatusCode)
		page := string(w.do("GET", "/status", "Accept: text/html").body)
		must.Show(t, name, page, "</main>")
		must.Hide(t, name, page, "<script>alert", `"/><script>`)
	}
}
