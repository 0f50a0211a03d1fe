package main

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/must"
	"gridcast/schemas/wire"
)

// awaitDerived waits until title odds and track record, which are made after the first version,
// are served.
func awaitDerived(t testing.TB, c *client) {
	t.Helper()
	must.Until(t, "the track record is served", func() bool {
		return c.do(t, http.MethodGet, "/api/v1/track-record", nil).status == http.StatusOK
	})
}

// recordAndOdds reads the track record and the title odds, which follow in the version after, and checks
// the plot that the documentation draws of them.
func recordAndOdds(t *testing.T, d demo) {
	t.Parallel() // a browser waits as much as it works
	c := newClient(d.url, d.keys["pro"])
	awaitDerived(t, c)
	record := data[wire.TrackRecord](t, c.get(t, "/track-record"))
	if record.Hindsight.Races < 60 || record.Real.Races < 20 || record.Real.RacesWithChances != record.Real.Races {
		t.Errorf("got %d races in hindsight and %d real ones, %d with chances", record.Hindsight.Races, record.Real.Races, record.Real.RacesWithChances)
	}
	accuracy := data[wire.Accuracy](t, c.get(t, "/accuracy"))
	if got, want := record.Real.Picks.WinnerHitPct.Value, accuracy.PreRace.WinnerHitRatePct; got != want || record.Real.Races != accuracy.RacesEvaluated {
		t.Errorf("the record says %v over %d races, the accuracy %v over %d", got, record.Real.Races, want, accuracy.RacesEvaluated)
	}
	odds := data[wire.TitleOdds](t, c.get(t, "/title-odds"))
	must.Hold(t, odds.RacesCounted == 21 && odds.RacesRemaining == 3 && odds.Drivers[0].Driver == "VER" && odds.Drivers[0].TitlePct >= 900, "before Las Vegas 2024: got %+v", odds)
	chances := data[[]wire.ProbabilityRecord](t, c.get(t, "/probabilities?year=2024"))
	must.Hold(t, len(chances) >= 20 && chances[0].Basis == "grid" && len(chances[0].Drivers) == 20, "got %d frozen distributions of 2024", len(chances))
	t.Run("plot", func(t *testing.T) {
		b := browsertest.Open(t)
		b.Do(
			chromedp.Navigate(d.url+"/docs/track-record"), chromedp.WaitVisible(chromedp.CSS(`#find`)),
			chromedp.SendKeys(chromedp.CSS(`#try-key`), d.keys["pro"]),
			browsertest.Press(chromedp.CSS(`#record-draw`)), chromedp.WaitVisible(chromedp.CSS(`#record svg`)),
			chromedp.ScrollIntoView(chromedp.CSS(`#record`)),
		)
		b.Picture("docs")
		b.Evaluate(`(document.getElementById("search").value = "frozen void", document.getElementById("search").dispatchEvent(new Event("input")), "")`)
		b.Await(`[...document.querySelectorAll("#hits a")].some((a) => a.pathname === "/docs/picks" && a.querySelector("mark"))`, "true")
		b.Await(`[...document.querySelectorAll("#hits a")].some((a) => a.pathname === "/docs/standings")`, "false")
		b.Evaluate(`(document.querySelector('#hits a[href^="/docs/picks"]').click(), "")`)
		b.Await(`location.pathname + " " + (CSS.highlights.get("hit")?.size > 2)`, "/docs/picks true")
		b.Do(chromedp.Navigate(d.url + "/docs#limits"))
		b.Await(`location.pathname + location.hash`, "/docs/keys#limits")
		b.Do(chromedp.Navigate(d.url + "/docs#results"))
		b.Await(`location.pathname`, "/docs/results")
		shown := `[...document.querySelectorAll("[data-language]")].filter((p) => p.checkVisibility()).map((p) => p.dataset.language).join()`
		b.Await(shown, "curl")
		b.Evaluate(`(document.querySelector("[name=language][value=Python]").click(), "")`)
		b.Await(shown, "Python")
		b.Do(chromedp.Navigate(d.url + "/docs"))
		b.Await(shown, "Python")
		b.Look("samples")
	})
	t.Run("start page", func(t *testing.T) {
		r := must.Get(http.Get(d.url + "/"))(t)
		page, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		must.Hold(t, err == nil && len(page) <= 60_000, "the start page has %d bytes (%v), want at most 60000", len(page), err)
		b := browsertest.Open(t)
		b.Do(chromedp.Navigate(d.url + "/"))
		b.Await(`[...document.querySelectorAll("gridcast-forecast, gridcast-progress, gridcast-odds, gridcast-record")].map((e) => e.localName + " " + e.getAttribute("state")).join()`,
			"gridcast-forecast ready,gridcast-progress ready,gridcast-odds ready,gridcast-record ready")
		b.Await(`document.querySelector("gridcast-odds").shadowRoot.querySelectorAll("polyline").length > 1`, "true")
		b.Await(`document.querySelector("gridcast-next").getAttribute("state")`, "counting")
		b.Picture("start")
		b.Evaluate(fmt.Sprintf(`(document.querySelector("main").innerHTML = "<gridcast-progress key=%s type=constructors year=2023></gridcast-progress>", "")`, d.keys["pro"]))
		b.Await(`document.querySelector("gridcast-progress").shadowRoot.querySelector("svg")?.getAttribute("aria-label").split(",")[0]`, "Points after round 22: Red Bull 860")
		// A chart asks again after the time of Retry-After.
		b.Evaluate(`(window.asked = 0, window.fetch = async () => asked++ ? new Response('{"ok":true,"data":[]}') :
			new Response('{"ok":false,"message":"no version"}', { status: 503, headers: { "Retry-After": "1" } }),
			document.querySelector("main").innerHTML = "<gridcast-progress></gridcast-progress>", "")`)
		b.Await(`document.querySelector("gridcast-progress").getAttribute("state") + asked`, "none2")
		// The lines of the odds end with the odds as they are now, however much those of the last round differ.
		for remaining, want := range []string{"after round 3: NOR 100 %", "after round 2: NOR 60 %"} {
			odds := fmt.Sprintf(`{"races_counted":%d,"races_remaining":%d,"drivers":[{"driver":"NOR","title_pct":%d}],`, 3-remaining, remaining, 100-40*remaining) +
				`"after_rounds":[{"drivers":[{"driver":"NOR","title_pct":20}]},{"drivers":[{"driver":"NOR","title_pct":50}]}]}`
			b.Evaluate(fmt.Sprintf(`(document.querySelector("main").innerHTML = '<gridcast-odds><script type="application/json">%s</script></gridcast-odds>', "")`, odds))
			b.Await(`document.querySelector("gridcast-odds").shadowRoot.querySelector("svg")?.getAttribute("aria-label")`, "Chances of the title "+want)
		}
	})
	t.Run("proxy", func(t *testing.T) { proxied(t, d.url, d.keys["standard"]) })
	t.Run("samples", func(t *testing.T) { runSamples(t, d.url, d.keys["standard"]) })
}
