package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/console"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
	"gridcast/edge"
	"gridcast/edge/keys"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// run is the JSON of a run.
type run struct {
	ID    string        `json:"id"`
	Ended bool          `json:"ended"`
	Last  console.Event `json:"last"`
}

// wait starts something and waits for its end.
func (w *world) wait(path string, form url.Values) run {
	w.t.Helper()
	a := w.asOperator("POST", path, form)
	if a.StatusCode != http.StatusAccepted {
		w.t.Fatalf("POST %s: got %s: %s", path, a.Status, a.body)
	}
	var r run
	must.Do(w.t, json.Unmarshal([]byte(a.body), &r))
	events := w.events(r.ID)
	r.Ended, r.Last = true, events[len(events)-1]
	return r
}

// events follows a run to its end, event by event.
func (w *world) events(id string) (events []console.Event) {
	w.t.Helper()
	for seq := 0; ; {
		var r run
		must.Do(w.t, json.Unmarshal([]byte(w.asOperator("GET", fmt.Sprintf("/runs/%s?after=%d", id, seq), nil).body), &r))
		must.Hold(w.t, r.Last.Seq > seq, "the answer waited for event %d, got %+v", seq+1, r.Last)
		seq = r.Last.Seq
		if events = append(events, r.Last); r.Ended {
			return events
		}
	}
}

func (w *world) auditLog() *auditlog.Log {
	w.t.Helper()
	return must.Get(auditlog.Load(w.t.Context(), w.store))(w.t)
}

// audit lists the entries of the audit log as "actor action subject reason".
func (w *world) audit() []string {
	w.t.Helper()
	lines := []string{}
	for _, e := range w.auditLog().Entries() {
		lines = append(lines, strings.Join([]string{e.Actor, string(e.Action), e.Subject, e.Reason}, "|"))
	}
	return lines
}

func TestSignIn(t *testing.T) {
	w := newWorld(t)
	form := func(name, token string) url.Values { return url.Values{"name": {name}, "token": {token}} }

	answers(t, "sign-in: a browser without a cookie", w.do("GET", "/", nil, "Accept: text/html"))
	answers(t, "sign-in: a program without a token", w.do("GET", "/", nil))
	wrong := w.do("POST", "/sign-in", form("anna", token+"x"))
	answers(t, "sign-in: a wrong token", wrong)
	must.Equal(t, "the cookie of a wrong token", "", wrong.Header.Get("Set-Cookie"))
	answers(t, "sign-in: an impossible name", w.do("POST", "/sign-in", form("<b>", token)))
	a := w.do("POST", "/sign-in", form("anna", token))
	if a.StatusCode != http.StatusSeeOther || len(a.Cookies()) != 1 {
		t.Fatalf("right token: got %s, cookies %v", a.Status, a.Cookies())
	}
	cookie := a.Cookies()[0]
	must.Hold(t, cookie.HttpOnly && cookie.SameSite == http.SameSiteStrictMode, "got cookie %v, want it http-only and same-site strict", cookie)
	must.Hide(t, "the cookie", cookie.Value, token)
	says(t, "sign-in: the bar of the page", bar(w.do("GET", "/", nil, "Cookie: "+cookie.Name+"="+cookie.Value).body))
	w.mu.Lock()
	w.token = "another horse, another staple"
	w.mu.Unlock()
	if a := w.do("GET", "/", nil, "Cookie: "+cookie.Name+"="+cookie.Value); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("with the cookie of a token that was replaced: got %s", a.Status)
	}
	if a := w.do("POST", "/sign-in", form("anna", w.token)); a.StatusCode != http.StatusSeeOther {
		t.Errorf("with the new token: got %s", a.Status)
	}
	w.mu.Lock()
	w.token = ""
	w.mu.Unlock()
	for i := range cookie.Value {
		forged := []byte(cookie.Value)
		if forged[i]++; i == len(forged)-1 {
			forged[i] = 'A' // of the last character only some bits count
			if cookie.Value[i] < 'E' {
				forged[i] = 'z'
			}
		}
		if a := w.do("GET", "/", nil, "Cookie: "+cookie.Name+"="+string(forged)); a.StatusCode != http.StatusUnauthorized {
			t.Fatalf("cookie changed at %d: got %s, want 401", i, a.Status)
		}
	}
}

