package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gridcast/deploy/must"
	"gridcast/scheduler/webhook"
	"gridcast/schemas"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// bodies holds the identity bytes of a version by path.
type bodies map[string]string

// publish publishes a version with these bodies.
func publish(t testing.TB, s blob.Store, content bodies) int64 {
	t.Helper()
	base := must.Get(snapshots.LoadBase(t.Context(), s, nil))(t)
	at := time.Date(2024, 11, 24, 6, 0, 0, 0, time.UTC)
	d := snapshots.Draft{Base: base, About: snapshots.About{
		Builder: "test", BuiltAt: at, CurrentSeason: 2024, Seasons: []int{2023, 2024},
		Archive: snapshots.Digest([]byte("archive")), Ledger: snapshots.Ledger{Kind: "simulated", Seq: 3, Hash: snapshots.Digest([]byte("ledger"))},
	}}
	for path, body := range content {
		if path == "next-race" {
			d.Variants = append(d.Variants, snapshots.Unfinished(path, []byte(body)))
			continue
		}
		d.Variants = append(d.Variants, snapshots.New(path, []byte(body), nil, at))
	}
	p := snapshots.Publisher{Store: s}
	r := must.Get(p.Publish(t.Context(), d))(t)
	return r.Version
}

var season = bodies{
	"standings/drivers/2024": "VER", "standings/drivers/2023": "VER", "calendar/2024": "24 rounds", "next-race": "Qatar",
	"feeds/calendar.ics": "BEGIN", "predictions/session/2024022": "RUS", "predictions/none": "[]", "drivers": "20",
}

// with returns a copy of the bodies with others in their place; an empty one is removed.
func (b bodies) with(pairs ...string) bodies {
	c := bodies{}
	for path, body := range b {
		c[path] = body
	}
	for i := 0; i < len(pairs); i += 2 {
		if c[pairs[i]] = pairs[i+1]; pairs[i+1] == "" {
			delete(c, pairs[i])
		}
	}
	return c
}

// line answers in place of a network, and records each message with its time.
type line struct {
	t      testing.TB
	secret string // verifies every request; empty: no verification

	mu     sync.Mutex
	got    []sent
	answer func(attempt int, q *http.Request) (status int, err error) // nil: 204
}

type sent struct {
	At     time.Time
	ID     string
	Type   string
	Data   wire.PublishedData
	Header http.Header
}

func (l *line) RoundTrip(q *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	var m wire.Webhook[wire.PublishedData]
	must.Succeed(l.t, fmt.Sprintf("it was sent %s", body), json.Unmarshal(body, &m))
	must.Succeed(l.t, fmt.Sprintf("it was sent %s", body), schemas.ValidateBody(m.Type, body))
	if l.secret != "" {
		must.Succeed(l.t, fmt.Sprintf("it was sent %s, which does not verify", body), (delivery{q.Header, body}).verify(l.secret))
	}
	l.mu.Lock()
	l.got = append(l.got, sent{time.Now(), q.Header.Get("Webhook-Id"), m.Type, m.Data, q.Header.Clone()})
	n, answer := len(l.got), l.answer
	l.mu.Unlock()
	status := http.StatusNoContent
	if answer != nil {
		if status, err = answer(n, q); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: q}, nil
}

// sent returns the messages so far.
func (l *line) sent() []sent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.got)
}

