package console_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gridcast/builder/almanac"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/console"
	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
	"gridcast/edge/keys"
	"gridcast/scheduler/webhook"
)

func (w *world) signIn(b *browsertest.Browser) {
	w.t.Helper()
	b.Do(chromedp.Navigate(w.console.URL), browsertest.Visible(chromedp.CSS(`input[name=token]`)),
		chromedp.SendKeys(chromedp.CSS(`input[name=name]`), "anna"), browsertest.Type(chromedp.CSS(`input[name=token]`), token),
		chromedp.Submit(chromedp.CSS(`input[name=token]`)), browsertest.Visible(chromedp.CSS(`#served`)))
}

// Two taps move a driver from the last place to the first, or back, and the header stays in view.
func TestOrderOnAPhone(t *testing.T) {
	if testing.Short() {
		t.Skip("short: a browser takes half a minute")
	}
	w := newWorld(t)
	w.build("start")
	b := browsertest.Open(t)
	b.Phone()
	w.signIn(b)
	const grid = `form[action='/facts/2024022/grid']`
	const order = "RUS SAI GAS LEC VER NOR TSU PIA HUL HAM OCO MAG ZHO COL LAW ALO STR BOT ALB PER HAD BEA"
	b.Do(chromedp.Evaluate[chromedp.Void](`for (let e = document.querySelector("`+grid+`").closest("details"); e; e = e.parentElement.closest("details")) e.open = true`),
		chromedp.Evaluate[chromedp.Void](`document.querySelector("`+grid+` textarea").value = ""`), browsertest.Type(chromedp.CSS(grid+` textarea`), order))
	tap := func(code, part string) chromedp.Action[chromedp.Void] {
		return chromedp.Click(chromedp.CSS(grid + ` li[data-code=` + code + `] .` + part))
	}
	b.Do(tap("BEA", "driver"))
	b.Look("lifted")
	b.Axe("a name is lifted")
	if got := b.Evaluate(`(() => { const box = document.querySelector(".brand").getBoundingClientRect(); return scrollY > 900 && box.height > 0 && box.top >= 0 && box.bottom < 100 })()`); got != "true" {
		t.Error("on a phone the header does not stay in view")
	}
	b.Do(tap("RUS", "place"))
	b.Look("put-down")
	if got := b.Value(grid + " textarea"); !strings.HasPrefix(got, "BEA RUS SAI GAS") || !strings.HasSuffix(got, "PER HAD") {
		t.Errorf("after two taps the order is %q, want BEA in the first place", got)
	}
	b.Do(tap("BEA", "driver"), tap("HAD", "driver"))
	if got := b.Value(grid + " textarea"); got != order {
		t.Errorf("after two more taps the order is %q, want BEA in the last place again", got)
	}
	b.Do(tap("RUS", "driver"), tap("RUS", "driver"), tap("SAI", "driver"))
	if got := b.Value(grid + " textarea"); got != order {
		t.Errorf("a second tap on the same name does not let it go: %q", got)
	}
}

