package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/derive"
	"gridcast/builder/ingest"
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

// TestSessionTakenBack: the console offers each cancelled session of a weekend to be reinstated, with a preview, and the
// audit log has both actions.
func TestSessionTakenBack(t *testing.T) {
	w := newWorld(t)
	w.build("start")
	form := regexp.MustCompile(`<form method="post" action="/rounds/2024024/reinstate" data-run class="stack"><label>Which <select name="part"><option>([^<]*)</option></select>`)
	offers := func(when, want string) {
		t.Helper()
		got := append(form.FindStringSubmatch(w.do("GET", "/", nil, "Accept: text/html", "Authorization: Bearer "+token).body), "", "")[1]
		must.Equal(t, when+" the page offers", want, got)
	}
	offers("before", "")
	sent := url.Values{"part": {"practice-1"}, "reason": {"fog"}, "confirm": {"yes"}}
	w.wait("/rounds/2024024/cancel", sent)
	must.Equal(t, "cancelled", true, w.round(2024024).Facts.Cancelled("practice-1"))
	offers("once cancelled", "practice-1")
	answers(t, "reinstate a session without a confirmation", w.asOperator("POST", "/rounds/2024024/reinstate", url.Values{"part": {"practice-1"}, "reason": {"the fog is gone"}}))
	sent.Set("reason", "the fog is gone")
	w.wait("/rounds/2024024/reinstate", sent)
	must.Equal(t, "cancelled", false, w.round(2024024).Facts.Cancelled("practice-1"))
	offers("once reinstated", "")
	want := []string{"claimed:anna|cancel_round|2024024 practice-1|fog", "claimed:anna|reinstate_round|2024024 practice-1|the fog is gone"}
	must.Equal(t, "the audit log", want, w.audit())
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
	must.Hold(t, cookie.HttpOnly && cookie.SameSite == http.SameSiteStrictMode && !strings.Contains(cookie.Value, token),
		"got cookie %v, want it http-only, same-site strict and without the token", cookie)
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
	if object, err := w.store.Get(t.Context(), operator.PeopleKey, 1<<20); err != nil || strings.Contains(string(object.Data), berta) {
		t.Errorf("the store holds the token itself: %s, %v", object.Data, err)
	}

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

func TestVerifyRebuildRollback(t *testing.T) {
	w := newWorld(t)
	w.build("start")
	w.set(w.weekend.GridKnownAt())
	w.build("grid known")
	w.set(w.weekend.ResultKnownAt())
	before := w.build("settled")

	path := "/results/2024022/verify"
	page := w.asOperator("GET", "/", nil).body
	_, after, _ := strings.Cut(page, `name="seen" value="`)
	seen, _, _ := strings.Cut(after, `"`)

	var asked struct{ Preview operator.Preview }
	a := w.asOperator("POST", path, url.Values{"seen": {seen}})
	if err := json.Unmarshal([]byte(a.body), &asked); err != nil || a.StatusCode != http.StatusPreconditionRequired {
		t.Fatalf("verify without an answer to its question: got %s, %s; want 428", a.Status, a.body)
	}
	if p := asked.Preview; p.Question != "Is this the result of the Las Vegas Grand Prix?" || p.Seen != seen || !slices.Contains(p.Effects, "The winner is George Russell.") ||
		!slices.Contains(p.Variants, "standings/drivers/2024") {
		t.Errorf("the preview of a verification is %+v", p)
	}
	answers(t, "verify something else", w.asOperator("POST", path, url.Values{"seen": {"0123456789abcdef"}, "confirm": {"yes"}}))
	r := w.wait(path, url.Values{"seen": {seen}, "confirm": {"yes"}})
	must.Require(t, r.Last.Phase == console.Done && r.Last.Result != nil, "verify: got %+v", r.Last)
	result := r.Last.Result
	must.Hold(t, result.Version > before && len(result.Edges) == 1 && result.Edges[0].Problem == "" && !result.ServedSince.IsZero(),
		"verify: got %+v, want a new version served by the edge", result)
	wantChanged := []string{
		"accuracy/2024", "accuracy/all", "calendar/2024", "careers/constructors/2024", "careers/constructors/all",
		"careers/drivers/2024", "careers/drivers/all", "circuits/2024", "circuits/all", "head-to-head/2024", "live", "overview", "overview/2024", "predictions/2024",
		"predictions/session/2024022", "results/2024", "results/session/2024022", "sessions", "sessions/session/2024022",
		"standings-progress/constructors/2024", "standings-progress/drivers/2024", "standings/constructors/2024", "standings/drivers/2024",
		"weekends/2024", "weekends/session/2024022",
	}
	must.Equal(t, "changed variants", wantChanged, result.Changed)
	answers(t, "verify once more", w.asOperator("POST", path, url.Values{"seen": {seen}, "confirm": {"yes"}}))
	answers(t, "roll back without a reason", w.asOperator("POST", "/versions/2/rollback", url.Values{"confirm": {"yes"}}))
	r = w.wait("/versions/2/rollback", url.Values{"reason": {"wrong result"}, "confirm": {"yes"}})
	must.Hold(t, r.Last.Phase == console.Done && r.Last.Result.Version == result.Version+1, "rollback: got %+v", r.Last)
	if r := w.wait("/rebuild", url.Values{"reason": {"try"}}); r.Last.Phase != console.Failed {
		t.Errorf("rebuild while held: got %+v, want it refused", r.Last)
	} else {
		says(t, "rebuild while held", r.Last.Error)
	}
	if r := w.wait("/release", url.Values{"reason": {"it was right"}, "confirm": {"yes"}}); r.Last.Phase != console.Done {
		t.Errorf("release: got %+v", r.Last)
	}
	pointer, _, err := snapshots.LoadPointer(t.Context(), w.store)
	must.Hold(t, err == nil && !pointer.Held, "after the release: pointer %+v, error %v", pointer, err)
	want := []string{
		"claimed:anna|verify_result|2024022|",
		"claimed:anna|rollback|2|wrong result",
		"claimed:anna|rebuild||try",
		"claimed:anna|failed||build: publish to mem:: version 5: publishing is held: wrong result; gridcast build --release --reason WHY ends the hold",
		"claimed:anna|release||it was right",
	}
	must.Equal(t, "audit log", want, w.audit())
	log := section(w.asOperator("GET", "/", nil, "Accept: text/html").body, "audit")
	says(t, "the audit log on the page", regexp.MustCompile(`\d+ \w+ \d{4} \d\d:\d\d:\d\d`).ReplaceAllString(log, "TIME")) // of the real clock
}

// A verified result stays on the page while the source's classification differs, until an operator takes the
// source's.
func TestSourceDiffers(t *testing.T) {
	w := newWorld(t)
	w.set(w.weekend.ResultKnownAt())
	w.build("settled")
	for _, step := range []struct {
		name string
		path string
		form url.Values
	}{
		{"verified", "/results/2024022/verify", url.Values{}},
		{"disqualified", "/results/2024022/correct", url.Values{"disqualify": {"RUS"}, "reason": {"floor"}}},
		{"taken back", "/results/2024022/correct", url.Values{"reason": {"it was not"}}},
		{"a year later", "/results/2023021/correct", url.Values{"disqualify": {"VER"}, "reason": {"floor"}}},
		{"taken back a year later", "/results/2023021/correct", url.Values{"reason": {"it was not"}}},
	} {
		step.form.Set("confirm", "yes")
		if r := w.wait(step.path, step.form); r.Last.Phase != console.Done {
			t.Fatalf("%s: got %+v", step.path, r.Last)
		}
		page := w.asOperator("GET", "/", nil, "Accept: text/html").body
		says(t, "source differs: notices, "+step.name, section(page, "notices"))
		says(t, "source differs: results, "+step.name, section(page, "waiting"))
	}
}

// The sprint of a round has a form of its own, which leaves the race alone.
func TestCorrectTheSprint(t *testing.T) {
	const brazil = 2024021
	w := newWorld(t)
	w.set(w.weekend.ResultKnownAt())
	w.build("settled")
	if page := w.asOperator("GET", "/", nil, "Accept: text/html").body; strings.Count(page, `name="sprint"`) == 0 {
		t.Error("there is no form of a sprint")
	}
	before := w.round(brazil)
	r := w.wait("/results/2024021/correct", url.Values{"sprint": {"yes"}, "order": {"PIA NOR LEC"}, "reason": {"document 40"}, "confirm": {"yes"}, "force": {"yes"}})
	must.Require(t, r.Last.Phase == console.Done, "got %+v", r.Last)
	after := w.round(brazil)
	if rows := after.Sprint(); after.Code(rows[0].Driver) != "PIA" || rows[0].Points != 8 || before.Code(before.Sprint()[0].Driver) != "NOR" {
		t.Errorf("the sprint was won by %+v, and is by %+v now", before.Sprint()[0], rows[0])
	}
	must.Equal(t, "the race has changed", before.Valid(), after.Valid())
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
	answers(t, "rebuild another store", w.asOperator("POST", "/rebuild", url.Values{"reason": {"x"}, "store": {"dir:/elsewhere"}}))
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

func TestKeysAndJobs(t *testing.T) {
	w := newWorld(t)
	a := w.asOperator("POST", "/keys", url.Values{"client": {"Betting House"}, "tier": {"pro"}, "reason": {"contract 7"}})
	var created struct{ ID, Key string }
	if err := json.Unmarshal([]byte(a.body), &created); err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("create: got %s, %s", a.Status, a.body)
	}
	if hash, ok := keys.Sum([]byte(created.Key)); !ok || !strings.HasPrefix(created.Key, keys.Prefix) || !strings.HasPrefix(hash.String(), created.ID) {
		t.Errorf("got key %q with id %q", created.Key, created.ID)
	}
	for what, form := range map[string]url.Values{
		"no client": {"tier": {"pro"}}, "an unknown tier": {"client": {"x"}, "tier": {"gold"}},
		"an impossible origin": {"client": {"x"}, "tier": {"pro"}, "origins": {"example.org"}},
	} {
		answers(t, "create a key with "+what, w.asOperator("POST", "/keys", form))
	}
	if a := w.asOperator("POST", "/keys/"+created.ID+"/revoke", url.Values{"reason": {"leaked"}, "confirm": {"yes"}}); a.StatusCode != http.StatusOK {
		t.Errorf("revoke: got %s, %s", a.Status, a.body)
	}
	document, _ := must.Get2(keys.Load(t.Context(), w.store))(t)
	if record, err := document.Find(created.ID); err != nil || record.Revoked.IsZero() {
		t.Errorf("after the revocation: %+v, %v", record, err)
	}
	answers(t, "revoke an unknown key", w.asOperator("POST", "/keys/000000000000/revoke", url.Values{}))
	if r := w.wait("/jobs/poll/run", url.Values{}); r.Last.Phase != console.Done {
		t.Errorf("poll now: got %+v", r.Last)
	}
	if r := w.wait("/jobs/freeze/run", url.Values{}); r.Last.Phase != console.Failed {
		t.Errorf("a job that fails: got %+v, want its error", r.Last)
	} else {
		says(t, "a job that fails", r.Last.Error)
	}
	answers(t, "run an unknown job", w.asOperator("POST", "/jobs/nothing/run", url.Values{}))
	must.Equal(t, "copies of the key on the page", 0, strings.Count(w.asOperator("GET", "/", nil).body, created.Key))

	// Webhooks: a form with a question, with and without scripts.
	hook := url.Values{"url": {"https://receiver.example/hook/token"}, "endpoint": {"standings", "calendar.ics"}}
	answers(t, "add a webhook", w.asOperator("POST", "/webhooks", hook))
	if a := w.asOperator("POST", "/webhooks", hook, "Accept: text/html"); strings.Count(a.body, `name="endpoint"`) != 2 {
		t.Errorf("the question without scripts has lost what was ticked:\n%s", a.body)
	}
	for _, wrong := range []string{"http://example.org", "https://10.0.0.1/", "https://user@example.org/"} {
		answers(t, "add the webhook "+wrong, w.asOperator("POST", "/webhooks", url.Values{"url": {wrong}, "confirm": {"yes"}}))
	}
	hook.Set("confirm", "yes")
	var added struct{ ID, Key string }
	if a := w.asOperator("POST", "/webhooks", hook); json.Unmarshal([]byte(a.body), &added) != nil || !strings.HasPrefix(added.Key, "whsec_") {
		t.Errorf("add: got %s, %s", a.Status, a.body)
	}
	page := w.asOperator("GET", "/", nil).body
	must.Equal(t, "copies of the secret and of the whole address on the page", 0, strings.Count(page, added.Key)+strings.Count(page, "/hook/token"))
	says(t, "webhooks on the page", section(page, "webhooks"))
	answers(t, "rotate a webhook without hours", w.asOperator("POST", "/webhooks/"+added.ID+"/rotate", url.Values{"grace": {"soon"}}))
	rotated := w.asOperator("POST", "/webhooks/"+added.ID+"/rotate", url.Values{"grace": {"2"}, "confirm": {"yes"}}, "Accept: text/html")
	must.Equal(t, "secrets after a rotation without scripts", 1, len(regexp.MustCompile(`whsec_[^<"\s]{20,}`).FindAllString(rotated.body, -1)))
	answers(t, "pause an unknown webhook", w.asOperator("POST", "/webhooks/whnone/pause", url.Values{"confirm": {"yes"}}))
}

// fixedEdge is an edge with a fixed state.
type fixedEdge struct{ status edge.StatusDocument }

func (e fixedEdge) Name() string                                        { return "edge9" }
func (e fixedEdge) Status(context.Context) (edge.StatusDocument, error) { return e.status, nil }
func (fixedEdge) Usage(context.Context) (edge.UsageDocument, error)     { return edge.UsageDocument{}, nil }
func (fixedEdge) Look(context.Context)                                  {}

// Each problem is red on the page, with the command that helps.
func TestFaultsAreShown(t *testing.T) {
	if testing.Short() {
		t.Skip("short: a season is replayed for one page")
	}
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

// Half a grid needs the force of its own confirmation. The round then has no pick, which the page shows in red.
func TestTwoCarGrid(t *testing.T) {
	w := newWorld(t)
	w.silence()
	w.set(time.Date(2024, 11, 23, 12, 0, 0, 0, time.UTC))
	w.build("start")
	grid := url.Values{"order": {"VER NOR"}, "reason": {"typo"}, "confirm": {"yes"}}
	asked := w.asOperator("POST", "/facts/2024022/grid", grid)
	preview, _, _ := strings.Cut(asked.body, `,"variants":`)
	says(t, "half a grid", preview)
	if asked.StatusCode != http.StatusPreconditionRequired {
		t.Fatalf("a grid of two is answered with %s %s, want that it is refused and gives no pick", asked.Status, asked.body)
	}
	grid.Set("force", "yes")
	if r := w.wait("/facts/2024022/grid", grid); r.Last.Phase != console.Done {
		t.Fatalf("the forced grid: %+v", r.Last)
	}
	w.set(w.weekend.StartsAt().Add(-30 * time.Minute))
	says(t, "notices half an hour before a race without a pick", section(w.asOperator("GET", "/", nil, "Accept: text/html").body, "notices"))
}

// Results of a whole season wait. The page shows the last five and one line, one notice and one button for all.
func TestManyResultsWait(t *testing.T) {
	if testing.Short() {
		t.Skip("short: renders the documents of two seasons")
	}
	w := newWorld(t)
	w.set(time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC))
	w.build("a winter later")
	page := html.UnescapeString(w.asOperator("GET", "/", nil, "Accept: text/html").body)
	if n := strings.Count(page, `/verify" data-run class="stack"`); n != 5 {
		t.Errorf("the page shows %d results, want 5", n)
	}
	for _, want := range []string{"Verify all 27…", "22 results of 2024 to 2025 wait before these", "<strong>27 results of 2024 to 2025 wait for verification.</strong>"} {
		must.Equal(t, "the page says "+want, 1, strings.Count(page, want))
	}
	var asked struct{ Preview operator.Preview }
	a := w.asOperator("POST", "/results/verify", url.Values{})
	if err := json.Unmarshal([]byte(a.body), &asked); err != nil || a.StatusCode != http.StatusPreconditionRequired {
		t.Fatalf("verify all without an answer to the question: got %s, %s; want 428", a.Status, a.body)
	}
	if r := w.wait("/results/verify", url.Values{"seen": {asked.Preview.Seen}, "confirm": {"yes"}}); r.Last.Phase != console.Done {
		t.Fatalf("verify all: got %+v", r.Last)
	}
	says(t, "results to verify once all are", section(w.asOperator("GET", "/", nil, "Accept: text/html").body, "waiting"))
}

// The embedded seasons end in July 2026, and no source has answered yet. The page says so once, and not in red.
func TestFreshInstallation(t *testing.T) {
	if testing.Short() {
		t.Skip("short: renders the documents of two seasons")
	}
	w := newWorld(t, func(c *console.Config) {
		c.Sources = func() []operator.Source {
			return []operator.Source{{Name: "f1db", State: &ingest.PollState{Source: "f1db"}}}
		}
	})
	says(t, "notices before the first version", section(w.asOperator("GET", "/", nil, "Accept: text/html").body, "notices"))
	w.set(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	w.build("start")
	page := w.asOperator("GET", "/", nil, "Accept: text/html").body
	says(t, "notices of a fresh installation", section(page, "notices"))
	must.Equal(t, "notices in amber about results", 1, strings.Count(page, `<p class="notice warn"><strong>10 results`))
}

// Title odds follow a version in a version of their own. The page still names the change of the answers.
func TestBecause(t *testing.T) {
	w := newWorld(t)
	w.build("grid_known 2024022")
	w.set(w.weekend.GridKnownAt())
	w.build(derive.Reason)
	w.set(w.weekend.StartsAt().Add(time.Minute))
	w.build(derive.Reason)
	says(t, "the served version, and why", section(w.asOperator("GET", "/", nil, "Accept: text/html").body, "served"))
}
