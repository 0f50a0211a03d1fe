package edge_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/schemas/wire"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/uptime"
)

// measuredDays is a store with measurements of 90 days: of most days all minutes, of some none, and outages.
func measuredDays(t testing.TB) *memblob.Store {
	t.Helper()
	var l uptime.Log
	end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for day := range 90 {
		midnight := end.Truncate(24*time.Hour).AddDate(0, 0, day-89)
		for m := range 1440 {
			at, minute := midnight.Add(time.Duration(m)*time.Minute), uptime.Answered(time.Duration(8+m%40)*time.Millisecond, false)
			if at.After(end) || day >= 20 && day < 24 || day == 50 && m > 700 {
				continue // nobody measured
			}
			if day == 70 && m < 30 || day == 71 && m == 9 {
				minute = uptime.Failed(uptime.Timeout)
			}
			l.Add(uptime.Public, at, minute, time.Hour)
			if day > 60 {
				l.Add("edge.internal:9100", at, minute, time.Hour)
			}
		}
		l.Merge(&uptime.Log{}, midnight.Add(12*time.Hour))
	}
	l.AddServed(uptime.Public, uptime.Served{Verified: end.Add(-time.Hour), Seconds: 1.75})
	store := memblob.New()
	must.Get(store.Create(t.Context(), uptime.Key, must.Get(json.Marshal(l))(t)))(t)
	return store
}

// from makes an edge read a store that has no version and no keys yet.
func from(store *memblob.Store) option {
	return func(_ *edge.Config, d *edge.Deps, s *setup) { d.Store, s.keys, s.version = store, false, false }
}

func TestMeasuredAvailability(t *testing.T) {
	w := newWorld(t, from(measuredDays(t)))
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
	must.Equal(t, "a day that nobody measured", uptime.Summary{Unknown: 1440}, public.Days[22].Summary)
	must.Equal(t, "the time to serve a result", 1.75, public.Days[89].Served)
	page := string(w.do("GET", "/status", "Accept: text/html").body)
	for want, count := range map[string]int{
		"<svg": 2, `class="unmeasured"`: 4 + 61, `class="down"`: 4, "not measured</title>": 4 + 61 + 1, "Public address: 99.974 %": 1,
		"<li>2026-11-01: 30 min down, the longest outage from 00:00 for 30 min (timeout)</li>": 2,
	} {
		if got := strings.Count(page, want); got != count {
			t.Errorf("the page has %q %d times, want %d", want, got, count)
		}
	}
	for _, body := range []string{page, string(r.body)} {
		must.Hold(t, !strings.Contains(body, "internal"), "a stranger reads the address of an edge")
	}
}

// TestMeasurementsOfStrangers: a document that no scheduler wrote neither stops an edge nor runs a script of its own.
func TestMeasurementsOfStrangers(t *testing.T) {
	for name, document := range map[string]string{
		"none":    "",
		"damaged": "{",
		"a script": `{"updated":"2026-11-20T12:00:00Z","targets":{"public":{"2026-11-18":{"closed":{"up":0,"down":9,"unknown":0,"slow":0,"late":0,
			"worst_outage":{"from":"<script>alert(1)</script>","minutes":9,"fault":"\"/><script>"}}}}}}`,
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
		if !strings.Contains(page, "</main>") || strings.Contains(page, "<script>alert") || strings.Contains(page, `"/><script>`) {
			t.Errorf("%s: the page is\n%s", name, page)
		}
	}
}
