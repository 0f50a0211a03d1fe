package openf1

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/live"
	"gridcast/snapshots/blob/memblob"
)

// feed is a server that answers as OpenF1 did at an instant of the race, and the watcher of it.
type feed struct {
	t     *testing.T
	rows  map[string][]row
	now   time.Time
	shift time.Duration // of the whole race

	from, until time.Duration             // after the start: the part that is watched
	late        func(r row) time.Duration // by which a row arrives late
	lost        func(r row) bool          // the row is not there
	fault       func(r *http.Request) int // the status of an answer; 0: none

	tokens, requests int
	sent             []time.Time
	log              *live.Log
	watcher          *Watcher
}

type row struct {
	endpoint    string
	at          time.Time       // from which it is served
	fields      map[string]any  // for the disturbances
	text, begun json.RawMessage // begun: a lap before its end, without its duration
	took        time.Duration   // of a lap
}

func newRow(endpoint string, fields map[string]any) row {
	r := row{endpoint: endpoint, at: instantOf(fields), fields: fields}
	r.text, _ = json.Marshal(fields)
	r.begun = r.text
	if took, ok := fields["lap_duration"].(float64); ok {
		r.took = seconds(took)
		begun := maps.Clone(fields)
		begun["lap_duration"] = nil
		r.begun, _ = json.Marshal(begun)
	}
	return r
}

func newFeed(t *testing.T) *feed {
	t.Helper()
	f := &feed{t: t, rows: map[string][]row{}, from: -5 * time.Minute, until: 2 * time.Hour, log: &live.Log{Store: memblob.New()}}
	if recordedRows == nil {
		recordedRows = rowsOf(t)
	}
	for endpoint, rows := range recordedRows {
		f.rows[endpoint] = slices.Clone(rows) // the fields of a row never change
	}
	return f
}

// recordedRows are the rows of the recorded race by endpoint, read once.
var recordedRows map[string][]row

func rowsOf(t *testing.T) map[string][]row {
	t.Helper()
	all := map[string][]row{}
	for endpoint, text := range recorded(t) {
		var list []map[string]any
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		for i, r := range list {
			if endpoint == "intervals" && i%3 > 0 {
				continue // they come every four seconds, and a test reads them hundreds of times
			}
			for _, unread := range []string{"meeting_key", "session_key", "segments_sector_1", "segments_sector_2", "segments_sector_3", "duration_sector_1", "duration_sector_2", "duration_sector_3", "i1_speed", "i2_speed", "st_speed", "is_pit_out_lap", "interval"} {
				delete(r, unread)
			}
			all[endpoint] = append(all[endpoint], newRow(endpoint, r))
		}
	}
	return all
}

// instantOf is the instant from which a row is served: that of the row, and the end of the lap for its duration.
func instantOf(r map[string]any) time.Time {
	for _, field := range []string{"date", "date_start"} {
		if text, ok := r[field].(string); ok {
			at, _ := time.Parse(time.RFC3339, text)
			return at
		}
	}
	return abuDhabi.Start
}

