package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/sourcetest"
	"gridcast/builder/testseason"
	"gridcast/deploy/console"
	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
	"gridcast/scheduler"
)

// TestStates goes through a weekend as an operator sees it, and keeps a picture of every state.
func TestStates(t *testing.T) {
	must.Long(t, "the pictures take half a minute")
	var sources []operator.Source
	w := newWorld(t, func(c *console.Config) {
		c.Sources = func() []operator.Source { return sources }
		c.EdgesWait = 2 * time.Second
		c.Edges = append(c.Edges, console.Remote("127.0.0.1:9"))
	})
	sources = []operator.Source{{Name: "archive", Detail: "F1DB v2025.0.0, CC BY 4.0", Checked: w.now()}}
	b := browsertest.Open(t)

	b.Do(chromedp.Navigate(w.console.URL), browsertest.Visible(chromedp.CSS(`input[name=token]`)))
	b.Look("01-sign-in")
	b.Do(
		chromedp.SendKeys(chromedp.CSS(`input[name=name]`), "anna"), browsertest.Type(chromedp.CSS(`input[name=token]`), "not the token at all"),
		chromedp.Submit(chromedp.CSS(`input[name=token]`)), browsertest.Visible(chromedp.CSS(`.problem`)),
	)
	b.Picture("02-wrong-token")
	b.Do(browsertest.Type(chromedp.CSS(`input[name=token]`), token), chromedp.Submit(chromedp.CSS(`input[name=token]`)), browsertest.Visible(chromedp.CSS(`#served`)))
	b.Look("03-nothing-published")

	w.build("start")
	see := func(state, selector string) {
		t.Helper()
		b.Do(chromedp.Navigate(w.console.URL), browsertest.Visible(chromedp.CSS(`#served`)))
		says(t, "state "+state, b.Text(selector))
		b.Look(state)
	}
	see("04-before-qualifying", "#next")
	w.set(w.weekend.GridKnownAt())
	w.build("grid_known 2024022")
	see("05-pick-frozen", "#next")
	w.set(w.weekend.StartsAt().Add(time.Minute))
	w.build("lights_out 2024022")
	see("06-live", "#waiting")
	w.runs(24)
	w.build("the race goes on")
	b.Do(chromedp.Navigate(w.console.URL+"/race"), browsertest.Visible(chromedp.CSS(`#race polyline`)))
	says(t, "the running race", b.Evaluate(`[...document.querySelectorAll("#race > .fold > p")].map((p) => p.innerText).join(" ")`))
	b.Picture("06-race")
	b.Do(chromedp.SendKeys(chromedp.CSS(`.by-hand input[name=order]`), "HAM RSU"), browsertest.Press(chromedp.CSS(`.by-hand button`)))
	b.Do(browsertest.Visible(chromedp.CSS(`#run[data-state=failed]`)), chromedp.Evaluate[chromedp.Void](`(async () => {
		document.querySelector("#race .big").textContent = "an earlier lap";
		await refresh();
		if (document.querySelector("#race .big").textContent === "an earlier lap") throw new Error("the section is not refreshed");
	})()`, chromedp.EvalAwaitPromise))
	if got := b.Value(`.by-hand input[name=order]`); got != "HAM RSU" {
		t.Errorf("after a typing error and a refresh the order is %q, want HAM RSU", got)
	}
	b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".by-hand input[name=order]").value = ""`))
	b.Do(chromedp.SendKeys(chromedp.CSS(`.by-hand input[name=order]`), "HAM RUS"), browsertest.Press(chromedp.CSS(`.by-hand button`)))
	b.Do(browsertest.Visible(chromedp.CSS(`#run[data-state=done]`)))
	says(t, "the running race by hand", race(w.asOperator(http.MethodGet, "/race", nil).body))
	sources = sources[:1]
	w.set(w.weekend.ResultKnownAt())
	w.build("settled")
	see("07-result-waits", "#waiting")

	b.Do(browsertest.Press(chromedp.CSS(`#waiting button`)), browsertest.Visible(chromedp.CSS(`#ask[open]`)))
	says(t, "before the verification", b.Text("#ask"))
	b.Picture("07-asked")
	b.Do(browsertest.Press(chromedp.CSS(`#ask button[value=yes]`)), browsertest.Visible(chromedp.CSS(`#run[data-state=done], #run[data-state=failed]`)))
	says(t, "after the verification", b.Text("#run")) // served by one edge and not by the other
	b.Picture("08-verified")
	b.Do(browsertest.Visible(`//section[@id="waiting"]//p[contains(., "No result waits")]`))
	see("09-after", "#season")

	b.Do(
		browsertest.Press(`//tr[td/a[.="3"]]//summary`), browsertest.Type(`//tr[td/a[.="3"]]//input`, "wrong result"),
	)
	b.Look("10-about-to-roll-back")
	b.Do(browsertest.Press(`//tr[td/a[.="3"]]//button[contains(., "Roll back")]`), browsertest.Visible(chromedp.CSS(`#ask[open]`)))
	b.Do(browsertest.Press(chromedp.CSS(`#ask button[value=yes]`)), browsertest.Visible(chromedp.CSS(`#run[data-state=done]`)))
	see("11-held", "#notices")

	b.Do(browsertest.Type(chromedp.CSS(`#rebuild input`), "try all the same"), browsertest.Press(chromedp.CSS(`#rebuild button`)), browsertest.Visible(chromedp.CSS(`#run[data-state=failed]`)))
	says(t, "state 12-refused", b.Text("#run-text"))
	if got := b.Value("#rebuild input"); got != "try all the same" {
		t.Errorf("after a failed run the form has %q, want its fields as typed", got)
	}
	b.Picture("12-refused")

	b.Do(browsertest.Press(chromedp.CSS(`#keys > .fold > details > summary`)), browsertest.Type(chromedp.CSS(`input[name=client]`), "Betting House"),
		browsertest.Press(chromedp.CSS(`#keys > .fold > details button`)), browsertest.Visible(chromedp.CSS(`#run .secret`)))
	if got := b.Text("#run .secret"); !strings.HasPrefix(got, "gc_live_") {
		t.Errorf("new key: got %q", got)
	}
	b.Picture("13-new-key")

	w.mu.Lock()
	w.jobs = append([]scheduler.JobStatus(nil), w.jobs...)
	w.jobs[2].LastError, w.jobs[2].Failures = "source f1db: GET https://example.org/: 503 Service Unavailable", 3
	w.mu.Unlock()
	sources = append(sources, operator.Source{Name: "jolpica", Detail: "results", Checked: w.now(), Problem: "503 Service Unavailable"})
	w.set(w.now().Add(10 * 24 * time.Hour))
	see("14-everything-wrong", "#notices")
	b.Picture("14-everything-wrong")

	b.Do(chromedp.Navigate(w.console.URL+"/versions/4"), browsertest.Visible(chromedp.CSS(`h1`)))
	b.Picture("15-what-changed")
	b.Do(chromedp.Navigate(w.console.URL+"/versions/99"), browsertest.Visible(chromedp.CSS(`.problem`)))
	b.Picture("16-no-such-version")
	w.console.CloseClientConnections()
}

