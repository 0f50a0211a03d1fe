package simulate_test

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
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"gridcast/deploy/must"
	"gridcast/scheduler/webhook"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/retry"
)

// subscribers are the receivers of webhooks, by host. They answer in place of the network.
type subscribers map[string]*subscriber

// subscriber asks for each document that a message names, in the version of the message.
type subscriber struct {
	w      *world
	hook   webhook.Hook
	secret *standardwebhooks.Webhook

	mu       sync.Mutex // guards the following
	requests uint64
	failures int              // in a row
	last     time.Time        // the end of the last request
	asked    map[string]int64 // the version of each document that a message named, by request
	others   int64            // the version of every other document; 0: none
}

// subscribe adds two webhooks: one for everything, and one for some endpoints and every lap.
func (w *world) subscribe() {
	w.subscribers = subscribers{}
	w.sender = must.Get(webhook.NewSender(webhook.SenderOptions{Master: bytes.Repeat([]byte("master"), 6), Transport: w.subscribers}))(w.t)
	var hooks []webhook.Hook
	for _, endpoints := range [][]string{nil, {"standings", "calendar", "live", "results", "calendar.ics"}} {
		host := fmt.Sprintf("receiver%d.example", len(hooks))
		h := must.Get(webhook.New(w.sender, "https://"+host, endpoints, 0))(w.t)
		secret := must.Get(standardwebhooks.NewWebhook(must.Get(w.sender.Secret(h))(w.t)))(w.t)
		w.subscribers[host] = &subscriber{w: w, hook: h, secret: secret, asked: map[string]int64{}}
		hooks = append(hooks, h)
	}
	must.Do(w.t, webhook.Update(w.t.Context(), w.disk, func(all *[]webhook.Hook) error { *all = hooks; return nil }))
}

// RoundTrip implements [http.RoundTripper]. The seed, the subscriber and the number of its requests decide about an answer.
// A third of the spells of eight requests are bad.
func (all subscribers) RoundTrip(q *http.Request) (*http.Response, error) {
	s := all[q.URL.Host]
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.requests++
	n := s.requests
	s.mu.Unlock()
	random, fault := s.w.chance("answer of "+q.URL.Host, n), uint64(0)
	if s.w.chance("spell of "+q.URL.Host, n/8)%3 == 0 && !s.w.calm.Load() {
		fault = random >> 24 % 9
	}
	wait := 20*time.Millisecond + time.Duration(random%400_000_000)
	answer := &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody, Request: q}
	switch fault {
	case 1:
		answer.StatusCode = http.StatusInternalServerError
	case 2, 3:
		err = errors.New("no answer")
	case 4:
		wait += time.Duration(random >> 32 % 30_000_000_000) // the sender waits for 15 seconds
	}
	if fault != 1 && fault != 2 { // the message has arrived, although the answer may be lost
		s.receive(q.Header, body)
	}
	if !retry.Sleep(q.Context(), wait) {
		err = q.Context().Err()
	}
	s.w.note("%s answers request %d: %d, %v", q.URL.Host, n, answer.StatusCode, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.failures = time.Now(), s.failures+1
	if err != nil {
		return nil, err
	}
	if fault != 1 {
		s.failures = 0
	}
	return answer, nil
}

// receive verifies a message, and asks for the documents that it names.
func (s *subscriber) receive(header http.Header, body []byte) {
	var m wire.Webhook[wire.PublishedData]
	err := errors.Join(s.secret.Verify(body, header), json.Unmarshal(body, &m))
	x := &s.w.witness
	x.mu.Lock()
	defer x.mu.Unlock()
	ours := func(version int64) bool { return x.versions[version] && !x.forged[version] }
	if known := ours(m.Data.Version) && (m.Data.Previous == 0 || ours(m.Data.Previous)); err != nil || !known {
		x.faults = append(x.faults, fmt.Sprintf("a webhook got %s: %v, of versions that a scheduler published: %t", body, err, known))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !m.Data.Complete {
		clear(s.asked)
		s.others = m.Data.Version
	}
	for _, c := range m.Data.Changes {
		s.asked[strings.TrimSuffix(c.Path+"?"+c.Query, "?")] = m.Data.Version
	}
}

// restored takes the subscribers back to the version that they know by the restored store. It lacks the events after the
// backup, and so does the final ledger: no later message can name a document that only a lost version had changed. The wait
// for the next attempt goes on by the restored store too.
func (all subscribers) restored() {
	for _, s := range all {
		state := must.Get(webhook.LoadDelivery(s.w.t.Context(), s.w.disk, s.hook))(s.w.t)
		s.others, s.failures = state.Told, state.Failures
		clear(s.asked)
	}
}

// check demands that each document that the subscriber wants is the same in the version that it has asked for and in the
// published one. Laps are only for a subscriber that names their endpoint.
func (s *subscriber) check(published int64) {
	for path, bodies := range s.w.witness.bodies {
		v, err := catalog.ParsePath(path)
		endpoint, request := string(v.Endpoint), v.Target()
		if i := slices.IndexFunc(catalog.Feeds, func(f catalog.Feed) bool { return f.Stored == path }); i >= 0 {
			endpoint, request = strings.TrimPrefix(catalog.Feeds[i].Path, "/"), catalog.Feeds[i].Path
		} else if err != nil || v.SessionKey == catalog.NoSession {
			continue // no request has this answer
		}
		if wanted := s.hook.Endpoints; len(wanted) > 0 && !slices.Contains(wanted, endpoint) || len(wanted) == 0 && endpoint == string(catalog.Live) {
			continue
		}
		has, ok := s.asked[request]
		if !ok {
			has = s.others
		}
		for _, versions := range bodies {
			if slices.Contains(versions, has) != slices.Contains(versions, published) {
				s.w.fail("after %d failures a subscriber has %s of version %d, which differs in version %d", s.failures, request, has, published)
			}
		}
	}
}

// checkWebhooks demands that the subscribers have been told of the published version. By the page webhooks.md the wait for
// the next attempt grows. If it is not over, a last scheduler sends the message, without the rest of the world.
func (w *world) checkWebhooks() {
	for _, g := range w.edges {
		g.stop()
	}
	waits := []time.Duration{0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour}
	pointer, _, err := snapshots.LoadPointer(w.t.Context(), w.disk)
	must.Do(w.t, err)
	until := w.witness.latest
	for _, s := range w.subscribers {
		state := must.Get(webhook.LoadDelivery(w.t.Context(), w.disk, s.hook))(w.t)
		s.failures = max(s.failures, state.Failures) // a sender that was killed did not record an accepted message
		if due := s.last.Add(waits[s.failures] * 11 / 10); due.After(until) {
			until = due
		}
	}
	ctx, cancel := context.WithDeadline(w.t.Context(), until.Add(time.Minute))
	defer cancel()
	pausing := func(_ context.Context, _ webhook.Hook, _ string, pause func() error) error { return pause() }
	webhook.NewDeliverer(w.disk, nil, w.sender, pausing, slog.New(points.handler(w)), prometheus.NewRegistry()).Run(ctx)
	for _, s := range w.subscribers {
		s.check(pointer.Version)
	}
}
