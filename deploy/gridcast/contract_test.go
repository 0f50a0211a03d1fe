package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/season"
	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/must"
	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// demo is a running demonstration: a weekend of 2024 replayed on the embedded seasons.
type demo struct {
	*process
	keys map[string]string // by tier
}

var bannerKey = regexp.MustCompile(`(?m)^  (trial|standard|pro|sandbox) +\d+  (gc_(?:live|test)_\w+)$`)

func startDemo(t testing.TB, speed string, args ...string) demo {
	t.Helper()
	d := demo{startServer(t, t.TempDir(), append([]string{"serve", "--demo", "--demo-speed", speed}, args...)...), map[string]string{}}
	d.await(t, func() bool {
		for _, m := range bannerKey.FindAllStringSubmatch(d.output.String(), -1) {
			d.keys[m[1]] = m[2]
		}
		return len(d.keys) == 4
	})
	return d
}

// TestAtSpeedOne asks one demonstration everything that it can answer, because a demonstration takes a
// dozen seconds of CPU time to start. At speed one its weekend stays before qualifying.
func TestAtSpeedOne(t *testing.T) {
	t.Parallel() // most of it waits
	// The first season has no hours and, with nine races, no picks.
	facts := archivetest.Seasons(t, 2007, 2025)
	facts.Seasons = slices.DeleteFunc(facts.Seasons, func(s season.Season) bool { return s.Year > 2007 && s.Year < 2021 })
	facts.Seasons[0].Rounds = facts.Seasons[0].Rounds[:9]
	d := startDemo(t, "1", "--archive", archiveFile(t, facts))
	if timetable := regexp.MustCompile(`(?m)^  2024-11-2\d \d\d:\d\d UTC  in `).FindAllString(d.output.String(), -1); len(timetable) < 3 {
		t.Errorf("the banner has no timetable of the weekend:\n%s", d.output.String())
	}
	awaitDerived(t, newClient(d.url, d.keys["pro"]))
	// The contract counts requests and spends the limits of the keys, so no other test asks meanwhile.
	t.Run("contract", func(t *testing.T) { contract(t, d) })
	keys := map[string]string{}
	for _, tier := range []string{"standard", "pro"} {
		keys[tier] = newKey(t, d.cmd.Dir, "dir:.var/demo", tier)
	}
	d.keys = keys
	t.Run("record and odds", func(t *testing.T) { recordAndOdds(t, d) })
	t.Run("widget", func(t *testing.T) { widgetElsewhere(t, d) })
}

// contract checks the real binary against the contract, in one process with the scheduler and as an edge of its own.
// Both serve the versions of one demonstration, with the same keys.
func contract(t *testing.T, whole demo) {
	alone := demo{startServer(t, whole.cmd.Dir, "edge", "--store", "dir:.var/demo", "--now", statusOf(t, whole.url).RaceTime), whole.keys}
	for name, d := range map[string]demo{"serve": whole, "edge": alone} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // so that the two wait for the window of a limit together
			walkContract(t, d)
			if name == "edge" { // which serves with the same code
				everyVariant(t, d)
			}
		})
	}
}