// After ten wrong tokens the console looks at no token from that address for the rest of the minute. Signed-in
// operators and other addresses notice nothing.
func TestGuessingIsSlow(t *testing.T) {
	w := newWorld(t)
	cookies := w.do("POST", "/sign-in", url.Values{"name": {"anna"}, "token": {token}}).Cookies()
	must.Require(t, len(cookies) == 1, "got cookies %v", cookies)
	for i := range 10 {
		if a := w.do("POST", "/rebuild", url.Values{"reason": {"x"}}, "Authorization: Bearer guess"); a.StatusCode != http.StatusUnauthorized {
			t.Fatalf("guess %d: got %s", i, a.Status)
		}
	}
	for _, guess := range []string{"guess", token} {
		if a := w.do("POST", "/rebuild", url.Values{"reason": {"x"}}, "Authorization: Bearer "+guess); a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
			t.Errorf("after ten guesses: got %s, want 429 with Retry-After", a.Status)
		}
		if a := w.do("POST", "/sign-in", url.Values{"name": {"anna"}, "token": {guess}}); a.StatusCode != http.StatusTooManyRequests {
			t.Errorf("by the form: got %s, want 429", a.Status)
		}
	}
	if got := w.audit(); len(got) != 0 {
		t.Errorf("got %v in the audit log, want nothing", got)
	}
	if a := w.do("GET", "/", nil, "Cookie: "+cookies[0].Name+"="+cookies[0].Value); a.StatusCode != http.StatusOK {
		t.Errorf("with a cookie: got %s, want it let in", a.Status)
	}
	elsewhere := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext}
	defer elsewhere.CloseIdleConnections()
	request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, w.console.URL, nil))(t)
	request.Header.Set("Authorization", "Bearer "+token)
	a := must.Get(elsewhere.RoundTrip(request))(t)
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		t.Errorf("from another address: got %s, want it let in", a.Status)
	}
}

// A token of an operator proves their name, whichever name they give, until it is revoked.
func TestPeople(t *testing.T) {
	w := newWorld(t)
	o := &operator.Operator{Store: w.store, Audit: w.auditLog()}
	admin := operator.Request{Actor: "claimed:root"}
	add := func(name string, role operator.Role) string {
		done := must.Get(o.Do(t.Context(), operator.AddOperator{Name: name, Role: role}, admin))(t)
		return done.Secret
	}
	berta, carl := add("berta", operator.Operate), add("carl", operator.Read)
	must.Fail(t, "two people of one name", must.Err(o.Do(t.Context(), operator.AddOperator{Name: "carl", Role: operator.Operate}, admin)))
	must.Hide(t, "the store", string(must.Get(w.store.Get(t.Context(), operator.PeopleKey, 1<<20))(t).Data), berta)

	by := func(token string) string { return "Authorization: Bearer " + token }
	if a := w.do("POST", "/rebuild", url.Values{"reason": {"x"}}, by(berta), "X-Operator: anna"); a.StatusCode != http.StatusAccepted {
		t.Errorf("berta: got %s, %s", a.Status, a.body)
	} else {
		var r run
		must.Do(t, json.Unmarshal([]byte(a.body), &r))
		w.events(r.ID)
	}
	const disabled = `<fieldset class="reader" disabled>`
	for token, name := range map[string]string{carl: "carl", berta: "berta"} {
		page := w.do("GET", "/", nil, by(token)).body
		says(t, "people: the bar of "+name, bar(page))
		must.Equal(t, "the buttons of "+name+" are disabled", name == "carl", strings.Count(page, disabled) > 0)
	}
	if a := w.do("POST", "/rebuild", url.Values{"reason": {"x"}}, by(carl)); a.StatusCode != http.StatusForbidden {
		t.Errorf("carl, who may only look: got %s, want 403", a.Status)
	}
	cookie := w.do("POST", "/sign-in", url.Values{"name": {"anna"}, "token": {berta}}).Cookies()[0]
	signed := "Cookie: " + cookie.Name + "=" + cookie.Value
	says(t, "people: the bar of berta", bar(w.do("GET", "/", nil, signed).body))
	want := []string{"claimed:root|add_operator|berta, operate|", "claimed:root|add_operator|carl, read|", "operator:berta|rebuild||x"}
	must.Equal(t, "audit log", want, w.audit())

	must.Get(o.Do(t.Context(), operator.RevokeOperator{Name: "berta"}, admin))(t)
	must.Until(w.t, "the revocation", func() bool { return w.do("GET", "/", nil, signed).StatusCode == http.StatusUnauthorized })
	if a := w.do("GET", "/", nil, by(berta)); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("a revoked token: got %s, want 401", a.Status)
	}
}

