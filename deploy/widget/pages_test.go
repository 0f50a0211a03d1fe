package widget_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/must"
	"gridcast/deploy/widget"
	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/edge/keys"
	"gridcast/snapshots/blob/memblob"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Main(m)) }

// observe collects the directives by which the policy of the page has blocked something, also before.
const observe = `(window.blocked = [], new ReportingObserver((reports) => blocked.push(...reports.map((r) => r.body.effectiveDirective)),
	{ types: ["csp-violation"], buffered: true }).observe(), "")`

// serve starts an edge with the releases of the widget and with all parts of the start page, which has a key. It
// returns its address and the key.
func serve(t *testing.T) (url, key string) {
	t.Helper()
	return serveStart(t, func(key string) edge.StartPage { return edge.StartPage{Key: key} })
}

func serveStart(t *testing.T, start func(key string) edge.StartPage) (url, key string) {
	t.Helper()
	store := memblob.New()
	must.Do(t, keys.Update(t.Context(), store, func(d *keys.List) (err error) {
		_, key, err = d.Create(keys.Request{Name: "pages", Tier: "pro"}, time.Now())
		return err
	}))
	edgetest.Publish(t, store, 1, "")
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	cfg := edge.DefaultConfig()
	cfg.StartPage = edge.Shown
	e := must.Get(edge.New(cfg, edge.Deps{
		Store: store, Log: slog.New(slog.DiscardHandler), Listener: listener, Widgets: widget.Releases(),
		RaceTime: func(time.Time) time.Time { return edgetest.AbuDhabi.Add(-time.Hour) },
		Start:    func() edge.StartPage { return start(key) },
	}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-e.Started()
	return "http://" + listener.Addr().String(), key
}

// TestPagesKeepTheirPolicy opens every page of an edge in a browser: the widget, and the form that tries requests,
// work, and the policy blocks nothing but a style that does not belong to the page. No policy names the widget's style
// sheet, because the policy of a foreign page does not know it either.
func TestPagesKeepTheirPolicy(t *testing.T) {
	b := browsertest.Open(t)
	url, key := serve(t)
	for _, tt := range []struct {
		path   string
		steps  []chromedp.Action[chromedp.Void]
		script string // with this result when the page works
		want   string
	}{
		{"/", nil, `document.querySelector("gridcast-next").getAttribute("state") + " " + getComputedStyle(document.querySelector("gridcast-next")).borderTopWidth + " " + document.getElementById("snippet").textContent.includes(location.origin)`, "counting 1px true"},
		{
			"/docs",
			[]chromedp.Action[chromedp.Void]{
				chromedp.WaitVisible(chromedp.CSS(`#find`)), // its script has begun
				chromedp.SendKeys(chromedp.CSS(`#try-key`), key), browsertest.Press(chromedp.CSS(`#try-form button`)),
			},
			`document.getElementById("try-status").textContent.includes("200") + " " + / \d+ bytes$/.test(document.getElementById("try-status").textContent)`, "true true",
		},
		{"/status", nil, `document.styleSheets.length`, "1"},
	} {
		b.Do(chromedp.Navigate(url + tt.path))
		b.Do(tt.steps...)
		b.Await(tt.script, tt.want)
		b.Picture("page" + strings.ReplaceAll(tt.path, "/", "-"))
		b.Evaluate(observe)
		b.Evaluate(`(document.head.append(Object.assign(document.createElement("style"), { textContent: "main { display: none }" })), "")`)
		b.Await(`blocked.join()`, "style-src-elem")
	}
}

// TestRecordCallsHindsightSo: the record of a service without a scored race says 0 races first, and shows the figures
// of hindsight under that word alone. The real record is not repeated as hindsight, nor the other way round.
func TestRecordCallsHindsightSo(t *testing.T) {
	b := browsertest.Open(t)
	url, _ := serve(t)
	b.Do(chromedp.Navigate(url + "/"))
	b.Await(`document.querySelector("gridcast-record").getAttribute("state")`, "ready")
	b.Await(`document.querySelector("#record .hint").textContent.includes("simulated")`, "true")
	const scores = `"picks":{"winner_hit_pct":{"value":%s,"low":1,"high":99},"podium_pct":{"value":60,"low":50,"high":70}},"reliability":[{"races":9,"said_pct":50,"won_pct":40,"low_pct":20,"high_pct":70}]`
	past := `{"races":340,"races_with_chances":340,` + strings.Replace(scores, "%s", "55.9", 1) + `}`
	real := `{"races":3,"races_with_chances":3,` + strings.Replace(scores, "%s", "33.3", 1) + `}`
	for _, tt := range []struct{ record, want string }{
		{`{"real":{"races":0,"races_with_chances":0},"hindsight":{"races":0,"races_with_chances":0}}`, "Picks frozen before their races: 0 races so far"},
		{`{"real":{"races":0,"races_with_chances":0},"hindsight":` + past + `}`, "Picks frozen before their races: 0 races so far|Hindsight 55.9|Hindsight 55.9"},
		{`{"real":` + real + `,"hindsight":` + past + `}`, "Picks frozen before their races: 3 races 33.3|Picks frozen before their races: 3 races 33.3|Hindsight 55.9|Hindsight 55.9"},
	} {
		b.Evaluate(fmt.Sprintf(`(document.querySelector("#record").innerHTML = '<gridcast-record><script type="application/json">%s</script></gridcast-record>', "")`, tt.record))
		b.Await(`[...document.querySelector("gridcast-record").shadowRoot.querySelectorAll("p, svg")].map((e) => (e.getAttribute("aria-label") ?? e.textContent)
			.replace(/^Hindsight, never published: .* 340 races/, "Hindsight").replace(/, winner picked ([0-9.]+) .*/, " $1")).join("|")`, tt.want)
	}
	b.Picture("record")
}

// TestStartPageWithoutKey: without a key the start page has no element that asks for data, so no request is refused.
// A key that a reader pastes brings the elements.
func TestStartPageWithoutKey(t *testing.T) {
	b := browsertest.Open(t)
	url, key := serveStart(t, func(string) edge.StartPage { return edge.StartPage{} })
	b.Do(chromedp.Navigate(url + "/"))
	b.Await(`document.getElementById("snippet").textContent.includes(location.origin)`, "true")
	b.Await(`customElements.get("gridcast-live") !== undefined`, "true")
	const asked = `document.querySelectorAll("gridcast-next, gridcast-season, gridcast-live").length + " " + performance.getEntriesByType("resource").filter((r) => r.name.includes("/api/v1/")).length`
	if got := b.Evaluate(asked); got != "0 0" {
		t.Errorf("without a key the page has elements and requests %s, want none", got)
	}
	b.Picture("start-without-key")
	b.Do(chromedp.SendKeys(chromedp.CSS(`#key`), key+"\n"))
	b.Await(`document.querySelectorAll("gridcast-season").length + " " + document.querySelector("gridcast-next")?.getAttribute("state")`, "1 counting")
	b.Picture("start-with-pasted-key")
}

// TestChartLetters: the letters of a chart stay readable in a wide and in a narrow box, and no name is cut.
func TestChartLetters(t *testing.T) {
	b := browsertest.Open(t)
	url, _ := serve(t)
	b.Do(chromedp.Navigate(url + "/"))
	b.Await(`customElements.get("gridcast-progress") !== undefined`, "true")
	b.Evaluate(`(document.querySelector("main").innerHTML = '<h1>Progress</h1><gridcast-progress><script type="application/json">' + JSON.stringify(
		[["Aston Martin Aramco", 612.5], ["Red Bull", 589], ["RB", 46]].map(([team, last]) => ({ team, rounds: [1, 2, 3].map((round) => ({ round, points: last * round / 3 })) }))) + '</script></gridcast-progress>', "")`)
	b.Await(`document.querySelector("gridcast-progress").getAttribute("state")`, "ready")
	const letters = `(() => {
		const svg = document.querySelector("gridcast-progress").shadowRoot.querySelector("svg"), box = svg.getBoundingClientRect(), scale = svg.getScreenCTM().a;
		const texts = [...svg.querySelectorAll("text")], sizes = texts.map((text) => parseFloat(getComputedStyle(text).fontSize) * scale);
		return [Math.min(...sizes) >= 8, Math.max(...sizes) <= 16, texts.filter((text) => text.getBoundingClientRect().right > box.right + 1).map((text) => text.textContent)].join(" ");
	})()`
	if got := b.Evaluate(letters); got != "true true " {
		t.Errorf("at 1280 px: at least 8 px, at most 16 px, cut: %s", got)
	}
	b.Picture("chart-letters")
	b.Phone()
	if got := b.Evaluate(letters); got != "true true " {
		t.Errorf("at 390 px: at least 8 px, at most 16 px, cut: %s", got)
	}
}

// TestLiveElement: the running order has the teams' colours, gaps with one decimal, and bars as high as a letter.
func TestLiveElement(t *testing.T) {
	b := browsertest.Open(t)
	url, _ := serve(t)
	b.Do(chromedp.Navigate(url + "/"))
	b.Await(`customElements.get("gridcast-live") !== undefined`, "true")
	b.Evaluate(`(() => {
		const answers = {
			live: { gp_name: "Las Vegas Grand Prix", state: "running", lap: 24, laps: 50, observed_at: "2024-11-24T06:40:00Z", valid_until: "2999-01-01T00:00:00Z", order: [
				{ position: 1, driver: "RUS", gap_ms: 0, win_pct: 56.2 }, { position: 2, driver: "HAM", gap_ms: 7000, win_pct: 15 },
				{ position: 3, driver: "SAI", gap_ms: 8123, win_pct: 0 }, { position: 4, driver: "BOT", gap_laps: 2 }] },
			drivers: [{ driver: "RUS", team: "Mercedes", team_colour: "#27F4D2" }, { driver: "HAM", team: "Mercedes", team_colour: "#27F4D2" }],
		};
		window.fetch = async (url) => new Response(JSON.stringify({ ok: true, data: answers[new URL(url).pathname.split("/").pop()], meta: { generated_at: new Date().toISOString() } }), { headers: { Date: new Date().toUTCString() } });
		document.querySelector("main").innerHTML = '<h1>Live</h1><gridcast-live key="k"></gridcast-live>';
		return "";
	})()`)
	b.Await(`document.querySelector("gridcast-live").getAttribute("state")`, "running")
	const rows = `[...document.querySelector("gridcast-live").shadowRoot.querySelectorAll("li")].map((li) => [
		li.querySelector(".driver").style.getPropertyValue("--team"), li.querySelector(".muted").textContent, li.querySelector(".bar").textContent,
		parseFloat(getComputedStyle(li.querySelector(".bar")).backgroundSize.split(" ")[1]) >= 8].join(" ")).join("|")`
	const want = "#27F4D2  56.2 % true|#27F4D2 +7.0 15.0 % true| +8.1 0.0 % true| +2 lap  false"
	must.Equal(t, "rows: colour, gap, chance, high bar", want, b.Evaluate(rows))
	b.Picture("live-element")
}

// TestDocsForReaders: search finds words that the text writes in another way and says when it finds nothing, no button
// covers code, and no table cuts a word.
func TestDocsForReaders(t *testing.T) {
	b := browsertest.Open(t)
	url, _ := serve(t)
	b.Do(chromedp.Navigate(url + "/docs/errors"))
	b.Await(`document.getElementById("find").hidden`, "false")
	for word, want := range map[string]string{"CORS": "true", "timezone": "true", "time-zone": "true", "withdraw": "true", "zzyzx": "No page has all of these words. Try one word, or a shorter one."} {
		b.Evaluate(fmt.Sprintf(`(document.getElementById("search").value = %q, document.getElementById("search").dispatchEvent(new Event("input")), "")`, word))
		b.Await(`(document.querySelectorAll("#hits a").length > 0 && document.getElementById("found").textContent !== "0") || document.querySelector("#hits li")?.textContent`, want)
	}
	b.Evaluate(`(document.getElementById("search").value = "", document.getElementById("search").dispatchEvent(new Event("input")), "")`)
	for _, page := range []string{"/docs/errors", "/docs", "/docs/caching", "/docs/widget"} {
		b.Do(chromedp.Navigate(url + page))
		for _, narrow := range []bool{false, true} {
			if narrow {
				b.Phone()
			}
			if got := b.Evaluate(`[...document.querySelectorAll(".block")].filter((block) => block.checkVisibility() && block.querySelector("button").getBoundingClientRect().bottom > block.querySelector("pre").getBoundingClientRect().top).length`); got != "0" {
				t.Errorf("%s, narrow %t: %s buttons lie on code", page, narrow, got)
			}
			if got := b.Evaluate(`[...document.querySelectorAll("td code")].filter((code) => /^\w+$/.test(code.textContent) && code.getClientRects().length > 1).map((code) => code.textContent).join()`); got != "" {
				t.Errorf("%s, narrow %t: cut words: %s", page, narrow, got)
			}
		}
		b.Picture("docs" + strings.ReplaceAll(page, "/", "-"))
	}
}
