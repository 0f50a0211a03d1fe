package console_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
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
	must.Long(t, "a browser takes half a minute")
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

// TestActionsOnAPhone fills in forms of each kind with a phone: with and without a question, with a fault, with a file, and with
// a secret as the answer. The outcome must appear beside the form.
func TestActionsOnAPhone(t *testing.T) {
	must.Long(t, "a browser takes half a minute")
	w := newWorld(t)
	w.build("start")
	b := browsertest.Open(t)
	b.Phone()
	w.signIn(b)
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
	for _, tt := range []struct {
		name, form string
		fields     []string
		asks       bool
		state      string // of the panel
	}{
		{"move", "/rounds/2024023/move", []string{"start", "2020-01-01T12:00", "reason", "a typing error"}, false, "failed"},
		{"calendar-file", "/calendar", []string{"file", organiser, "reason", "the organiser sent a file"}, true, "done"},
		{"prune", "/prune", []string{"keep", "1"}, false, "done"},
		{"key", "/keys", []string{"client", "Betting House"}, false, "done"},
		{"webhook-add", "/webhooks", []string{"url", "https://receiver.example/hook", "reason", "contract 7"}, true, "done"},
	} {
		form := `form[action='` + tt.form + `']`
		b.Do(chromedp.Evaluate[chromedp.Void](`for (let e = document.querySelector("` + form + `").closest("details"); e; e = e.parentElement.closest("details")) e.open = true`))
		for i := 0; i < len(tt.fields); i += 2 {
			selector := form + ` [name=` + tt.fields[i] + `]`
			if tt.fields[i] == "file" {
				b.Do(chromedp.SendKeys(chromedp.CSS(selector), tt.fields[i+1]))
				continue
			}
			b.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector("%s").value = %q`, selector, tt.fields[i+1])))
		}
		b.Look(tt.name + "-form")
		b.Do(browsertest.Press(chromedp.CSS(form + ` button:not([type=button])`)))
		if tt.asks {
			b.Do(browsertest.Visible(chromedp.CSS(`#ask[open]`)))
			b.Look(tt.name + "-asked")
			b.Do(browsertest.Press(chromedp.CSS(`#ask button[value=yes]`)))
		}
		b.Do(browsertest.Visible(chromedp.CSS(`#run[data-state=done], #run[data-state=failed]`)))
		b.Look(tt.name + "-done")
		says(t, "on a phone: "+tt.name, b.Text("#run-text"))
		// A form that is done with may be gone; one with a fault must be there, with the fault beside it.
		b.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
			const panel = document.getElementById("run"), box = panel.getBoundingClientRect(), form = document.querySelector("%s");
			if (panel.dataset.state !== %q) throw new Error("the panel is in the state " + panel.dataset.state + ": " + panel.innerText);
			if (panel.dataset.state === "failed" && !form) throw new Error("the form is gone");
			if (form && panel.closest("section").parentElement.closest("section") !== form.closest("section")) throw new Error("the panel is not where the form is");
			if (box.top <= -1 || box.bottom >= innerHeight + 1) throw new Error("the panel is out of sight: from " + box.top + " to " + box.bottom + " of " + innerHeight);
			if (document.activeElement !== panel) throw new Error("the focus is at " + document.activeElement.outerHTML.slice(0, 200));
		})()`, form, tt.state)))
		if tt.name == "key" {
			secretStays(t, w, b)
		}
		b.Do(chromedp.Navigate(w.console.URL), browsertest.Visible(chromedp.CSS(`#served`)))
	}
	// A file is not a field of a text, so the server must have read it.
	must.Show(t, "the audit log", strings.Join(w.audit(), "\n"), "|import_calendar|organiser.ics ")
	must.Equal(t, "start after the file was sent", time.Date(2024, 12, 1, 18, 30, 0, 0, time.UTC), w.round(2024023).Start.UTC())
	must.Do(t, webhook.Update(t.Context(), w.store, func(hooks *[]webhook.Hook) error {
		(*hooks)[0].Pause("nothing was taken since 19 November 2026 08:00 UTC, 10 attempts: answered 502", true)
		return nil
	}))
	b.Do(chromedp.Navigate(w.console.URL), chromedp.ScrollIntoView(chromedp.CSS(`#webhooks`)))
	b.Look("webhook-given-up")
	b.Picture("webhooks")
	says(t, "on a phone: notices", b.Text("#notices"))
}

// On a phone the page of a race Sunday is at most four screens high. Sections with nothing due are folded, and the
// keyboard opens each of them. A wide window shows all sections.
func TestFoldsOnAPhone(t *testing.T) {
	must.Long(t, "a browser takes half a minute")
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
		b.Do(chromedp.Evaluate[chromedp.Void](`for (const fold of document.querySelectorAll(".fold")) fold.open = true`))
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

	// The keyboard opens each fold. The folds within a section follow it in the page.
	b.Phone()
	b.Do(chromedp.Navigate(w.console.URL), browsertest.Visible(chromedp.CSS(`#served`)))
	const closed = `document.querySelectorAll(".fold:not([open])").length`
	for range must.Get(strconv.Atoi(b.Evaluate(closed)))(t) {
		b.Do(browsertest.Press(chromedp.CSS(`.fold:not([open]) > summary`)))
	}
	must.Equal(t, "folds that the keyboard does not open", "0", b.Evaluate(closed))
	// A link opens the section that it names, also a second time.
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

// secretStays has the page take up a new list of keys: the secret beside it, which nobody can read a
// second time, is selected as before, in the window, and has the focus.
func secretStays(t *testing.T, w *world, b *browsertest.Browser) {
	t.Helper()
	secret := b.Text("#run .secret")
	must.Hold(t, strings.HasPrefix(secret, keys.Prefix), "the secret is %q", secret)
	name := "Listed beside " + secret[len(secret)-4:]
	must.Do(t, keys.Update(t.Context(), w.store, func(d *keys.List) error {
		_, _, err := d.Create(keys.Request{Name: name, Tier: "trial"}, w.now())
		return err
	}))
	b.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(async () => {
		getSelection().selectAllChildren(document.querySelector("#run .secret"));
		await refresh();
		const panel = document.getElementById("run"), box = panel.getBoundingClientRect();
		if (!document.getElementById("keys").innerText.includes(%q)) throw new Error("the list is the old one");
		if (getSelection().toString().trim() !== %q) throw new Error("what is selected is " + getSelection());
		if (document.activeElement !== panel) throw new Error("the focus is at " + document.activeElement.outerHTML.slice(0, 200));
		if (box.top <= -1 || box.bottom >= innerHeight + 1) throw new Error("the panel is out of sight");
	})()`, name, secret), chromedp.EvalAwaitPromise))
}