func (l *line) answers(f func(attempt int, q *http.Request) (int, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer = f
}

func status(code int) func(int, *http.Request) (int, error) {
	return func(int, *http.Request) (int, error) { return code, nil }
}

// hang is a receiver that never answers.
func hang(_ int, q *http.Request) (int, error) {
	<-q.Context().Done()
	return 0, q.Context().Err()
}

// desk is a store with a published version and a hook for every endpoint, in a bubble of synctest.
type desk struct {
	t      *testing.T
	store  blob.Store
	sender *webhook.Sender
	line   *line
	hook   webhook.Hook
	reg    *prometheus.Registry
	log    bytes.Buffer
}

func newDesk(t *testing.T, store blob.Store, endpoints ...string) *desk {
	t.Helper()
	d := &desk{t: t, store: store, sender: newSender(t, webhook.SenderOptions{}), line: &line{t: t}, reg: prometheus.NewRegistry()}
	d.sender.UseTransport(d.line)
	d.hook = d.add(publish(t, store, season), endpoints...)
	d.line.secret = secret(t, d.sender, d.hook)
	return d
}

// add puts another hook into the store.
func (d *desk) add(since int64, endpoints ...string) webhook.Hook {
	d.t.Helper()
	h := must.Get(webhook.New(d.sender, "https://receiver.example/hook/token-in-the-path", endpoints, since))(d.t)
	d.edit(func(hooks *[]webhook.Hook) { *hooks = append(*hooks, h) })
	return h
}

func (d *desk) edit(f func(hooks *[]webhook.Hook)) {
	d.t.Helper()
	must.Do(d.t, webhook.Update(d.t.Context(), d.store, func(hooks *[]webhook.Hook) error { f(hooks); return nil }))
}

// run runs a deliverer until stop is called.
func (d *desk) run() (stop func()) {
	ctx, cancel := context.WithCancel(d.t.Context())
	deliverer := webhook.NewDeliverer(d.store, d.sender, slog.New(slog.NewTextHandler(&d.log, nil)), d.reg)
	ended := make(chan struct{})
	go func() { defer close(ended); deliverer.Run(ctx) }()
	return func() { cancel(); <-ended; d.reg = prometheus.NewRegistry() }
}

func (d *desk) state() webhook.Delivery {
	d.t.Helper()
	return must.Get(webhook.LoadDelivery(d.t.Context(), d.store, d.hook))(d.t)
}

func (d *desk) now() webhook.Hook {
	d.t.Helper()
	hooks := must.Get(webhook.Load(d.t.Context(), d.store))(d.t)
	h := must.Get(webhook.Find(hooks, d.hook.ID))(d.t)
	return *h
}

func bubble(t *testing.T, f func(t *testing.T, d *desk), endpoints ...string) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, memblob.New(memblob.Strict(t, snapshots.Immutable)), endpoints...)
		stop := d.run()
		f(t, d)
		stop()
		if text := d.log.String(); strings.Contains(text, "token-in-the-path") || strings.Contains(text, strings.TrimPrefix(d.line.secret, "whsec_")) || strings.Contains(text, string(master)) {
			t.Errorf("the log tells a secret:\n%s", text)
		}
	})
}

func TestReceiversAreToldWhatChanged(t *testing.T) {
	bubble(t, func(t *testing.T, d *desk) {
		must.Advance(time.Minute)
		if got := d.line.sent(); len(got) != 0 {
			t.Fatalf("told of what was published before it was added: %+v", got)
		}
		published := time.Now()
		version := publish(t, d.store, season.with("standings/drivers/2024", "NOR", "next-race", "Abu Dhabi", "feeds/calendar.ics", "END",
			"predictions/session/2024022", "", "predictions/session/2024023", "VER", "predictions/none", "[ ]"))
		must.Advance(10 * time.Second)
		got := d.line.sent()
		if len(got) != 1 {
			t.Fatalf("got %d messages, want 1", len(got))
		}
		if late := got[0].At.Sub(published); late > 8*time.Second {
			t.Errorf("told after %s", late)
		}
		want := wire.PublishedData{
			Version: version, Previous: 1, PublishedAt: wire.Instant(published), Complete: true, Changes: []wire.WebhookVariant{
				{Endpoint: "calendar.ics", Path: "/calendar.ics", Change: "changed", ETag: `"` + snapshots.ETag(snapshots.Digest([]byte("END"))) + `"`},
				{Endpoint: "next-race", Path: "/api/v1/next-race", Change: "changed"},
				{Endpoint: "predictions", Path: "/api/v1/predictions", Query: "session_key=2024022", Change: "removed"},
				{Endpoint: "predictions", Path: "/api/v1/predictions", Query: "session_key=2024023", Change: "added", ETag: `"` + snapshots.ETag(snapshots.Digest([]byte("VER"))) + `"`},
				{Endpoint: "standings", Path: "/api/v1/standings", Query: "type=drivers&year=2024", Change: "changed", ETag: `"` + snapshots.ETag(snapshots.Digest([]byte("NOR"))) + `"`},
			},
		}
		must.Equal(t, "message", want, got[0].Data, cmp.Transformer("instant", wire.Instant.String))
		if got[0].Type != wire.WebhookPublished || !strings.HasPrefix(got[0].ID, "msg_") || got[0].Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %+v", got[0])
		}
		if s := d.state(); s.Told != version || s.Pending != nil || len(s.Attempts) != 1 || s.Owner != "" {
			t.Errorf("state %+v", s)
		}
		if n := testutil.CollectAndCount(d.reg, "gridcast_webhook_deliveries_total"); n != 6 {
			t.Errorf("%d outcomes are counted", n)
		}
	})
}