// Race control at night: everything that a weekend may need is done with a phone.
func TestActionsOnAPhone(t *testing.T) {
	if testing.Short() {
		t.Skip("short: a browser takes half a minute")
	}
	w := newWorld(t)
	w.build("start")
	b := browsertest.Open(t)
	b.Phone()
	w.signIn(b)

	unfold := func(form string) chromedp.Action[chromedp.Void] {
		return chromedp.Evaluate[chromedp.Void](
			`for (let e = document.querySelector("` + form + `").closest("details"); e; e = e.parentElement.closest("details")) e.open = true`)
	}
	// do fills in a form that may be folded away, says yes, and waits for the end.
	do := func(picture, form string, fields ...string) {
		t.Helper()
		b.Do(chromedp.Navigate(w.console.URL), browsertest.Visible(chromedp.CSS(`#served`)), unfold(form))
		for i := 0; i < len(fields); i += 2 {
			selector := form + ` [name=` + fields[i] + `]`
			b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("` + selector + `").value = ""`))
			if name := fields[i]; name == "file" || name == "kind" { // a choice, not a text
				b.Do(chromedp.SendKeys(chromedp.CSS(selector), fields[i+1]))
			} else {
				b.Do(browsertest.Type(chromedp.CSS(selector), fields[i+1]))
			}
		}
		b.Look(picture + "-form")
		b.Do(browsertest.Press(chromedp.CSS(form+` button:not([type=button])`)), browsertest.Visible(chromedp.CSS(`#ask[open]`)))
		b.Look(picture + "-asked")
		// An order of three is refused at first: the rest of the field has no place.
		b.Do(chromedp.Evaluate[chromedp.Void](`if (!document.querySelector("#ask-refusal").hidden) document.querySelector("#ask-force").click()`))
		b.Do(browsertest.Press(chromedp.CSS(`#ask button[value=yes]`)), browsertest.Visible(chromedp.CSS(`#run[data-state=done], #run[data-state=failed]`)))
		b.Look(picture + "-done")
		says(t, "on a phone: "+picture, b.Text("#run-text"))
	}
	const lasVegas, qatar = 2024022, 2024023
	do("postpone", `form[action='/rounds/2024023/postpone']`, "reason", "track works")
	if r := w.round(qatar); r.State != almanac.Postponed {
		t.Errorf("after it was postponed the round is in state %v", r.State)
	}
	do("reinstate", `form[action='/rounds/2024023/reinstate']`, "reason", "works done")
	if r := w.round(qatar); r.State != almanac.Scheduled {
		t.Errorf("after it was reinstated the round is in state %v", r.State)
	}

	do("calendar", `form[action='/calendar']`, "text", "grand_prix,start\nqatar,2024-12-01T17:00:00Z", "reason", "the organiser wrote")
	if r := w.round(qatar); !r.Start.Equal(time.Date(2024, 12, 1, 17, 0, 0, 0, time.UTC)) {
		t.Errorf("after the calendar was imported the round starts at %s", r.Start)
	}
	organiser := filepath.Join(t.TempDir(), "organiser.ics")
	must.Do(t, os.WriteFile(organiser, []byte(strings.ReplaceAll(`BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//organiser//EN
BEGIN:VEVENT
UID:qatar-race
DTSTAMP:20241119T000000Z
SUMMARY:FORMULA 1 QATAR AIRWAYS QATAR GRAND PRIX 2024 - Race
DTSTART;TZID=Asia/Qatar:20241201T213000
END:VEVENT
END:VCALENDAR
`, "\n", "\r\n")), 0o600))
	do("calendar-file", `form[action='/calendar']`, "file", organiser, "reason", "the organiser sent a file")
	if r := w.round(qatar); !r.Start.Equal(time.Date(2024, 12, 1, 18, 30, 0, 0, time.UTC)) {
		t.Errorf("after the file was sent the round starts at %s", r.Start)
	}
	log := must.Get(auditlog.Load(t.Context(), w.store))(t)
	if last := log.Entries()[len(log.Entries())-1]; last.Action != auditlog.ImportCalendar || !strings.HasPrefix(last.Subject, "organiser.ics") {
		t.Errorf("after the file was sent the audit log ends with %+v", last)
	}
	do("alias", `form[action='/sources/alias']`, "kind", "a team", "from", "kick", "to", "kick-sauber", "reason", "a source calls them so")

	// The source is silent after the race, and an operator enters the result.
	w.set(w.weekend.StartsAt().Add(70 * time.Minute))
	w.build("the race is run")
	do("enter", `form[action='/results/2024022/enter']`, "order", "RUS HAM SAI", "reason", "seen on television")
	if r := w.round(lasVegas); len(r.Valid()) < 3 || r.Code(r.Valid()[0].Driver) != "RUS" || r.Valid()[0].Points != 25 {
		t.Errorf("after the result was entered it is %+v", r.Valid())
	}
	do("correct", `form[action='/results/2024022/correct']`, "order", "HAM RUS SAI", "reason", "stewards")
	if r := w.round(lasVegas); r.Code(r.Valid()[0].Driver) != "HAM" || len(r.Record.Revisions) != 2 {
		t.Errorf("after the correction it is %+v in revision %d", r.Valid()[:3], len(r.Record.Revisions))
	}

	do("sprint", `form[action='/results/2024021/correct']:has([name=sprint])`, "order", "PIA NOR LEC", "reason", "stewards of the sprint")
	if r := w.round(2024021); r.Code(r.Sprint()[0].Driver) != "PIA" || r.Sprint()[0].Points != 8 {
		t.Errorf("after its correction the sprint is %+v", r.Sprint()[:3])
	}

	document, _ := must.Get2(keys.Load(t.Context(), w.store))(t)
	do("rotate", `form[action='/keys/`+document.Keys[0].ID+`/rotate']`, "reason", "every year")
	if got := b.Text("#run .secret"); !strings.HasPrefix(got, keys.Prefix) {
		t.Errorf("the new key is %q", got)
	}

	// A webhook: added, tested, paused after failures, resumed, given another secret.
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer receiver.Close()
	hook := func() webhook.Hook {
		t.Helper()
		hooks, err := webhook.Load(t.Context(), w.store)
		must.Require(t, err == nil && len(hooks) == 1, "got %+v, %v", hooks, err)
		return hooks[0]
	}
	do("webhook-add", `form[action='/webhooks']`, "url", receiver.URL+"/hook", "reason", "contract 7")
	if got := b.Text("#run .secret"); !strings.HasPrefix(got, webhook.SecretPrefix) {
		t.Errorf("the secret is %q", got)
	}
	form := func(action string) string { return `form[action='/webhooks/` + hook().ID + `/` + action + `']` }
	b.Do(chromedp.Navigate(w.console.URL), browsertest.Visible(chromedp.CSS(`#served`)), unfold(form("test")), browsertest.Press(chromedp.CSS(form("test")+` button`)), browsertest.Visible(chromedp.CSS(`#run[data-state=done], #run[data-state=failed]`)))
	says(t, "on a phone: webhook-test", b.Text("#run-text"))
	b.Look("webhook-tested")
	do("webhook-pause", form("pause"), "reason", "their maintenance")
	must.Do(t, webhook.Update(t.Context(), w.store, func(hooks *[]webhook.Hook) error {
		(*hooks)[0].Pause("nothing was taken since 19 November 2026 08:00 UTC, 10 attempts: answered 502", true)
		return nil
	}))
	b.Do(chromedp.Navigate(w.console.URL), chromedp.ScrollIntoView(chromedp.CSS(`#webhooks`)))
	b.Look("webhook-given-up")
	b.Picture("webhooks")
	b.Phone()
	says(t, "on a phone: notices", b.Text("#notices"))
	do("webhook-resume", form("resume"), "reason", "it answers again")
	do("webhook-rotate", form("rotate"), "reason", "every year")
	if h := hook(); h.Generation != 2 || !h.Paused.IsZero() {
		t.Errorf("got %+v", h)
	}
	do("webhook-remove", form("remove"), "reason", "contract has ended")
	if hooks, err := webhook.Load(t.Context(), w.store); err != nil || len(hooks) != 0 {
		t.Errorf("got %+v, %v", hooks, err)
	}
}

// On a phone the page of a race Sunday is at most four screens high. Sections with nothing due are folded, and the
// keyboard opens each of them. A wide window shows all sections.
func TestFoldsOnAPhone(t *testing.T) {
	if testing.Short() {
		t.Skip("short: a browser takes half a minute")
	}
	const screens, screen = 4, 844
	var sources []operator.Source
	w := newWorld(t, func(c *console.Config) {
		c.Sources = func() []operator.Source { return sources }
		c.Release = "v4.5.6"
	})
	sources = []operator.Source{
		{Name: "archive", Detail: "F1DB v2025.0.0, CC BY 4.0", Checked: w.now()},
		{Name: "jolpica", Detail: "revision 1234", Checked: w.now()},
	}
	b := browsertest.Open(t)
	b.Phone()
	w.build("start")
	w.signIn(b)
	const folded = `[...document.querySelectorAll("section:has(> .fold:not([open]))")].map((s) => s.id).join(" ")`
	// missing lists the forms without a visible button once the folds of the forms themselves are open.
	const missing = `(() => {
		const forms = [...document.querySelectorAll("main form")];
		for (const fold of document.querySelectorAll("main details:not(.fold)")) fold.open = true;
		return forms.length + " forms, hidden: " + forms.filter((f) => !f.querySelector("button").checkVisibility({ contentVisibilityAuto: true, visibilityProperty: true })).map((f) => f.getAttribute("action")).join(" ");
	})()`
	look := func(state, open string) {
		t.Helper()
		b.Phone()
		b.Do(chromedp.Navigate(w.console.URL), browsertest.Visible(chromedp.CSS(`#served`)))
		b.Look(state)
		height, err := strconv.Atoi(b.Evaluate(`document.documentElement.scrollHeight`))
		if err != nil || height > screens*screen {
			t.Errorf("%s: the page is %d px high on a phone, want at most %d: %v", state, height, screens*screen, err)
		}
		closed := strings.Fields(b.Evaluate(folded))
		for _, section := range strings.Fields(open) {
			must.Hold(t, !slices.Contains(closed, section), "%s: the section %s is folded, but something is due there", state, section)
		}
		for _, section := range []string{"keys", "webhooks", "audit", "record"} {
			must.Hold(t, slices.Contains(closed, section), "%s: the section %s is open, but nothing is due there", state, section)
		}
		// The folds within a section follow it in the page.
		folds := must.Get(strconv.Atoi(b.Evaluate(`document.querySelectorAll(".fold:not([open])").length`)))(t)
		for range folds {
			b.Do(browsertest.Press(chromedp.CSS(`.fold:not([open]) > summary`)))
		}
		if left := b.Evaluate(`document.querySelectorAll(".fold:not([open])").length`); left != "0" {
			t.Errorf("%s: the keyboard does not open %s folds", state, left)
		}
		narrow := b.Evaluate(missing)
		must.Hold(t, strings.HasSuffix(narrow, "hidden: "), "%s: on a phone with all folds open: %s", state, narrow)
		b.Do(chromedp.Navigate(w.console.URL), browsertest.Visible(chromedp.CSS(`#served`)))
		b.Picture(state)
		if wide := b.Evaluate(missing); wide != narrow {
			t.Errorf("%s: in a wide window with sections folded: %s, on a phone: %s", state, wide, narrow)
		}
	}

	w.set(w.weekend.GridKnownAt().Add(time.Minute))
	w.build("the grid is known")
	look("before the race", "")
	w.set(w.weekend.StartsAt().Add(time.Minute))
	w.build("lights out")
	w.runs(24)
	w.build("the race goes on")
	look("the race runs", "race")
	w.set(w.weekend.ResultKnownAt())
	w.build("settled")
	look("a result waits", "waiting")
	sources[0].Problem = "F1DB answered 502"
	sources[1].State = &ingest.PollState{Source: "jolpica", Terms: ingest.Terms{Licence: "CC BY-NC-SA 4.0"}, LastPoll: ingest.LastPoll{Answered: w.now()}, Judgement: ingest.Judgement{Held: []assemble.Proposal{{
		ID: "c1", Year: 2024, GrandPrix: "las-vegas", Block: assemble.Grid, Source: "jolpica", Refused: []assemble.Refusal{{Gate: "positions", Reason: "the results have P2 twice"}},
		Lines: []assemble.Line{{About: "lewis-hamilton", Was: "P2", Is: "P3"}, {About: "carlos-sainz-jr", Was: "P3", Is: "P2"}},
	}}}}
	look("a source fails, a change is held", "waiting sources")
	sources = sources[1:]
	sources[0].State = nil
	w.set(w.round(2024023).Start.Add(w.weekend.ResultKnownAt().Sub(w.weekend.StartsAt())))
	w.build("settled")
	look("an older result waits in a race without a pick", "race waiting control")

	// A link opens the section that it names, also a second time.
	b.Phone()
	b.Do(chromedp.Navigate(w.console.URL), browsertest.Visible(chromedp.CSS(`#served`)))
	for range 2 {
		b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#keys > .fold").open = false`), browsertest.Press(chromedp.CSS(`.places a[href='#keys']`)))
		b.Await(`document.querySelector("#keys > .fold").open`, "true")
	}
	// What becomes due opens its section, and a section that a person has opened stays open and is refreshed.
	b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#sources > .fold").open = false`))
	sources[0].Problem = "Jolpica answered 401"
	b.Await(`document.querySelector("#sources").innerHTML.includes("answered 401")`, "true")
	b.Await(`document.querySelector("#keys > .fold").open`, "true")
	if got := b.Text(".release"); got != "gridcast v4.5.6" {
		t.Errorf("the footer says %q, want the release", got)
	}
}
