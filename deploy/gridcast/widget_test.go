package main

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/schemas/wire"
)

// site is a website of somebody else that shows the widget: another origin than the service, which it
// reaches through a proxy that can be told to fail.
type site struct {
	*httptest.Server
	service *httptest.Server
	proxy   atomic.Pointer[httputil.ReverseProxy]
	fails   atomic.Int32 // status that the service answers requests of the API with; 0: its own, -1: it hangs up
}

func newSite(t *testing.T, service string) *site {
	t.Helper()
	s := &site{}
	s.reach(t, service)
	s.service = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch fails := int(s.fails.Load()); {
		case fails == 0 || !strings.HasPrefix(r.URL.Path, "/api/") || r.Method == http.MethodOptions:
			s.proxy.Load().ServeHTTP(w, r)
		case fails < 0:
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Access-Control-Allow-Origin", "*")
			w.Header().Set("Access-Control-Expose-Headers", "Retry-After")
			w.Header().Set("Retry-After", "90")
			w.WriteHeader(fails)
		}
	}))
	t.Cleanup(s.service.Close)
	start := fetch(t, service+"/")
	path, integrity := submatch(t, start, `src="(/widget/\d[^"]+)"`), submatch(t, start, `src="/widget/\d[^"]+" integrity="([^"]+)"`)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		key := html.EscapeString(r.URL.Query().Get("key"))
		// The clock of the visitor is three days fast; "pass" lets time pass at once, "skip" a minute, and has
		// the page looked at again. With "held" in the address time passes only by them, and no
		// timer of a second or more ends.
		fmt.Fprintf(w, `<!doctype html><html lang="en"><meta charset="utf-8"><title>Site</title><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><style>:root{color-scheme:light dark;background:Canvas;color:CanvasText}</style>
<script>
const clock = Date.now; Date.now = () => clock() + 3 * 86400e3;
const now = performance.now.bind(performance), held = location.search.includes("held") && now(); let skipped = 0; performance.now = () => (held || now()) + skipped;
const later = setTimeout; if (held) window.setTimeout = (f, ms) => ms < 1e3 ? later(f, ms) : 0;
const errors = []; console.error = (text) => errors.push(text);
const asked = [], ask = fetch; window.fetch = (url, options) => { if (String(url).endsWith("/overview")) asked.push(performance.now()); return ask(url, options); };
function pass(ms) { skipped += ms; return ""; }
function skip() { pass(92e3); document.dispatchEvent(new Event("visibilitychange")); return ""; }
const next = () => document.querySelector("gridcast-next"), text = () => next().shadowRoot.textContent;
const race = () => document.querySelector("gridcast-live");
</script>
<script type="module" src="%s" integrity="%s" crossorigin="anonymous"></script>
<main><h1>Site</h1><gridcast-next key="%s">see the calendar</gridcast-next><gridcast-season key="%[3]s" year="2024">see the picks</gridcast-season><gridcast-live key="%[3]s">see the order</gridcast-live></main></html>`,
			s.service.URL+path, integrity, key)
	}))
	t.Cleanup(s.Close)
	return s
}

// reach has the site reach another service.
func (s *site) reach(t *testing.T, service string) {
	t.Helper()
	target := must.Get(url.Parse(service))(t)
	s.proxy.Store(httputil.NewSingleHostReverseProxy(target))
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	r := must.Get(http.Get(url))(t)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", url, r.StatusCode, err)
	}
	return string(body)
}

func submatch(t *testing.T, text, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	must.Require(t, m != nil, "no %s in %s", pattern, text)
	return html.UnescapeString(m[1])
}