// A receiver gets only the endpoints that it asked for, and no message when they stay the same.
func TestFilter(t *testing.T) {
	bubble(t, func(t *testing.T, d *desk) {
		publish(t, d.store, season.with("drivers", "21"))
		must.Advance(time.Minute)
		if got := d.line.sent(); len(got) != 0 {
			t.Errorf("told of drivers: %+v", got)
		}
		if s := d.state(); s.Told != 2 {
			t.Errorf("told %d, want 2: there is nothing to catch up on", s.Told)
		}
		publish(t, d.store, season.with("drivers", "22", "calendar/2024", "23 rounds"))
		must.Advance(time.Minute)
		if got := d.line.sent(); len(got) != 1 || len(got[0].Data.Changes) != 1 || got[0].Data.Changes[0].Endpoint != "calendar" || got[0].Data.Previous != 2 {
			t.Errorf("got %+v", got)
		}
	}, "calendar", "standings")
}

// TestTurnsOfARace: a receiver without a list of endpoints gets /live when something but a lap happens. One that asks for
// live gets every lap.
func TestTurnsOfARace(t *testing.T) {
	steps := []struct {
		what, live string
		turn       bool
	}{
		{"the pick is frozen", `"state":"waiting"`, true},
		{"the start", `"state":"running","checkpoints":[{"status":"pending"},{"status":"pending"}]`, true},
		{"lap 1, a live pick", `"state":"running","lap":1,"checkpoints":[{"status":"frozen"},{"status":"pending"}]`, true},
		{"lap 2", `"state":"running","lap":2,"checkpoints":[{"status":"frozen"},{"status":"pending"}]`, false},
		{"lap 3", `"state":"running","lap":3,"checkpoints":[{"status":"frozen"},{"status":"pending"}]`, false},
		{"a red flag", `"state":"suspended","lap":3,"checkpoints":[{"status":"frozen"},{"status":"pending"}]`, true},
		{"the restart", `"state":"running","lap":3,"checkpoints":[{"status":"frozen"},{"status":"pending"}]`, true},
		{"a live pick is missed", `"state":"running","lap":5,"checkpoints":[{"status":"frozen"},{"status":"missed"}]`, true},
		{"the flag", `"state":"over","lap":5,"checkpoints":[{"status":"frozen"},{"status":"missed"}]`, true},
	}
	for _, endpoints := range [][]string{nil, {"live"}} {
		bubble(t, func(t *testing.T, d *desk) {
			for _, step := range steps {
				before := len(d.line.sent())
				publish(t, d.store, season.with("live", `{"data":{"session_key":2024022,`+step.live+`}}`))
				must.Advance(time.Minute)
				want := 0
				if step.turn || endpoints != nil {
					want = 1
				}
				if got := d.line.sent()[before:]; len(got) != want || want == 1 && got[0].Data.Changes[0].Path != "/api/v1/live" {
					t.Errorf("%v: %s: got %+v, want %d messages about /live", endpoints, step.what, got, want)
				}
			}
		}, endpoints...)
	}
}

