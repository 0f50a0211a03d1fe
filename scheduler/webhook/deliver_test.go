package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/deploy/must"
	"gridcast/scheduler/webhook"
	"gridcast/schemas"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
)

// bodies holds the identity bytes of a version by path.
type bodies map[string]string

// publish publishes a version with these bodies.
func publish(t testing.TB, s blob.Store, content bodies) int64 {
	t.Helper()
	return publishBy(t, snapshots.Publisher{Store: s}, content)
}

func publishBy(t testing.TB, p snapshots.Publisher, content bodies) int64 {
	t.Helper()
	s := p.Store
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

	refused bool // the receiver did not accept it
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
	n, answer := len(l.got), l.answer
	l.got = append(l.got, sent{time.Now(), q.Header.Get("Webhook-Id"), m.Type, m.Data, q.Header.Clone(), true})
	l.mu.Unlock()
	status := http.StatusNoContent
	if answer != nil {
		if status, err = answer(n+1, q); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	l.got[n].refused = status > 299
	l.mu.Unlock()
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
	t       *testing.T
	store   blob.Store
	sender  *webhook.Sender
	line    *line
	hook    webhook.Hook
	reg     *prometheus.Registry
	signers *notes.Signers // of the deliverer; nil: none
	log     bytes.Buffer
}

func newDesk(t *testing.T, store blob.Store, endpoints ...string) *desk {
	t.Helper()
	d := &desk{t: t, store: store, line: &line{t: t}, reg: prometheus.NewRegistry()}
	d.sender = newSender(t, webhook.SenderOptions{Transport: d.line})
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
	deliverer := webhook.NewDeliverer(d.store, d.signers, d.sender, pause, slog.New(slog.NewTextHandler(&d.log, nil)), d.reg)
	ended := make(chan struct{})
	go func() { defer close(ended); deliverer.Run(ctx) }()
	return func() { cancel(); <-ended; d.reg = prometheus.NewRegistry() }
}

// pause pauses a hook without a record.
func pause(_ context.Context, _ webhook.Hook, _ string, pause func() error) error { return pause() }

func (d *desk) state() webhook.Delivery {
	d.t.Helper()
	return must.Get(webhook.LoadDelivery(d.t.Context(), d.store, d.hook))(d.t)
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
		s := d.state()
		must.Hold(t, s.Told == 11, "told %d, want 11", s.Told)
	})
}

// A scheduler that signs versions tells receivers of none with the signature of another key, such as one of a thief of the
// storage's credentials. The next version of its own is told.
func TestForgedVersionIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, memblob.New())
		sign := func() *notes.Signers {
			file := filepath.Join(t.TempDir(), "key")
			must.Do(t, notes.MakeKey(file, "example.com/versions"))
			return must.Get(notes.ReadSigners(file))(t)
		}
		d.signers = sign()
		stop := d.run()
		defer func() { stop() }()
		for i, test := range []struct {
			by   *notes.Signers
			told int64
		}{{d.signers, 2}, {sign(), 2}, {d.signers, 4}} {
			publishBy(t, snapshots.Publisher{Store: d.store, Signers: test.by}, season.with("drivers", strconv.Itoa(i)))
			must.Advance(time.Minute)
			told := d.state().Told
			must.Hold(t, told == test.told, "after version %d: told %d, want %d; the log: %s", i+2, told, test.told, d.log.String())
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
		took := time.Since(began)
		must.Hold(t, took == 0, "publishing took %s beside receivers that hang", took)
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