func (f *feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.requests++
	f.sent = append(f.sent, f.now)
	if f.fault != nil {
		if status := f.fault(r); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	endpoint := strings.TrimPrefix(r.URL.Path, "/v1/")
	if r.URL.Path == "/token" {
		f.tokens++
		_, _ = fmt.Fprintf(w, `{"expires_in":"3600","access_token":"token-%d","token_type":"bearer"}`, f.tokens)
		return
	}
	if r.Header.Get("Authorization") != fmt.Sprintf("Bearer token-%d", f.tokens) || f.tokens == 0 {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if endpoint == "sessions" {
		_, _ = fmt.Fprintf(w, `[{"session_key":9000,"date_start":"2025-11-30T16:00:00+00:00"},{"session_key":9839,"date_start":%q}]`, abuDhabi.Start.Add(f.shift).Format(time.RFC3339))
		return
	}
	since, _ := time.Parse("2006-01-02T15:04:05.000", r.URL.Query().Get("date>")+r.URL.Query().Get("date_start>"))
	list := []byte("[")
	for _, r := range f.rows[endpoint] {
		if r.at.Before(since) || r.at.After(f.now) || endpoint == "laps" && !since.IsZero() && r.fields["date_start"] == nil || f.lost != nil && f.lost(r) {
			continue
		}
		late := time.Duration(0)
		if f.late != nil {
			late = f.late(r)
		}
		switch arrives := r.at.Add(late); {
		case arrives.After(f.now):
		case arrives.Add(r.took).After(f.now):
			list = append(append(list, r.begun...), ',')
		default:
			list = append(append(list, r.text...), ',')
		}
	}
	_, _ = w.Write(append(bytes.TrimSuffix(list, []byte(",")), "]\n"...))
}

// watch runs the watcher over the whole race, in its own time.
func (f *feed) watch(ctx context.Context) live.Race {
	f.t.Helper()
	server := httptest.NewServer(f)
	defer server.Close()
	race := abuDhabi
	race.Start = race.Start.Add(f.shift)
	f.watcher = &Watcher{
		Base: server.URL + "/v1", User: "anna@example.org", Password: "secret", Client: server.Client(), Log: slog.New(slog.DiscardHandler),
	}
	host := live.Host{
		Now:  func() time.Time { return f.now },
		Wait: func(ctx context.Context, d time.Duration) error { f.now = f.now.Add(d); return ctx.Err() },
		Observe: func(ctx context.Context, o live.Observation) (bool, error) {
			o.Received = f.now
			_, news, err := f.log.Append(ctx, live.Fixture{}, o)
			return news, err
		},
	}
	if f.now.IsZero() {
		f.now = race.Start.Add(f.from)
	}
	err := f.watcher.Watch(ctx, host, race, race.Start.Add(f.until))
	if err != nil && ctx.Err() == nil {
		f.t.Fatal(err)
	}
	tape, err := f.log.Refresh(f.t.Context(), race.Session)
	if err != nil {
		f.t.Fatal(err)
	}
	return live.Reduce(tape.Observations, live.Fixture{})
}

// TestWatch reads a whole race in time: every lap within a cycle, no more requests than allowed.
func TestWatch(t *testing.T) {
	f := newFeed(t)
	race := f.watch(t.Context())
	if race.Lap != 58 || len(race.Moments) != 58 || race.State != live.Ended {
		t.Errorf("got %d moments up to lap %d, %s", len(race.Moments), race.Lap, race.State)
	}
	for _, m := range race.Moments {
		if late := m.Received.Sub(m.At); late > 30*time.Second {
			t.Errorf("lap %d was received after %s", m.Lap, late)
		}
	}
	for i := range f.sent {
		if i >= maxPerMinute && f.sent[i].Sub(f.sent[i-maxPerMinute]) < time.Minute {
			t.Fatalf("%d requests in less than a minute at %s", maxPerMinute+1, f.sent[i])
		}
	}
	if f.tokens < 2 {
		t.Errorf("%d tokens in a race of %s, want it renewed", f.tokens, f.now.Sub(abuDhabi.Start))
	}
	t.Logf("%d requests, %d tokens", f.requests, f.tokens)
}

// TestWatchFaults disturbs a part of the race, its laps 1 to 26. A lap is missing or has another order only where its
// rows did not come.
func TestWatchFaults(t *testing.T) {
	part := func() *feed {
		f := newFeed(t)
		f.from, f.until = 12*time.Minute, 44*time.Minute
		return f
	}
	between := func(f *feed, from, to time.Duration) bool {
		return f.now.After(abuDhabi.Start.Add(from)) && f.now.Before(abuDhabi.Start.Add(to))
	}
	whole := part().watch(t.Context())
	if whole.Lap != 26 || len(whole.Moments) != 26 {
		t.Fatalf("the undisturbed part has %d laps up to lap %d, want 26", len(whole.Moments), whole.Lap)
	}
	for _, tc := range []struct {
		name            string
		disturb         func(f *feed)
		missing, differ int // laps, at most
		stale           bool
	}{
		{name: "each row twice", disturb: func(f *feed) {
			for endpoint, rows := range f.rows {
				f.rows[endpoint] = append(rows, rows...)
			}
		}},
		{name: "5 % of the rows are lost", differ: 10, disturb: func(f *feed) {
			random := rand.New(rand.NewPCG(1, 1))
			for endpoint, rows := range f.rows {
				f.rows[endpoint] = slices.DeleteFunc(rows, func(row) bool { return random.IntN(20) == 0 })
			}
		}},
		{name: "rows arrive in another order within 30 s", differ: 2, disturb: func(f *feed) {
			f.late = func(r row) time.Duration { return time.Duration(r.at.UnixNano() % int64(30*time.Second)) }
		}},
		{name: "eight minutes of silence", disturb: func(f *feed) {
			f.fault = func(*http.Request) int {
				if between(f, 20*time.Minute, 28*time.Minute) {
					return http.StatusServiceUnavailable
				}
				return 0
			}
		}},
		{name: "a lap is missing for all", missing: 1, disturb: func(f *feed) {
			f.lost = func(r row) bool { return r.endpoint == "laps" && r.fields["lap_number"] == 20.0 }
		}},
		{name: "a driver without positions", differ: 26, disturb: func(f *feed) {
			f.lost = func(r row) bool { return r.endpoint == "position" && r.fields["driver_number"] == 43.0 }
		}},
		{name: "positions freeze after 20 minutes", missing: 20, differ: 5, stale: true, disturb: func(f *feed) {
			f.lost = func(r row) bool { return r.endpoint == "position" && r.at.After(abuDhabi.Start.Add(20*time.Minute)) }
		}},
		{name: "a token expires in mid race", disturb: func(f *feed) {
			f.fault = func(*http.Request) int {
				if f.requests == 60 {
					f.tokens++ // the one in use is not valid any more
				}
				return 0
			}
		}},
		{name: "the token expires and /token answers 502 for two minutes", disturb: func(f *feed) {
			f.fault = func(r *http.Request) int {
				if f.requests == 60 {
					f.tokens++
				}
				if f.requests >= 60 && between(f, 0, 22*time.Minute) && r.URL.Path == "/token" {
					return http.StatusBadGateway
				}
				return 0
			}
		}},
		{name: "401 for good", missing: 15, stale: true, disturb: func(f *feed) {
			f.fault = func(*http.Request) int {
				if between(f, 25*time.Minute, time.Hour) {
					return http.StatusUnauthorized
				}
				return 0
			}
		}},
		{name: "429 for a minute", disturb: func(f *feed) {
			f.fault = func(*http.Request) int {
				if between(f, 20*time.Minute, 21*time.Minute) {
					return http.StatusTooManyRequests
				}
				return 0
			}
		}},
		{name: "the race is moved by three hours", disturb: func(f *feed) {
			f.shift = 3 * time.Hour
			for endpoint, rows := range f.rows {
				for i, r := range rows {
					fields := maps.Clone(r.fields)
					for _, field := range []string{"date", "date_start"} {
						if s, ok := fields[field].(string); ok {
							at, _ := time.Parse(time.RFC3339, s)
							fields[field] = at.Add(f.shift).Format(time.RFC3339Nano)
						}
					}
					f.rows[endpoint][i] = newRow(endpoint, fields)
				}
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := part()
			tc.disturb(f)
			race := f.watch(t.Context())
			missing, differ := 26, 0
			for _, m := range race.Moments {
				if m.Lap > 26 {
					continue // the end of the part is some seconds later after a pause
				}
				missing--
				same := func(a, b live.Car) bool { return a.Driver == b.Driver && a.Out == b.Out }
				if !slices.EqualFunc(m.Cars, whole.Moments[m.Lap-1].Cars, same) {
					differ++
				}
			}
			if missing > tc.missing || differ > tc.differ {
				t.Errorf("%d laps are missing and %d differ, want at most %d and %d", missing, differ, tc.missing, tc.differ)
			} else {
				t.Logf("%d laps are missing, %d differ", missing, differ)
			}
			if stale := !race.ValidUntil().After(f.now); stale != tc.stale {
				t.Errorf("valid until %s, read until %s; want stale %t", race.ValidUntil(), f.now, tc.stale)
			}
		})
	}
}

// TestWatchKilled ends the process at ten instants. The next process goes on with its log, and the race is the whole one.
func TestWatchKilled(t *testing.T) {
	part := func() *feed {
		f := newFeed(t)
		f.from, f.until = 12*time.Minute, 44*time.Minute
		return f
	}
	whole := part().watch(t.Context())
	f := part()
	random := rand.New(rand.NewPCG(7, 7))
	for range 10 {
		ctx, kill := context.WithCancel(t.Context())
		left := 5 + random.IntN(40)
		f.fault = func(*http.Request) int {
			if left--; left == 0 {
				kill()
			}
			return 0
		}
		f.watch(ctx)
		kill()
		f.now = f.now.Add(5 * time.Second)
		f.log = &live.Log{Store: f.log.Store}
	}
	f.fault = nil
	race := f.watch(t.Context())
	cars := func(r live.Race) (all [][]live.Car) {
		for _, m := range r.Moments {
			all = append(all, m.Cars)
		}
		return all
	}
	if diff := cmp.Diff(cars(whole), cars(race)[:min(26, len(race.Moments))]); diff != "" {
		t.Errorf("-undisturbed +killed:\n%s", diff)
	}
}

// TestBackOff: a pause is between two seconds and a minute, and follows Retry-After.
func TestBackOff(t *testing.T) {
	for failures := 1; failures < 20; failures++ {
		for range 100 {
			if pause := backOff(failures, errors.New("a time-out")); pause < shortestPause || pause > longestPause {
				t.Fatalf("after %d failures: %s", failures, pause)
			}
		}
	}
	if pause := backOff(1, &statusError{status: 429, after: 40 * time.Second}); pause != 40*time.Second {
		t.Errorf("Retry-After 40: got %s", pause)
	}
}