// The waits between attempts are the ones that Standard Webhooks recommends. After the last attempt the Deliverer pauses
// the hook; after a resumption it sends everything missed at once.
func TestRetrySchedule(t *testing.T) {
	if testing.Short() {
		t.Skip("short: four days of looks at the store")
	}
	bubble(t, func(t *testing.T, d *desk) {
		d.line.answers(status(http.StatusServiceUnavailable))
		publish(t, d.store, season.with("drivers", "21"))
		must.Advance(100 * time.Hour)
		got := d.line.sent()
		if len(got) != len(webhook.Schedule)+1 {
			t.Fatalf("%d attempts, want %d", len(got), len(webhook.Schedule)+1)
		}
		for i, wait := range webhook.Schedule {
			if took := got[i+1].At.Sub(got[i].At); took < wait || took > wait+wait/10+5*time.Second {
				t.Errorf("attempt %d came after %s, want %s and a tenth at most", i+2, took, wait)
			}
			must.Hold(t, got[i+1].ID == got[0].ID, "attempt %d has the id %s, want %s", i+2, got[i+1].ID, got[0].ID)
			if got[i+1].Header.Get("Webhook-Timestamp") == got[i].Header.Get("Webhook-Timestamp") {
				t.Errorf("attempt %d has the timestamp of the one before", i+2)
			}
		}
		if h := d.now(); !h.GivenUp || h.Paused.IsZero() || !strings.Contains(h.Why, "10 attempts") {
			t.Errorf("after the last attempt the hook is %+v, want it paused", h)
		}
		var total time.Duration
		for _, wait := range webhook.Schedule {
			total += wait
		}
		must.Hold(t, total == 75*time.Hour+35*time.Minute+5*time.Second, "the schedule lasts %s, want 75h35m5s", total)
		if got := gauge(t, d.reg, "gridcast_webhooks", "given_up"); got != 1 {
			t.Errorf("%v are given up in the metrics, want 1", got)
		}

		d.line.answers(nil)
		version := publish(t, d.store, season.with("drivers", "22", "calendar/2024", "23 rounds"))
		must.Advance(time.Hour)
		if n := len(d.line.sent()); n != len(got) {
			t.Errorf("a paused hook was sent %d messages", n-len(got))
		}
		d.edit(func(hooks *[]webhook.Hook) { (*hooks)[0].Resume() })
		must.Advance(10 * time.Second)
		after := d.line.sent()[len(got):]
		if len(after) != 1 || after[0].Data.Version != version || after[0].Data.Previous != 1 || len(after[0].Data.Changes) != 2 || after[0].ID == got[0].ID {
			t.Errorf("resumed it was sent %+v, want one new message about all since version 1", after)
		}
		if s := d.state(); s.Failures != 0 || s.Told != version {
			t.Errorf("state %+v", s)
		}
	})
}

func gauge(t *testing.T, reg *prometheus.Registry, name, label string) float64 {
	t.Helper()
	families := must.Get(reg.Gather())(t)
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == name && (label == "" || m.Label[0].GetValue() == label) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("there is no %s %s", name, label)
	return 0
}

// A receiver that was away for hours gets one message about the newest state, and new versions do not
// cause more attempts.
func TestNewestStateWins(t *testing.T) {
	bubble(t, func(t *testing.T, d *desk) {
		d.line.answers(hang)
		for i := range 100 {
			publish(t, d.store, season.with("drivers", strconv.Itoa(i)))
			must.Advance(3 * time.Minute) // 5 hours in all
		}
		during := d.line.sent()
		must.Hold(t, len(during) >= 4 && len(during) <= 6, "%d attempts in 5 hours, want those of the schedule", len(during))
		if s := d.state(); s.Attempts[0].Outcome != webhook.TimedOut || s.Attempts[0].Millis != 15_000 {
			t.Errorf("the first attempt: %+v, want that it timed out after 15 s", s.Attempts[0])
		}
		d.line.answers(nil)
		must.Advance(6 * time.Hour)
		after := d.line.sent()[len(during):]
		if len(after) != 1 || after[0].Data.Version != 101 || after[0].Data.Previous != 1 || len(after[0].Data.Changes) != 1 {
			t.Errorf("afterwards it got %+v, want one message from version 1 to 101", after)
		}
		if s := d.state(); s.Told != 101 || s.Failures != 0 || s.Pending != nil {
			t.Errorf("state %+v", s)
		}
	})
}

func TestGonePausesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, d *desk) {
		d.line.answers(status(http.StatusGone))
		publish(t, d.store, season.with("drivers", "21"))
		must.Advance(time.Minute)
		if h := d.now(); !h.GivenUp || !strings.Contains(h.Why, "410") || len(d.line.sent()) != 1 {
			t.Errorf("after %d attempts the hook is %+v", len(d.line.sent()), h)
		}
	})
}

// The Deliverer waits as long as Retry-After asks, in seconds or as a date, up to a day.
func TestRetryAfter(t *testing.T) {
	bubble(t, func(t *testing.T, d *desk) {
		d.sender.UseTransport(roundTripper(func(q *http.Request) (*http.Response, error) {
			r, err := d.line.RoundTrip(q)
			if err == nil {
				wish := "99999999999"
				switch len(d.line.sent()) {
				case 1:
					wish = "600"
				case 2:
					wish = time.Now().Add(7 * time.Hour).UTC().Format(http.TimeFormat)
				}
				r.StatusCode, r.Header = http.StatusTooManyRequests, http.Header{"Retry-After": {wish}}
			}
			return r, err
		}))
		publish(t, d.store, season.with("drivers", "21"))
		must.Advance(40 * time.Hour)
		var waits []time.Duration
		for i, sent := range d.line.sent()[1:] {
			waits = append(waits, sent.At.Sub(d.line.sent()[i].At).Round(time.Minute))
		}
		must.Equal(t, "waits", []time.Duration{10 * time.Minute, 7 * time.Hour, 24 * time.Hour}, waits)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// When a process ends, well or not, the next one retries under the same id.
func TestRestartResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, memblob.New())
		stop := d.run()
		d.line.answers(status(http.StatusInternalServerError))
		publish(t, d.store, season.with("drivers", "21"))
		must.Advance(time.Minute) // two attempts, the third is due in five minutes
		stop()
		before := d.line.sent()
		stop = d.run()
		must.Advance(time.Minute)
		if n := len(d.line.sent()); n != len(before) || n != 2 {
			t.Errorf("%d attempts after the restart, %d before it: want that it keeps to the schedule", n, len(before))
		}
		d.line.answers(hang)
		for range 600 {
			if len(d.line.sent()) < 3 { // the third hangs, and the test stops the process
				must.Advance(time.Second)
			}
		}
		stop()
		if s := d.state(); s.Owner != "" || s.Failures != 2 || s.Pending == nil {
			t.Errorf("an attempt that was broken off: %+v, want its claim given back and nothing counted", s)
		}
		d.line.answers(nil)
		stop = d.run()
		must.Advance(time.Minute)
		stop()
		got := d.line.sent()
		if last := got[len(got)-1]; len(got) != 4 || last.ID != got[0].ID || d.state().Told != 2 {
			t.Errorf("got %d attempts, the last of %s, want 4 of %s", len(got), last.ID, got[0].ID)
		}
	})
}