// widgetElsewhere shows the widget on another website, with all that may go wrong there.
func widgetElsewhere(t *testing.T, d demo) {
	t.Parallel() // a browser waits as much as it works
	b := browsertest.Open(t)
	s := newSite(t, d.url)
	key := newKey(t, d.cmd.Dir, "dir:.var/demo", "standard", "--origin", s.URL)
	d.await(t, func() bool {
		return newClient(d.url, key).do(t, http.MethodGet, "/api/v1/drivers", nil).status != http.StatusUnauthorized
	})
	const state = `next().getAttribute("state")`
	// countdown waits until the text of the widget lies between the answers of the service before and after.
	countdown := func(service string) {
		t.Helper()
		answer := func() int64 {
			return data[wire.NextRace](t, newClient(service, d.keys["pro"]).get(t, "/next-race")).SecondsToLights
		}
		must.Until(t, "the widget shows the countdown of the service", func() bool {
			before, shown, after := answer(), b.Evaluate(`next().shadowRoot.querySelector("[role=timer]").textContent`), answer()
			var days, hours, minutes, seconds int
			if _, err := fmt.Sscanf(shown, "%d d %d:%d:%d", &days, &hours, &minutes, &seconds); err != nil {
				days = 0
				if _, err := fmt.Sscanf(shown, "%d:%d:%d", &hours, &minutes, &seconds); err != nil {
					t.Fatalf("countdown %q: %v", shown, err)
				}
			}
			left := int64(days*86400 + hours*3600 + minutes*60 + seconds)
			return left >= after-5 && left <= before+5
		})
	}

	b.Do(chromedp.Navigate(s.URL + "/?key=" + key))
	b.Await(state, "counting")
	countdown(d.url)
	b.Await(`document.querySelector("gridcast-season").getAttribute("state")`, "ready")
	accuracy := data[wire.Accuracy](t, newClient(d.url, d.keys["pro"]).get(t, "/accuracy?year=2024"))
	b.Await(`document.querySelector("gridcast-season").shadowRoot.querySelector("h2").textContent.split(" of ")[1]`, fmt.Sprintf("%d winners picked", accuracy.RacesEvaluated))
	b.Picture("counting")

	s.fails.Store(-1)
	b.Evaluate(`skip()`)
	b.Await(state, "offline")
	b.Await(`text().includes("No connection") && /\d\d:\d\d:\d\d/.test(text())`, "true")
	b.Look("offline")
	s.fails.Store(0)
	b.Evaluate(`skip()`)
	b.Await(state, "counting")
	s.fails.Store(http.StatusTooManyRequests)
	b.Evaluate(`skip()`)
	b.Await(state, "limited")
	b.Look("limited")
	b.Do(chromedp.Navigate(s.URL + "/?key=" + key))
	b.Await(state, "limited")
	b.Await(`next().shadowRoot.querySelector("slot") !== null`, "true") // without data the text between the tags stays
	s.fails.Store(0)

	b.Do(chromedp.Navigate(s.URL + "/?key=gc_live_wrong"))
	b.Await(state, "bad-key")
	// Readers see the text between the tags. The owner of the page finds the remedy in the console of the browser.
	b.Await(`next().shadowRoot.querySelector("slot") !== null && next().shadowRoot.querySelector("[role=status]").textContent === ""`, "true")
	b.Await(`errors.some((e) => e.includes("<gridcast-next>") && e.includes("(401: ") && e.includes("gridcast keys create --origin " + location.origin))`, "true")
	b.Look("bad-key")
	other := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	b.Do(chromedp.Navigate(other + "/?key=" + key))
	b.Await(state, "bad-key") // the key is bound to another origin
	b.Await(`errors.some((e) => e.includes("(403: ") && e.includes(location.origin))`, "true")

	t.Run("start", func(*testing.T) {
		b.Do(chromedp.Navigate(d.url + "/"))
		b.Await(`document.querySelector("gridcast-next").getAttribute("state")`, "counting")
		b.Await(`document.querySelector("gridcast-season").getAttribute("state")`, "ready")
		b.Await(`document.querySelector("gridcast-season").shadowRoot.querySelector(".driver[style*='--team']").title.length > 6`, "true") // names and colours of this season
		b.Await(`document.querySelector("a[href^='http://127.0.0.1:']")?.textContent`, "Console")
		b.Await(`document.getElementById("snippet").textContent.includes(location.origin + "/widget/")`, "true")
		b.Picture("start")
	})
	t.Run("starting", func(t *testing.T) { // a minute before lights out and half a minute after, by clocks of their own
		before := startServer(t, d.cmd.Dir, "edge", "--store", "dir:.var/demo", "--now", "2024-11-24T05:59:05Z")
		after := startServer(t, d.cmd.Dir, "edge", "--store", "dir:.var/demo", "--now", "2024-11-24T06:00:30Z")
		s := newSite(t, before.url)
		b.Do(chromedp.Navigate(s.URL + "/?held&key=" + d.keys["pro"]))
		b.Await(`next().shadowRoot.querySelector("h2").textContent`, "Las Vegas Grand Prix")
		b.Await(`next().shadowRoot.textContent.includes(" your time")`, "true")
		s.reach(t, after.url)
		b.Evaluate(`new MutationObserver(() => { if (next().getAttribute("state") === "starting") window.started = next().shadowRoot.querySelector("[role=timer]").textContent; }).observe(next(), { attributes: true })`)
		b.Evaluate(`pass(56e3)`)
		b.Await(`window.started`, "Starting")
		b.Await(state, "counting") // to the race after it
		b.Await(`next().shadowRoot.querySelector("h2").textContent`, "Qatar Grand Prix")
		// It asks as soon as the answer may have changed, by its max-age, and waits for no full minute.
		b.Await(`asked.length === 2 && asked[1] - asked[0] >= 30e3 && asked[1] - asked[0] < 60e3`, "true")
	})
	t.Run("live", func(t *testing.T) {
		const now = "2024-11-24T06:10:00Z"
		dir := t.TempDir()
		gridcast(t, dir, "build", "--store", "dir:live", "--now", "2024-11-24T05:00:00Z", "--archive", seasons(t, 2024, 2024)) // freezes the pick
		gridcast(t, dir, "live", "set", "2024022", "--lap", "3", "--order", "LEC,RUS", "--out", "GAS", "--yes", "--store", "dir:live", "--now", now)
		gridcast(t, dir, "build", "--store", "dir:live", "--now", now)
		key := newKey(t, dir, "dir:live", "pro") // without one an edge is not ready
		s := newSite(t, startServer(t, dir, "edge", "--store", "dir:live", "--now", now).url)
		b.Do(chromedp.Navigate(s.URL + "/?held&key=" + key))
		b.Await(state, "live")
		b.Await(`text().includes("Las Vegas Grand Prix") && text().includes("Live")`, "true")
		b.Await(`next().shadowRoot.querySelector("[part=pick]")?.textContent.startsWith("Pick: George Russell (")`, "true")
		b.Await(`getComputedStyle(next().shadowRoot.querySelector(".driver")).getPropertyValue("--team").length`, "7")
		b.Await(`race().getAttribute("state")`, "running")
		b.Await(`race().shadowRoot.querySelector("div > p").textContent.startsWith("Lap 3 of 50, seen ")`, "true")
		b.Await(`[...race().shadowRoot.querySelectorAll("tbody tr")].slice(0, 2).map((row) => row.querySelector(".driver").textContent).join() + race().shadowRoot.querySelectorAll("tbody tr").length`, "Charles Leclerc,George Russell10")
		// The bar of a driver is as wide as the chance beside it.
		b.Await(`[...race().shadowRoot.querySelectorAll(".bar")].every((bar) => parseFloat(bar.style.getPropertyValue("--part")) === parseFloat(bar.textContent))`, "true")
		b.Picture("live")
		b.Evaluate(`pass(100e3)`)
		b.Await(`race().getAttribute("state")`, "running")
		b.Evaluate(`pass(82e3)`)
		b.Await(`race().getAttribute("state") + race().shadowRoot.querySelector("[role=status]").textContent.includes("Nothing new since")`, "staletrue")
		b.Look("stale")
	})
}