// walkContract checks the contract over the network: each endpoint, and one decision about keys and one about HTTP. TestExchanges
// of the edge has all of these. Rows that spend a limit come last.
func walkContract(t *testing.T, d demo) {
	c, anonymous := newClient(d.url, d.keys["pro"]), newClient(d.url, "")

	etag := c.get(t, "/standings?year=2023").header.Get("ETag")
	must.Require(t, regexp.MustCompile(`^"[0-9a-f]{32}"$`).MatchString(etag), "entity tag %s is not a strong tag of 32 hexadecimal digits", etag)

	rows := []struct {
		paragraph, decision string
		client              *client
		method, target      string
		header              http.Header
		want                want
	}{
		{"endpoints", "standings default to drivers of the current season", c, "GET", "/standings", nil, want{status: 200, data: same(c, "/standings?type=drivers&year=2024")}},
		{"endpoints", "constructors' standings", c, "GET", "/standings?type=constructors&year=2024", nil, want{status: 200, data: first(func(s wire.ConstructorStanding) any { return s.Team }, "McLaren")}},
		{"endpoints", "the calendar of a season that is over names every winner", c, "GET", "/calendar?year=2007", nil, want{status: 200, data: first(func(e wire.CalendarEntry) any { return []any{e.Winner, e.Status, e.SessionKey} }, []any{"RAI", wire.Finished, int64(2007001)})}},
		{"endpoints", "a round of unknown hour has a date and no start", c, "GET", "/calendar?year=2007", nil, want{status: 200, data: first(func(e wire.CalendarEntry) any { return []any{e.Date, e.DateStart.IsZero()} }, []any{"2007-03-18", true})}},
		{"endpoints", "a round of known hour has its start", c, "GET", "/calendar?year=2024", nil, want{status: 200, data: first(func(e wire.CalendarEntry) any { return e.DateStart.String() }, "2024-03-02T15:00:00+00:00")}},
		{"endpoints", "the grid has twenty drivers", c, "GET", "/drivers", nil, want{status: 200, data: count[wire.Driver](20)}},
		{"endpoints", "predictions of a replayed season", c, "GET", "/predictions?year=2023", nil, want{status: 200, data: count[wire.PredictionRecord](22)}},
		{"endpoints", "next-race counts down", c, "GET", "/next-race", nil, want{status: 200, data: countsDown}},
		{"endpoints", "accuracy over all seasons and over one", c, "GET", "/accuracy?year=2023", nil, want{status: 200, data: func(t *testing.T, a answer) {
			all, one := data[wire.Accuracy](t, c.get(t, "/accuracy")), data[wire.Accuracy](t, a)
			must.Hold(t, one.RacesEvaluated == 22 && all.RacesEvaluated > one.RacesEvaluated, "evaluated %d races of 2023 and %d in all, want 22 and more", one.RacesEvaluated, all.RacesEvaluated)
		}}},
		{"endpoints", "a season without picks has accuracy 0 over 0 races", c, "GET", "/accuracy?year=2007", nil, want{status: 200, data: func(t *testing.T, a answer) {
			must.Hold(t, bytes.Contains(a.body, []byte(`"races_evaluated":0,"pre_race":{"winner_hit_rate_pct":0.0,"podium_accuracy_pct":0.0}`)), "got %s", a.body)
		}}},

		{"keys", "no key", anonymous, "GET", "/drivers", nil, want{status: 401, code: wire.Unauthorized, header: map[string]string{"WWW-Authenticate": `Bearer realm="gridcast"`, "X-RateLimit-Limit": "30", "Cache-Control": "no-store"}}},
		{"http", "the tag of this content is not modified", c, "GET", "/standings?year=2023", http.Header{"If-None-Match": {etag}}, want{status: 304, header: map[string]string{"ETag": etag}}},
	}
	for _, row := range rows {
		t.Run(row.paragraph+": "+row.decision, func(t *testing.T) {
			a := row.client.do(t, row.method, "/api/v1"+row.target, row.header)
			a.holds(t, row.want)
		})
	}
	t.Run("service: no key outside the API", func(t *testing.T) {
		for _, path := range []string{"/healthz", "/readyz", "/status", "/openapi.json", "/openapi.yaml", "/docs"} {
			a := anonymous.do(t, "GET", path, nil)
			must.Hold(t, a.status == 200 && len(a.body) != 0, "GET %s: got status %d and %d bytes, want 200 with a body", path, a.status, len(a.body))
			again := anonymous.do(t, "GET", path, nil)
			must.Equal(t, "GET "+path+": X-RateLimit-Remaining, which only a counted answer has", "", a.header.Get("X-Ratelimit-Remaining")+again.header.Get("X-Ratelimit-Remaining"))
		}
		if a := anonymous.do(t, "GET", "/status", nil); schemas.ValidateBody("/status", a.body) != nil || !bytes.Contains(a.body, []byte(`"kind":"simulated"`)) {
			t.Errorf("/status: %v\n%s", schemas.ValidateBody("/status", a.body), a.body)
		}
	})
	t.Run("limits: a window of requests, then 429 until it ends", func(t *testing.T) { spendLimit(t, newClient(d.url, d.keys["trial"]), 30) })
}

// spendLimit sends one request more than a window allows. If the window ends meanwhile, it begins again
// in the next one.
func spendLimit(t *testing.T, c *client, limit int) {
	var a answer
	window := ""
	for remaining := limit - 1; remaining >= -1; remaining-- {
		a = c.do(t, "GET", "/api/v1/drivers", nil)
		if reset := a.header.Get("X-Ratelimit-Reset"); reset != window {
			window, remaining = reset, limit-1
		}
		if got := a.header.Get("X-Ratelimit-Remaining"); remaining >= 0 && (a.status != 200 || got != strconv.Itoa(remaining)) {
			t.Fatalf("request %d: got status %d with %s remaining, want 200 with %d", limit-remaining, a.status, got, remaining)
		}
	}
	a.holds(t, want{status: 429, code: wire.RateLimited, header: map[string]string{"X-RateLimit-Remaining": "0"}})
	retry, err := strconv.ParseInt(a.header.Get("Retry-After"), 10, 64)
	if err != nil || retry < 1 || retry > 60 {
		t.Errorf("Retry-After: got %q, want 1 to 60 seconds", a.header.Get("Retry-After"))
	}
	if a = c.do(t, "OPTIONS", "/api/v1/drivers", http.Header{"Access-Control-Request-Method": {"GET"}}); a.status != 204 {
		t.Errorf("preflight over the limit: got %d, want 204", a.status)
	}
}