// A foreign page that resolves its name to this machine reaches the port, and is refused.
func TestOnlyLocalNamesReachALocalPort(t *testing.T) {
	w := newWorld(t, func(c *console.Config) { c.Address = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8090} })
	for host, want := range map[string]int{
		"localhost:8090": http.StatusOK, "127.0.0.1:8090": http.StatusOK, "[::1]:8090": http.StatusOK, "localhost": http.StatusOK,
		"evil.example:8090": http.StatusMisdirectedRequest, "10.0.0.1:8090": http.StatusMisdirectedRequest, "localhost.evil.example": http.StatusMisdirectedRequest,
	} {
		request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, w.console.URL+"/sign-in", nil))(t)
		request.Host = host
		response := must.Get(http.DefaultClient.Do(request))(t)
		if _ = response.Body.Close(); response.StatusCode != want {
			t.Errorf("Host %s: got %s, want %d", host, response.Status, want)
		}
	}
}

// Another site must not act through the browser of an operator.
func TestOtherSitesAreRefused(t *testing.T) {
	w := newWorld(t)
	cookie := w.do("POST", "/sign-in", url.Values{"name": {"anna"}, "token": {token}}).Cookies()[0]
	signed := "Cookie: " + cookie.Name + "=" + cookie.Value
	for name, line := range map[string]string{
		"by what the browser says": "Sec-Fetch-Site: cross-site",
		"by the origin":            "Origin: https://evil.example",
		"of an opaque origin":      "Origin: null",
	} {
		if a := w.do("POST", "/rebuild", url.Values{"reason": {"x"}}, signed, line); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: got %s, want 403", name, a.Status)
		}
	}
	if a := w.do("POST", "/rebuild", url.Values{"reason": {"x"}}, signed, "Origin: "+w.console.URL); a.StatusCode != http.StatusAccepted {
		t.Errorf("from the console itself: got %s, want 202", a.Status)
	}
}

// The service may publish the effects of an action before the operator's own build. Their run still lists
// these effects.
func TestAnotherBuildWasFaster(t *testing.T) {
	faster := false
	w := newWorld(t, func(c *console.Config) {
		build := c.Operator.Build
		c.Operator.Build = func(ctx context.Context, request builder.Request) (builder.Outcome, error) {
			if faster {
				if _, err := build(ctx, builder.Request{At: request.At, Reason: "ledger changed"}); err != nil {
					return builder.Outcome{}, err
				}
			}
			return build(ctx, request)
		}
	})
	before := w.build("start")
	faster = true
	r := w.wait("/rounds/2024023/postpone", url.Values{"reason": {"track works"}, "confirm": {"yes"}})
	if result := r.Last.Result; result == nil || result.Unchanged || result.Version != before+1 || len(result.Changed) == 0 {
		t.Errorf("got %+v with %+v, want a new version and what changed with it", r.Last, result)
	}
	says(t, "another build was faster", r.Last.Text)
}

// The console works without scripts too: a run has a page of its own.
func TestWithoutScripts(t *testing.T) {
	w := newWorld(t)
	const browser = "Accept: text/html,application/xhtml+xml"
	a := w.asOperator("POST", "/rebuild", url.Values{"reason": {"first"}}, browser)
	place := a.Header.Get("Location")
	if a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(place, "/runs/") {
		t.Fatalf("got %s to %q, want the run's page", a.Status, place)
	}
	must.Until(w.t, "the end of the run", func() bool {
		a = w.asOperator("GET", place, nil, browser)
		return a.Header.Get("Refresh") == ""
	})
	says(t, "page of a run", words(a.body))
	answers(t, "rebuild without a reason", w.asOperator("POST", "/rebuild", url.Values{"reason": {" "}}, browser))
}