// TestPictureOfTheReadme: README.md opens with a picture of the demo's start page in a race. With -update the test takes
// it anew: it waits for a third of the race, which begins after two and a half minutes.
func TestPictureOfTheReadme(t *testing.T) {
	const file = "../docs/start.webp"
	if golden.Updates() {
		b := browsertest.Open(t)
		d := startDemo(t, "600")
		clients := d.manyClients(t, 20)
		must.Until(t, "the race has run for fifteen laps", func() bool {
			clients = append(clients[1:], clients[0]) // in turn, so that looking often meets no limit
			race := data[wire.LiveRace](t, clients[0].get(t, "/live"))
			return race.State == wire.LiveRunning && race.Lap >= 15
		})
		b.Do(chromedp.Navigate(d.url + "/"))
		b.Await(`document.querySelector("gridcast-next").getAttribute("state")`, "live")
		b.Await(`document.querySelector("gridcast-live").getAttribute("state")`, "running")
		must.Do(t, os.WriteFile(file, b.WebP(1280, 1000), 0o644))
	}
	picture := must.Get(os.ReadFile(file))(t)
	must.Hold(t, len(picture) < 150_000 && bytes.HasPrefix(picture, []byte("RIFF")) && bytes.HasPrefix(picture[8:], []byte("WEBP")), "%s is no WebP of less than 150 KB; -update takes it", file)
	readme := must.Get(os.ReadFile("../../README.md"))(t)
	must.Hold(t, bytes.HasPrefix(readme, []byte("# gridcast\n\n![")) && bytes.Contains(readme, []byte("](deploy/docs/start.webp)")), "README.md does not open with the picture")
}