// everyVariant reads every parameter value of every endpoint, with the keys of all tiers in turn so that
// no limit is met.
func everyVariant(t *testing.T, d demo) {
	t.Helper()
	c := newClient(d.url, d.keys["standard"])
	years := []int{2007, 2021, 2022, 2023, 2024}
	var sessions []int64
	for _, p := range data[[]wire.PredictionRecord](t, c.get(t, "/predictions?year=2022")) {
		sessions = append(sessions, p.SessionKey)
	}
	read := map[catalog.Name]int{}
	for i, v := range catalog.All(catalog.Known{Seasons: years, Current: 2024}, sessions) {
		path := strings.TrimPrefix(v.Target(), catalog.BasePath)
		if i == 100 { // a standard key has 120 requests a minute
			c = newClient(d.url, d.keys["pro"])
		}
		c.get(t, path)
		read[v.Endpoint]++
	}
	t.Logf("read %v", read)
}

// want lists the required parts of an answer.
type want struct {
	status int
	code   wire.Code         // of an error; empty: a success
	header map[string]string // exact values
	data   func(t *testing.T, a answer)
}

// holds checks an answer against want and against the rules for every answer.
func (a answer) holds(t *testing.T, w want) {
	t.Helper()
	must.Hold(t, a.status == w.status, "got status %d, want %d: %s", a.status, w.status, a.body)
	for name, value := range w.header {
		must.Equal(t, name, value, a.header.Get(name))
	}
	for _, name := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
		if _, err := strconv.Atoi(a.header.Get(name)); err != nil {
			t.Errorf("%s: got %q, want a number on every response", name, a.header.Get(name))
		}
	}
	must.Equal(t, "Access-Control-Allow-Origin", "*", a.header.Get("Access-Control-Allow-Origin"))
	if w.code != "" {
		if err := schemas.ValidateBody(schemas.ErrorKind, a.body); err != nil || !bytes.Contains(a.body, []byte(`"error":"`+string(w.code)+`"`)) {
			t.Errorf("want the error %s, got %s (%v)", w.code, a.body, err)
		}
		if a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("an error has Cache-Control %q, want no-store", a.header.Get("Cache-Control"))
		}
	}
	if w.data != nil {
		w.data(t, a)
	}
}

// same wants the bytes of another target.
func same(c *client, path string) func(*testing.T, answer) {
	return func(t *testing.T, a answer) {
		if other := c.get(t, path); !bytes.Equal(a.body, other.body) {
			t.Errorf("got other bytes than %s:\n%s\n%s", path, a.body, other.body)
		}
	}
}

// first wants something of the first row.
func first[T any](pick func(T) any, want any) func(*testing.T, answer) {
	return func(t *testing.T, a answer) {
		rows := data[[]T](t, a)
		must.Hold(t, len(rows) != 0 && fmt.Sprint(pick(rows[0])) == fmt.Sprint(want), "first row: got %s, want %v", a.body, want)
	}
}

func count[T any](want int) func(*testing.T, answer) {
	return func(t *testing.T, a answer) {
		if got := len(data[[]T](t, a)); got != want {
			t.Errorf("got %d rows, want %d", got, want)
		}
	}
}

// countsDown wants the countdown to fit the instant of the answer exactly.
func countsDown(t *testing.T, a answer) {
	next := data[wire.NextRace](t, a)
	var envelope wire.Success[wire.NextRace]
	envelope.Data = next
	at := generatedAt(t, a)
	if got := time.Time(next.DateStart).Sub(at); got != time.Duration(next.SecondsToLights)*time.Second || next.SecondsToLights < 1 {
		t.Errorf("%d seconds to lights, date_start - generated_at is %s", next.SecondsToLights, got)
	}
}

var generated = regexp.MustCompile(`"generated_at":"([^"]+)"`)

func generatedAt(t testing.TB, a answer) time.Time {
	t.Helper()
	m := generated.FindSubmatch(a.body)
	must.Require(t, m != nil, "no generated_at: %s", a.body)
	return must.Get(time.Parse(wire.InstantLayout, string(m[1])))(t)
}

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
	t.Run("tasks", func(t *testing.T) { runTasks(t, d) })
}