// A program follows a run: each answer waits for an event after the last one, until the run ends.
func TestFollow(t *testing.T) {
	rendering, hold := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(c *console.Config) {
		build := c.Operator.Build
		c.Operator.Build = func(ctx context.Context, request builder.Request) (builder.Outcome, error) {
			request.Progress.Report(builder.Render, 0, 10)
			close(rendering)
			<-hold
			return build(ctx, request)
		}
	})
	a := w.asOperator("POST", "/rebuild", url.Values{"reason": {"first"}})
	var r run
	must.Do(t, json.Unmarshal([]byte(a.body), &r))
	must.Equal(t, "where the run is", "/runs/"+r.ID, a.Header.Get("Location"))
	<-rendering
	must.Do(t, json.Unmarshal([]byte(w.asOperator("GET", "/runs/"+r.ID, nil).body), &r))
	must.Equal(t, "phase while it renders", console.Render, r.Last.Phase)
	answered := make(chan run)
	go func() {
		var next run
		_ = json.Unmarshal([]byte(w.asOperator("GET", fmt.Sprintf("/runs/%s?after=%d", r.ID, r.Last.Seq), nil).body), &next)
		answered <- next
	}()
	close(hold)
	if next := <-answered; next.Last.Seq <= r.Last.Seq {
		t.Errorf("got %+v, want an event after %d", next.Last, r.Last.Seq)
	}
	events := w.events(r.ID)
	must.Equal(t, "phase of the last event", console.Done, events[len(events)-1].Phase)
	if a := w.asOperator("GET", "/runs/none?after=0", nil); a.StatusCode != http.StatusNotFound {
		t.Errorf("unknown run: got %s, want 404", a.Status)
	}
}

// TestSecretsAreShownOnce: no page after the answer has a new key, the secret of a webhook or the whole address of its
// receiver. A browser without scripts keeps the endpoints that were ticked, and reads a new secret on a page.
func TestSecretsAreShownOnce(t *testing.T) {
	w := newWorld(t)
	var created, added struct{ ID, Key string }
	must.Do(t, json.Unmarshal([]byte(w.asOperator("POST", "/keys", url.Values{"client": {"Betting House"}, "tier": {"pro"}}).body), &created))
	hash, ok := keys.Sum([]byte(created.Key))
	must.Hold(t, ok && strings.HasPrefix(hash.String(), created.ID), "got key %q with id %q", created.Key, created.ID)
	hook := url.Values{"url": {"https://receiver.example/hook/token"}, "endpoint": {"standings", "calendar.ics"}}
	asked := w.asOperator("POST", "/webhooks", hook, "Accept: text/html").body
	must.Equal(t, "ticked endpoints of the question without scripts", 2, strings.Count(asked, `name="endpoint"`))
	hook.Set("confirm", "yes")
	must.Do(t, json.Unmarshal([]byte(w.asOperator("POST", "/webhooks", hook).body), &added))
	rotated := w.asOperator("POST", "/webhooks/"+added.ID+"/rotate", url.Values{"grace": {"2"}, "confirm": {"yes"}}, "Accept: text/html").body
	secrets := regexp.MustCompile(`whsec_[^<"\s]{20,}`).FindAllString(rotated, -1)
	must.Equal(t, "secrets after a rotation without scripts", 1, len(secrets))
	page := w.asOperator("GET", "/", nil).body
	must.Hide(t, "the page", page, append(secrets, created.Key, added.Key, "/hook/token")...)
}

// fixedEdge is an edge with a fixed state.
type fixedEdge struct{ status edge.StatusDocument }

func (e fixedEdge) Name() string                                        { return "edge9" }
func (e fixedEdge) Status(context.Context) (edge.StatusDocument, error) { return e.status, nil }
func (fixedEdge) Usage(context.Context) (edge.UsageDocument, error)     { return edge.UsageDocument{}, nil }
func (fixedEdge) Look(context.Context)                                  {}

