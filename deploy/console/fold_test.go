package console_test

import (
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
)

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