// mostBytes limits the console's page, so that a phone on a poor line loads it in a few seconds.
const mostBytes = 150 << 10

// The console's page shows one season, however many the archive has.
func TestPageIsSmall(t *testing.T) {
	const oldest = "1950"
	a, _ := must.Get2(f1db.Import(sourcetest.Path(t, sourcetest.F1DB2026), f1db.Options{}))(t)
	w := newWorld(t)
	stored := archivetest.Put(t, archive.NewStore(w.store), archivetest.Stored(t, a.Facts()))
	w.set(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	must.Get(testseason.Fresh(t, w.builder.Ledger).Append(t.Context(), w.now(), "test", func(s *ledger.Fold) ([]ledger.Event, error) {
		keys, err := ledger.AssignKeys(s, stored.Archive.Facts().Seasons)
		return []ledger.Event{{Type: ledger.KeysAssigned, Keys: keys}}, err
	}))(t)
	for path, year := range map[string]string{"/": "2026", "/?season=" + oldest: oldest, "/?season=2024": "2024"} {
		page := w.asOperator("GET", path, nil, "Accept: text/html").body
		must.Hold(t, len(page) <= mostBytes, "the page %s has %d bytes, want at most %d", path, len(page), mostBytes)
		for _, want := range []string{"<h2>Picks of " + year + "</h2>", `<a href="/?season=` + oldest + `#season"`} {
			must.Equal(t, path+" has "+want, 1, strings.Count(page, want))
		}
	}
}

// Without scripts the page of an action on a round leads back to the season of the round.
func TestBackToTheSeason(t *testing.T) {
	w := newWorld(t)
	const browser, correct = "Accept: text/html", "/results/2024001/correct"
	form := url.Values{"order": {"VER PER SAI LEC RUS NOR HAM PIA ALO STR"}, "reason": {"document 42"}}
	asked := w.asOperator("POST", correct, form, browser).body
	const back = `<a href="/?season=2024#season">`
	must.Equal(t, "links of the question to the season", 1, strings.Count(asked, back))
	_, seen, _ := strings.Cut(asked, `name="seen" value="`)
	seen, _, _ = strings.Cut(seen, `"`)
	form.Set("seen", seen)
	form.Set("confirm", "yes")
	run := w.asOperator("GET", w.asOperator("POST", correct, form, browser).Header.Get("Location"), nil, browser).body
	must.Equal(t, "links of the run to the season", 1, strings.Count(run, back))
}

// An operator opens an earlier season, acts on one of its rounds, and stays at that season.
func TestSeasonsInABrowser(t *testing.T) {
	must.Long(t, "a browser takes half a minute")
	w := newWorld(t, func(c *console.Config) { c.EdgesWait = time.Minute })
	w.set(time.Date(2025, 2, 1, 12, 0, 0, 0, time.UTC))
	w.build("a winter later")
	b := browsertest.Open(t)
	w.signIn(b)
	if title := b.Text("#season h2"); title != "Picks of 2025" {
		t.Errorf("the console begins with %q, want the current season", title)
	}
	b.Do(browsertest.Press(chromedp.CSS(`#season > .fold > details > summary`)))
	b.Picture("30-seasons")
	b.Do(browsertest.Press(chromedp.CSS(`#season a[href*="2024"]`)), browsertest.Visible(chromedp.CSS(`#season [action='/results/2024001/correct'], #season .round`)))
	b.Await(`document.querySelector("#season h2").textContent`, "Picks of 2024")
	b.Phone()
	b.Await(`document.documentElement.scrollWidth <= innerWidth`, "true")
	const form = `#season form[action='/results/2024001/correct']`
	b.Do(chromedp.Evaluate[chromedp.Void](`for (let e = document.querySelector("`+form+`").closest("details"); e; e = e.parentElement.closest("details")) e.open = true`),
		browsertest.Type(chromedp.CSS(form+` [name=reason]`), "document 42"))
	b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("` + form + ` [name=order]").value = "VER PER SAI LEC RUS NOR HAM PIA ALO STR"`))
	b.Do(browsertest.Press(chromedp.CSS(form+` button:not([type=button])`)), browsertest.Visible(chromedp.CSS(`#ask[open]`)))
	b.Do(browsertest.Press(chromedp.CSS(`#ask button[value=yes]`)), browsertest.Visible(chromedp.CSS(`#run[data-state=done]`)))
	b.Look("31-season-corrected")
	b.Await(`document.querySelector("#season h2").textContent + document.querySelectorAll("#season .seasons [aria-current]").length`, "Picks of 20241")
	b.Axe("31-season-corrected")
}

// runs stores the laps of the weekend's race up to one, in the order of its result with another leader every tenth lap.
func (w *world) runs(laps int) {
	w.t.Helper()
	w.set(w.weekend.StartsAt().Add(time.Duration(laps) * 95 * time.Second))
	log := live.Log{Store: w.store}
	for lap := 1; lap <= laps; lap++ {
		at := w.weekend.StartsAt().Add(time.Duration(lap) * 95 * time.Second)
		o := live.Observation{Session: 2024022, At: at, Received: at, Source: "timing", Lap: lap, Laps: 50}
		for i, row := range w.weekend.Results {
			gap := i * (300 + 40*lap)
			o.Cars = append(o.Cars, live.Car{Driver: row.Driver, GapMS: &gap})
		}
		if lap/10%2 == 1 {
			o.Cars[0].Driver, o.Cars[2].Driver = o.Cars[2].Driver, o.Cars[0].Driver
		}
		must.Get2(log.Append(w.t.Context(), live.Fixture{}, o))(w.t)
	}
}