// TestRemoteHidesItsPassword: the address of an edge may have the password of a proxy, which the edge's name and errors lack.
func TestRemoteHidesItsPassword(t *testing.T) {
	closed := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password == "sesame" {
			closed = false
		}
		if r.URL.Path == "/status" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	defer server.Close()
	remote := console.Remote(strings.Replace(server.URL, "://", "://key:sesame@", 1))
	must.Equal(t, "its name", strings.TrimPrefix(server.URL, "http://"), remote.Name())
	for what, err := range map[string]error{"a status": must.Err(remote.Status(t.Context())), "an answer without JSON": must.Err(remote.Usage(t.Context()))} {
		must.Require(t, err != nil, "%s is taken", what)
		must.Hide(t, what, err.Error(), "sesame")
	}
	must.Hold(t, !closed, "the password was not sent")
}

// Each problem is red on the page, with the command that helps.
func TestFaultsAreShown(t *testing.T) {
	must.Long(t, "a season is replayed for one page")
	asked := fixedEdge{edge.StatusDocument{
		Version: 1, Stale: true, NotReady: "stopping", LimitsFault: "Redis does not answer",
		Refused: &edge.Refused{Version: 2, Reason: "drivers is missing"}, Keys: edge.KeyStatus{Loaded: true, Problem: "damaged"},
		Certificate: &edge.CertificateStatus{Expires: wire.Instant(time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)), Expiring: true},
	}}
	w := newWorld(t, func(c *console.Config) { c.Edges = append(c.Edges, asked, console.Remote("127.0.0.1:9")) })
	w.build("start")
	w.build("again")
	base := must.Get(snapshots.LoadBase(t.Context(), w.store, nil))(t)
	m := base.Manifest
	draft := snapshots.Draft{Base: base, About: m.About}
	draft.Refused = []snapshots.RefusedEntry{{Path: "next-race", Version: 2, Reason: "data.name is wrong"}}
	for _, e := range m.Entries {
		draft.Variants = append(draft.Variants, snapshots.Reused(e))
	}
	publisher := snapshots.Publisher{Store: w.store}
	must.Get(publisher.Publish(t.Context(), draft))(t)
	w.mu.Lock()
	w.jobs[2].LastError = "the directory of the store is empty: is the disk mounted?"
	w.mu.Unlock()
	page := html.UnescapeString(w.asOperator("GET", "/", nil, "Accept: text/html").body)
	var faults []string
	for _, fault := range regexp.MustCompile(`<p class="notice bad">.*`).FindAllString(page, -1) {
		faults = append(faults, words(fault))
	}
	says(t, "faults", strings.Join(faults, " | "))
}

// Nothing that comes from outside becomes part of the page's code.
func TestPageEscapes(t *testing.T) {
	w := newWorld(t)
	const bad = `<script>alert("x")</script>`
	w.wait("/rebuild", url.Values{"reason": {bad}})
	if a := w.asOperator("POST", "/keys", url.Values{"client": {bad}, "tier": {"pro"}}); a.StatusCode != http.StatusOK {
		t.Fatal(a.body)
	}
	for _, path := range []string{"/", "/versions/1"} {
		a := w.asOperator("GET", path, nil, "Accept: text/html")
		must.Hold(t, strings.Count(a.body, bad) == 0 && strings.Count(a.body, "&lt;script&gt;") != 0,
			"%s does not escape what an operator wrote", path)
		says(t, "the policy of "+path, regexp.MustCompile(`'sha256-[^']*'`).ReplaceAllString(a.Header.Get("Content-Security-Policy"), "HASH"))
	}
}

// TestNoRunStartsAfterClose sends a form to a console that is closed while its server still drains.
func TestNoRunStartsAfterClose(t *testing.T) {
	w := newWorld(t)
	w.close()
	answers(t, "rebuild while it stops", w.asOperator("POST", "/rebuild", url.Values{"reason": {"too late"}}))
}

func TestTokenMustBeLong(t *testing.T) {
	says(t, "a short token", fmt.Sprint(must.Err(console.New(console.Config{Token: func() string { return "short" }}))))
}
