package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gridcast/deploy/console"
	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/operator"
	"gridcast/scheduler"
)

// TestStates goes through a weekend as an operator sees it, and keeps a picture of every state.
func TestStates(t *testing.T) {
	if testing.Short() {
		t.Skip("short: the pictures take half a minute")
	}
	var sources []operator.Source
	w := newWorld(t, func(c *console.Config) {
		c.Sources = func() []operator.Source { return sources }
		c.EdgesWait = 2 * time.Second
		c.Edges = append(c.Edges, console.Remote("127.0.0.1:9"))
	})
	sources = []operator.Source{{Name: "archive", Detail: "F1DB v2025.0.0, CC BY 4.0", Checked: w.now()}}
	b := browsertest.Open(t)

	b.Do(chromedp.Navigate(w.console.URL), browsertest.Visible(chromedp.CSS(`input[name=token]`)))
	b.Picture("01-sign-in")
	b.Do(
		chromedp.SendKeys(chromedp.CSS(`input[name=name]`), "anna"), browsertest.Type(chromedp.CSS(`input[name=token]`), "not the token at all"),
		chromedp.Submit(chromedp.CSS(`input[name=token]`)), browsertest.Visible(chromedp.CSS(`.problem`)),
	)
	b.Picture("02-wrong-token")
	b.Do(browsertest.Type(chromedp.CSS(`input[name=token]`), token), chromedp.Submit(chromedp.CSS(`input[name=token]`)), browsertest.Visible(chromedp.CSS(`#served`)))
	b.Picture("03-nothing-published")

	w.build("start")
	see := func(state, selector string) {
		t.Helper()
		b.Do(chromedp.Navigate(w.console.URL), browsertest.Visible(chromedp.CSS(`#served`)))
		says(t, "state "+state, b.Text(selector))
		b.Picture(state)
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
	says(t, "the running race by hand", section(w.asOperator(http.MethodGet, "/race", nil).body, "race"))
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
	b.Picture("10-about-to-roll-back")
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

	b.Do(chromedp.Navigate(w.console.URL+"/versions/4"), browsertest.Visible(chromedp.CSS(`h1`)))
	b.Picture("15-what-changed")
	b.Do(chromedp.Navigate(w.console.URL+"/versions/99"), browsertest.Visible(chromedp.CSS(`.problem`)))
	b.Picture("16-no-such-version")
	w.console.CloseClientConnections()
}