// Only a process that dies between the receiver's answer and its record makes a message come
// twice: under the same id, when its claim has run out.
func TestDeathBetweenAnswerAndRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead bool
		var mu sync.Mutex
		kill := func(yes bool) { mu.Lock(); defer mu.Unlock(); dead = yes }
		store := faultblob.Wrap(memblob.New(), func(_ context.Context, c faultblob.Call) faultblob.Fate {
			mu.Lock()
			defer mu.Unlock()
			if dead && c.Op.Writes() && strings.HasPrefix(c.Key, "webhooks/") {
				return faultblob.Fate{Err: errors.New("the machine is gone")}
			}
			return faultblob.Fate{}
		})
		d := newDesk(t, store)
		stop := d.run()
		d.line.answers(func(attempt int, _ *http.Request) (int, error) { kill(attempt == 1); return http.StatusNoContent, nil })
		publish(t, d.store, season.with("drivers", "21"))
		must.Advance(20 * time.Second)
		stop()
		kill(false)
		stop = d.run()
		must.Advance(20 * time.Second)
		if n := len(d.line.sent()); n != 1 {
			t.Errorf("%d attempts while the claim holds, want 1", n)
		}
		must.Advance(time.Minute)
		stop()
		if got := d.line.sent(); len(got) != 2 || got[1].ID != got[0].ID || d.state().Told != 2 {
			t.Errorf("got %+v, want the same message again", got)
		}
	})
}

// Several schedulers on one store deliver a message once.
func TestSeveralDeliverersDeliverOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, memblob.New())
		var stops []func()
		for range 4 {
			d.reg = prometheus.NewRegistry()
			stops = append(stops, d.run())
		}
		d.line.answers(func(attempt int, _ *http.Request) (int, error) {
			time.Sleep(2 * time.Second) // time for the others to see it undelivered
			return map[bool]int{true: http.StatusNoContent, false: http.StatusBadGateway}[attempt%3 == 0], nil
		})
		for i := range 10 {
			publish(t, d.store, season.with("drivers", strconv.Itoa(i)))
			must.Advance(20 * time.Minute)
		}
		for _, stop := range stops {
			stop()
		}
		perMessage := map[string]int{}
		for _, m := range d.line.sent() {
			perMessage[m.ID]++
		}
		if len(perMessage) != 10 || len(d.line.sent()) != 30 {
			t.Errorf("%d attempts of %d messages, want three of each of 10: %v", len(d.line.sent()), len(perMessage), perMessage)
		}
		if s := d.state(); s.Told != 11 {
			t.Errorf("told %d, want 11", s.Told)
		}
	})
}

// Hanging receivers delay the others only briefly, and no more attempts run than are allowed.
func TestReceiversThatHangHoldUpNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, memblob.New())
		for range 3 * webhook.ConcurrentAttempts {
			d.add(1)
		}
		d.line.secret = "" // each has its own
		under, most := 0, 0
		var mu sync.Mutex
		count := func(by int) { mu.Lock(); defer mu.Unlock(); under += by; most = max(most, under) }
		d.line.answers(func(_ int, q *http.Request) (int, error) {
			count(1)
			defer count(-1)
			return hang(0, q)
		})
		stop := d.run()
		began := time.Now()
		publish(t, d.store, season.with("drivers", "21"))
		if took := time.Since(began); took != 0 {
			t.Errorf("publishing took %s beside receivers that hang", took)
		}
		must.Advance(70 * time.Second)
		stop()
		hooks := map[string]bool{}
		for _, m := range d.line.sent() {
			hooks[m.ID] = true
		}
		if most != webhook.ConcurrentAttempts || len(hooks) != 3*webhook.ConcurrentAttempts+1 {
			t.Errorf("%d attempts at once, %d receivers were tried within a minute", most, len(hooks))
		}
		must.Hold(t, under == 0, "%d attempts are still under way", under)
	})
}

// If the changes are unknown or too many, the message reports everything.
func TestWhatCannotBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, memblob.New())
		publish(t, d.store, season.with("drivers", "21"))
		must.Do(t, d.store.Delete(t.Context(), snapshots.ManifestKey(1)))
		defer d.run()()
		must.Advance(time.Minute)
		got := d.line.sent()
		if last := got[len(got)-1].Data; last.Complete || len(last.Changes) != 0 || last.Version != 2 {
			t.Errorf("without the version of before: %+v", last)
		}
		many := season.with()
		for i := range 501 {
			many[fmt.Sprintf("results/session/20240%02d", i+10)] = "x"
		}
		publish(t, d.store, many)
		must.Advance(time.Minute)
		got = d.line.sent()
		if last := got[len(got)-1].Data; last.Complete || len(last.Changes) != 0 || last.Version != 3 || last.Previous != 2 {
			t.Errorf("with more than 500 changes: complete %v, %d changes", last.Complete, len(last.Changes))
		}
	})
}

