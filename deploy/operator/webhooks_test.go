package operator_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
	"gridcast/scheduler/webhook"
)

func newSender(t *testing.T, master string) *webhook.Sender {
	t.Helper()
	return must.Get(webhook.NewSender(webhook.SenderOptions{Master: []byte(master), InsecureLoopback: true}))(t)
}

func hooks(t *testing.T, o *operator.Operator) []operator.WebhookStatus {
	t.Helper()
	return must.Get(o.ListWebhooks(t.Context()))(t)
}

func TestActionsOfAWebhook(t *testing.T) {
	var status atomic.Int64
	status.Store(http.StatusNoContent)
	type message struct {
		header http.Header
		body   []byte
	}
	got := make(chan message, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- message{r.Header.Clone(), body}
		w.WriteHeader(int(status.Load()))
	}))
	defer receiver.Close()
	address := receiver.URL + "/hook/secret-path"
	host := strings.TrimPrefix(receiver.URL, "http://")

	o := desk(t)
	_, err := preview(t, o, operator.AddWebhook{URL: address})
	must.Fail(t, "without a master", err, webhook.ErrNoMaster)
	golden.Sentence(t, "webhook without a master", err)
	o.Webhooks = newSender(t, "correct horse battery staple, again and again")
	for _, wrong := range []operator.AddWebhook{{URL: "http://example.org"}, {URL: "https://10.0.0.1"}, {URL: address, Endpoints: []string{"everything"}}} {
		must.Fail(t, fmt.Sprintf("%+v can be added", wrong), must.Err(preview(t, o, wrong)))
	}
	if p, err := preview(t, o, operator.AddWebhook{URL: address}); err != nil || p.Question == "" || len(p.Warnings) != 0 {
		t.Errorf("preview %+v, %v", p, err)
	}
	added := done(t, o, operator.AddWebhook{URL: address, Endpoints: []string{"standings", "calendar.ics"}}, operator.Request{Reason: "contract 7"})
	id := added.Record.(webhook.Hook).ID
	if p, err := preview(t, o, operator.AddWebhook{URL: address}); err != nil || len(p.Warnings) != 1 {
		t.Errorf("add it again: preview %+v, %v; want a warning", p, err)
	}

	verify := func(secrets ...string) {
		t.Helper()
		m := <-got
		for _, secret := range secrets {
			wh, err := standardwebhooks.NewWebhook(secret)
			must.Hold(t, err == nil && wh.Verify(m.body, m.header) == nil, "the secret %s does not verify", secret)
		}
	}
	tested := done(t, o, operator.TestWebhook{ID: id}, operator.Request{})
	golden.Sentence(t, "test a webhook", tested.Text, host, "HOST", fmt.Sprintf(" %d ms", tested.Record.(webhook.Attempt).Millis), " N ms")
	verify(added.Secret)
	rotated := done(t, o, operator.RotateWebhook{ID: id, Grace: operator.Span(time.Hour)}, operator.Request{})
	done(t, o, operator.TestWebhook{ID: id}, operator.Request{})
	verify(added.Secret, rotated.Secret)
	status.Store(http.StatusTeapot)
	golden.Sentence(t, "test a failing webhook", must.Err(o.Do(t.Context(), operator.TestWebhook{ID: id}, operator.Request{Actor: "operator:anna"})), host, "HOST", id, "ID")
	if list := hooks(t, o); list[0].State != "active" || len(list[0].Log.Attempts) != 3 {
		t.Errorf("got %+v, want three tests in its log, and it active", list[0])
	}

	seen := must.Get(preview(t, o, operator.PauseWebhook{ID: id}))(t)
	done(t, o, operator.PauseWebhook{ID: id}, operator.Request{Reason: "their maintenance"})
	if list := hooks(t, o); list[0].State != "paused" || list[0].Why != "paused by operator:anna: their maintenance" {
		t.Errorf("got %+v", list[0])
	}
	if _, err := o.Do(t.Context(), operator.PauseWebhook{ID: id}, operator.Request{Actor: "operator:berta", Seen: seen.Seen}); !errors.Is(err, operator.ErrStale) {
		t.Errorf("pause what somebody else has paused: got %v", err)
	}
	done(t, o, operator.ResumeWebhook{ID: id}, operator.Request{})
	if list := hooks(t, o); list[0].State != "active" || list[0].Resumed != 1 {
		t.Errorf("got %+v", list[0])
	}

	o.Webhooks = newSender(t, "another master, of another installation")
	if list := hooks(t, o); list[0].State != "unsigned" {
		t.Errorf("with another master: %+v", list[0])
	} else {
		golden.Sentence(t, "webhook of another master", list[0].Trouble, id, "ID")
	}
	must.Fail(t, "it can be tested with another master", must.Err(preview(t, o, operator.TestWebhook{ID: id})))
	if p, err := preview(t, o, operator.RotateWebhook{ID: id}); err != nil || len(p.Warnings) != 1 {
		t.Errorf("rotate to another master: %+v, %v; want a warning", p, err)
	}
	status.Store(http.StatusNoContent)
	moved := done(t, o, operator.RotateWebhook{ID: id, Grace: operator.Span(time.Hour)}, operator.Request{})
	<-got // of the failed test
	done(t, o, operator.TestWebhook{ID: id}, operator.Request{})
	verify(moved.Secret)

	done(t, o, operator.RemoveWebhook{ID: id}, operator.Request{})
	list := hooks(t, o)
	must.Hold(t, len(list) == 0, "got %+v", list)
	must.Fail(t, "its log is still there", must.Err(o.Store.Get(t.Context(), webhook.DeliveryKey(id), 1<<20)))
	for _, d := range []operator.Action{operator.TestWebhook{ID: id}, operator.PauseWebhook{ID: id}, operator.RemoveWebhook{ID: id}} {
		_, err := preview(t, o, d)
		must.Hold(t, errors.Is(err, webhook.ErrNoHook), "%#v: got %v", d, err)
	}
	want := []string{
		"operator:anna|add_webhook|" + host + ", standings, calendar.ics|contract 7",
		"operator:anna|test_webhook|" + id + "|",
		"operator:anna|rotate_webhook|" + id + "|",
		"operator:anna|test_webhook|" + id + "|",
		"operator:anna|test_webhook|" + id + "|",
		"operator:anna|failed|" + id + "|test webhook " + id + ": " + host + " did not take it (refused): answered 418",
		"operator:anna|pause_webhook|" + id + "|their maintenance",
		"operator:anna|resume_webhook|" + id + "|",
		"operator:anna|rotate_webhook|" + id + "|",
		"operator:anna|test_webhook|" + id + "|",
		"operator:anna|remove_webhook|" + id + "|",
	}
	if got := logged(t, o); !slices.Equal(got, want) {
		t.Errorf("audit log\ngot  %q\nwant %q", got, want)
	}
	for _, object := range []string{webhook.Key} {
		stored, err := o.Store.Get(t.Context(), object, 1<<20)
		must.Hold(t, err == nil && strings.Count(string(stored.Data), "whsec_") <= 0, "%s: %s, %v", object, stored.Data, err)
	}
}