// A scheduler without the master sends nothing and reports it; a removed hook gets nothing;
// the store may fail for hours.
func TestTroubleOfOurOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := false
		var mu sync.Mutex
		fail := func(yes bool) { mu.Lock(); defer mu.Unlock(); failing = yes }
		store := faultblob.Wrap(memblob.New(), func(context.Context, faultblob.Call) faultblob.Fate {
			mu.Lock()
			defer mu.Unlock()
			if failing {
				return faultblob.Fate{Err: errors.New("no answer")}
			}
			return faultblob.Fate{}
		})
		d := newDesk(t, store)
		with := d.sender
		d.sender = mustSender(t)
		stop := d.run()
		publish(t, d.store, season.with("drivers", "21"))
		must.Advance(time.Hour)
		if got := gauge(t, d.reg, "gridcast_webhooks", "unsigned"); got != 1 || len(d.line.sent()) != 0 {
			t.Errorf("without a master %v are unsigned, %d sent", got, len(d.line.sent()))
		}
		stop()

		d.sender = with
		fail(true)
		stop = d.run()
		must.Advance(5 * time.Hour)
		fail(false)
		must.Advance(30 * time.Second)
		if n := len(d.line.sent()); n != 1 {
			t.Errorf("%d attempts once the store answers again, want 1", n)
		}
		d.edit(func(hooks *[]webhook.Hook) { *hooks = nil })
		publish(t, d.store, season.with("drivers", "22"))
		must.Advance(time.Hour)
		stop()
		if n := len(d.line.sent()); n != 1 {
			t.Errorf("a hook that is removed was sent %d messages", n-1)
		}
		if n := strings.Count(d.log.String(), "the store cannot be read"); n != 1 {
			t.Errorf("it was logged %d times that the store does not answer", n)
		}
	})
}

// An older store has no webhooks; a damaged document does not silence the others.
func TestDocuments(t *testing.T) {
	store := memblob.New()
	if hooks, err := webhook.Load(t.Context(), store); err != nil || hooks != nil {
		t.Errorf("got %v, %v", hooks, err)
	}
	s := newSender(t, webhook.SenderOptions{})
	for _, endpoints := range [][]string{{"standing"}, {"drivers", "drivers"}, {"bulk"}, {""}} {
		must.Fail(t, fmt.Sprintf("%q is taken for a list of endpoints", endpoints), must.Err(webhook.New(s, "https://example.org", endpoints, 0)))
	}
	h := newHook(t, s, "https://example.org", webhook.Topics()...)
	must.Get(store.Create(t.Context(), webhook.DeliveryKey(h.ID), []byte("{")))(t)
	if state, err := webhook.LoadDelivery(t.Context(), store, h); err != nil || state.Told != 0 {
		t.Errorf("a damaged state: got %+v, %v; want one that was told nothing", state, err)
	}
	err := webhook.Update(t.Context(), store, func(hooks *[]webhook.Hook) error {
		for range webhook.MaxHooks + 1 {
			*hooks = append(*hooks, h)
		}
		return nil
	})
	must.Hold(t, err != nil, "there is no end to the number of hooks")
	for _, damaged := range []string{"{", `{"format":2,"hooks":[]}`, `{"format":1,"hooks":[{"id":"a","restriction":true}]}`} {
		store := memblob.New()
		must.Get(store.Create(t.Context(), webhook.Key, []byte(damaged)))(t)
		must.Fail(t, fmt.Sprintf("%s is read", damaged), must.Err(webhook.Load(t.Context(), store)))
	}
}
