package widget_test

import (
	"context"
	"encoding/json"
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
	edgetest.Measure(t, store)
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
		{"/", nil, `document.querySelector("gridcast-next").getAttribute("state") + " " + getComputedStyle(document.querySelector("gridcast-next").shadowRoot.querySelector("[part=clock]")).fontWeight + " " + document.getElementById("snippet").textContent.includes(location.origin)`, "counting 600 true"},
		{
			"/docs",
			[]chromedp.Action[chromedp.Void]{
				chromedp.WaitVisible(chromedp.CSS(`#find`)), // its script has begun
				chromedp.SendKeys(chromedp.CSS(`#try-key`), key), browsertest.Press(chromedp.CSS(`#try-form button`)),
			},
			`document.getElementById("try-status").textContent.includes("200") + " " + / \d+ bytes$/.test(document.getElementById("try-status").textContent)`, "true true",
		},
		{"/status", nil, `document.styleSheets.length + " " + document.querySelectorAll(".bars rect").length + " " + document.querySelectorAll(".bars .down").length`, "1 184 4"},
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
		b.Await(`[...document.querySelector("gridcast-record").shadowRoot.querySelectorAll("div > *")].map((e) => (e.getAttribute("aria-label") ?? e.textContent)
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
	got := b.Evaluate(asked)
	must.Hold(t, got == "0 0", "without a key the page has elements and requests %s, want none", got)
	b.Picture("start-without-key")
	b.Do(chromedp.SendKeys(chromedp.CSS(`#key`), key+"\n"))
	b.Await(`document.querySelectorAll("gridcast-season").length + " " + document.querySelector("gridcast-next")?.getAttribute("state")`, "1 counting")
	b.Picture("start-with-pasted-key")
}

// TestChartLetters: the letters of a chart have one size in a wide and in a narrow box, and no name is cut.
func TestChartLetters(t *testing.T) {
	b := browsertest.Open(t)
	url, _ := serve(t)
	b.Do(chromedp.Navigate(url + "/"))
	b.Await(`customElements.get("gridcast-progress") !== undefined`, "true")
	b.Evaluate(`(document.querySelector("main").innerHTML = '<h1>Progress</h1><gridcast-progress><script type="application/json">' + JSON.stringify(
		[["Aston Martin Aramco", 612.5], ["Red Bull", 589], ["RB", 46]].map(([team, last]) => ({ team, rounds: [1, 2, 3].map((round) => ({ round, points: last * round / 3 })) }))) + '</script></gridcast-progress>', "")`)
	b.Await(`document.querySelector("gridcast-progress").getAttribute("state")`, "ready")
	const letters = `(() => {
		const svg = document.querySelector("gridcast-progress").shadowRoot.querySelector("svg"), box = document.querySelector("main").getBoundingClientRect(), scale = svg.getScreenCTM().a;
		const texts = [...svg.querySelectorAll("text")], sizes = texts.map((text) => parseFloat(getComputedStyle(text).fontSize) * scale);
		return [...new Set(sizes), texts.filter((text) => text.getBoundingClientRect().right > box.right + 1 || text.getBoundingClientRect().left < 0).map((text) => text.textContent)].join(" ");
	})()`
	must.Equal(t, "at 1280 px: sizes, cut names", "12 ", b.Evaluate(letters))
	b.Picture("chart-letters")
	b.Phone()
	b.Await(letters, "12 ")
	b.Await(`document.querySelector("gridcast-progress").shadowRoot.querySelector("svg").getBoundingClientRect().right <= innerWidth`, "true")
}

// elements replaces the page by elements whose requests are answered from these documents, by path, in order, with the
// Date of the service. A document {"status": 429} is a refusal, one with a clock is simulated. asked counts the requests by path.
func elements(t *testing.T, b *browsertest.Browser, html string, documents map[string]string) {
	t.Helper()
	list := string(must.Get(json.Marshal(documents))(t))
	b.Evaluate(fmt.Sprintf(`(() => {
		window.answers = Object.fromEntries(Object.entries(%s).map(([path, text]) => [path, JSON.parse(text)]));
		window.asked = {}; window.errors = []; console.error = (text) => errors.push(text);
		window.skipped ??= 0; window.clock ??= performance.now.bind(performance); performance.now = () => clock() + skipped;
		window.skip = (ms) => (skipped += ms, document.dispatchEvent(new Event("visibilitychange")), "");
		window.fetch = async (url, { headers }) => {
			const path = new URL(url).href.split("/api/v1/")[1], answer = answers[path] ?? { status: 404 };
			if (!headers["X-API-Key"].startsWith("gc_")) asked[path] = (asked[path] ?? 0) + 1; // not of the page before
			if (answer.status === 0) throw new TypeError("Failed to fetch");
			const service = new Date("2024-11-24T06:40:30Z");
			return new Response(JSON.stringify({ ok: !answer.status, message: "refused", data: answer.data ?? answer, meta: { generated_at: answer.made ?? "2024-11-24T06:40:00Z" } }),
				{ status: answer.status ?? 200, headers: { Date: service.toUTCString(), "Cache-Control": "max-age=5", ...(answer.clock ? { "X-Gridcast-Clock": String(Date.parse(answer.clock) / 1e3), "X-Gridcast-World": "sandbox" } : {}), ...(answer.status >= 429 ? { "Retry-After": "90" } : {}) } });
		};
		window.shadow = (name) => document.querySelector("gridcast-" + name)?.shadowRoot;
		window.words = (name) => shadow(name).querySelector("[role=status]").textContent;
		document.querySelector("main").innerHTML = "<h1>Elements</h1>" + %q;
		return "";
	})()`, list, html))
}

// TestLiveElement: <gridcast-live> says each state of a race in words, by the state of its document. Drivers have names
// and the teams' colours, gaps have one decimal, and bars are as high as a letter.
func TestLiveElement(t *testing.T) {
	b := browsertest.Open(t)
	url, _ := serve(t)
	b.Do(chromedp.Navigate(url + "/"))
	b.Await(`customElements.get("gridcast-live") !== undefined`, "true")
	const order = `"gp_name": "Las Vegas Grand Prix", "session_key": 7, "lap": 24, "laps": 50, "observed_at": "2024-11-24T06:40:00Z", "order": [
		{"position": 1, "driver": "RUS", "name": "George Russell", "team_colour": "#27F4D2", "gap_ms": 0, "win_pct": 56.2}, {"position": 2, "driver": "HAM", "name": "Lewis Hamilton", "team_colour": "#27F4D2", "gap_ms": 7000, "win_pct": 15},
		{"position": 3, "driver": "SAI", "gap_ms": 8123, "win_pct": 0}, {"position": 4, "driver": "BOT", "gap_laps": 2}, {"driver": "GAS", "out": true}]`
	const rows = `"gp_name": "Las Vegas Grand Prix", "order": [{"position": 1, "driver": "HAM", "name": "Lewis Hamilton", "team": "Mercedes", "team_colour": "#27F4D2", "status": "classified", "points": 25},
		{"driver": "GAS", "name": "Pierre Gasly", "status": "did_not_finish", "points": 0}, {"driver": "RUS", "name": "George Russell", "team": "Mercedes", "status": "disqualified", "reason": "underweight", "points": 0}]`
	result := func(revisions string) string {
		return `{"state": "over", "provisional": false, "result": {"revisions": ` + revisions + `}, ` + rows + `}`
	}
	for _, tt := range []struct{ name, live, state, words string }{
		{"no race", `{"state": "none", "provisional": false}`, "none", ""},
		{"waiting", `{"state": "waiting", "provisional": true, ` + strings.Replace(order, `"lap": 24,`, "", 1) + `}`, "waiting", "Waiting for the first lap. The order is that of the grid."},
		{"running", `{"state": "running", "provisional": true, "valid_until": "2024-11-24T06:43:00Z", ` + order + `}`, "running", "The race is running."},
		{"feed silent", `{"state": "running", "provisional": true, "valid_until": "2024-11-24T06:40:20Z", ` + order + `}`, "stale", "The race is running. Nothing new since TIME: the order may be old."},
		// The document is hours old, and its clock is the service's.
		{"abandoned", `{"data": {"state": "suspended", "provisional": true, "valid_until": "2024-11-23T06:50:00Z", ` + order + `}}`, "stale", "The race is suspended: red flag. Nothing new since TIME: the order may be old."},
		// A replay has a clock of its own, by which the document is new.
		{"replay", `{"clock": "2014-11-23T06:40:00Z", "data": {"state": "running", "provisional": true, "valid_until": "2014-11-23T06:43:00Z", ` + order + `}}`, "running", "Simulated, not a real race. The race is running."},
		{"silent sandbox", `{"clock": "2014-11-23T06:44:00Z", "data": {"state": "running", "provisional": true, "valid_until": "2014-11-23T06:43:00Z", ` + order + `}}`, "stale", "Simulated, not a real race. The race is running. Nothing new since TIME: the order may be old."},
		{"red flag", `{"state": "suspended", "provisional": true, "valid_until": "2024-11-24T06:50:00Z", ` + order + `}`, "suspended", "The race is suspended: red flag."},
		{"result waiting", `{"state": "over", "provisional": true, ` + order + `}`, "over", "Finished. Provisional until the result is verified."},
		{"archived", result(`[]`), "verified", "Result verified."},
		{"verified", result(`[{"revision": 1, "at": "2024-11-24T09:00:00Z", "by": "rule"}]`), "verified", "Result verified on TIME."},
		{"revised", result(`[{"revision": 1, "at": "2024-11-24T09:00:00Z", "by": "rule"}, {"revision": 2, "at": "2024-12-01T09:00:00Z", "by": "ada", "reason": "car 63 disqualified"}]`), "revised", "Result revised on TIME: car 63 disqualified."},
		{"a later state", `{"state": "neutralised", "provisional": true, ` + order + `}`, "neutralised", "neutralised"},
	} {
		elements(t, b, `<gridcast-live key="`+strings.ReplaceAll(tt.name, " ", "-")+`"></gridcast-live>`, map[string]string{"live": tt.live})
		b.Await(`shadow("live").host.getAttribute("state")`, tt.state)
		must.Equal(t, tt.name+": requests", `{"live":1}`, b.Evaluate(`JSON.stringify(asked)`))
		must.Equal(t, tt.name, tt.words, b.Evaluate(`words("live").replaceAll(/[A-Z][a-z]+ \d+, \d{4}, \d+:\d\d\s[AP]M/g, "TIME")`))
		want := "1/George Russell/#27F4D2//56.2 %/true|2/Lewis Hamilton/#27F4D2/+7.0/15.0 %/true|3/SAI//+8.1/0.0 %/true|4/BOT//+2 laps//false|out/GAS////false"
		switch tt.state {
		case "verified", "revised":
			want = "1/Lewis Hamilton/#27F4D2/25//false|–/Pierre Gasly//did not finish//false|–/George Russell//disqualified//false"
			must.Equal(t, tt.name, "Disqualified: George Russell (underweight)", b.Evaluate(`shadow("live").querySelector("[part=notice]").textContent`))
		case "none":
			want = ""
		}
		must.Equal(t, tt.name+": place, driver, colour, gap, chance, high bar", want, b.Evaluate(`[...shadow("live").querySelectorAll("tbody tr")].map((tr) => [...[...tr.children].slice(0, 2).map((td) => td.textContent),
			tr.querySelector(".driver").style.getPropertyValue("--team"), tr.children[2].textContent, tr.children[3]?.textContent ?? "",
			parseFloat(getComputedStyle(tr.querySelector(".bar") ?? tr).backgroundSize.split(" ").at(-1)) >= 8].join("/")).join("|")`))
		if tt.name == "red flag" || tt.name == "revised" {
			b.Picture("live-" + tt.state)
		}
	}
}

// season is an overview in the middle of a season.
const season = `{"season": 2024, "drivers": [
		{"driver": "RUS", "name": "George Russell", "last_name": "Russell", "number": 63, "country": "GBR", "team": "Mercedes", "team_colour": "#27F4D2",
			"standing": {"position": 1, "points": 245, "wins": 2, "podiums": 4}, "career": {"starts": 128, "wins": 3, "podiums": 15, "points": 714}},
		{"driver": "HAM", "name": "Lewis Hamilton", "last_name": "Hamilton", "number": 44, "country": "GBR", "team": "Mercedes", "team_colour": "#27F4D2", "standing": {"points": 0.5, "wins": 0, "podiums": 0}}],
	"team_mates": [{"team": "Mercedes", "qualifying_rounds": 23, "race_rounds": 20, "median_gap_ms": 123, "first": {"driver": "RUS", "name": "George Russell", "qualifying_ahead": 18, "race_ahead": 12, "points": 245}, "second": {"driver": "HAM", "name": "Lewis Hamilton", "qualifying_ahead": 5, "race_ahead": 8, "points": 223}}],
	"rounds": [{"gp_name": "Imola", "date": "2024-05-01", "status": "cancelled"},
		{"gp_name": "Bahrain Grand Prix", "date": "2024-06-01", "status": "finished", "prediction": {"winner": "RUS"}, "winner": "RUS"},
		{"gp_name": "São Paulo Grand Prix", "date": "2024-06-02", "status": "finished", "prediction": {"winner": "RUS"}, "winner": "HAM"},
		{"gp_name": "Jeddah Grand Prix", "date": "2024-06-08", "status": "postponed"}, {"gp_name": "Monza Grand Prix", "date": "2024-07-01", "status": "cancelled"},
		{"gp_name": "Las Vegas Grand Prix", "date": "2024-11-24", "status": "awaiting_result", "prediction": {"winner": "HAM"}},
		{"gp_name": "Qatar Grand Prix", "circuit": "Lusail", "country": "Qatar", "date": "2024-12-01", "date_start": "2024-12-01T16:00:00Z", "status": "scheduled", "prediction": {"winner": "RUS", "confidence_pct": 35.9, "podium": {"p1": "RUS", "p2": "HAM"}}},
		{"gp_name": "Abu Dhabi Grand Prix", "date": "2024-12-08", "status": "cancelled"}]}`

// TestNextElement: <gridcast-next> shows the race that runs, else the first that has not begun by the time of the service, of a
// replay or of the sandbox. It makes one request.
func TestNextElement(t *testing.T) {
	b := browsertest.Open(t)
	url, _ := serve(t)
	b.Do(chromedp.Navigate(url + "/"))
	b.Await(`customElements.get("gridcast-next") !== undefined`, "true")
	round := func(name, date, hour, status string) string {
		start := ""
		if hour != "" {
			start = `"date_start": "` + date + "T" + hour + `Z", `
		}
		return `{"gp_name": "` + name + `", "circuit": "Ring", "country": "Italy", "date": "` + date + `", ` + start + `"status": "` + status + `"}`
	}
	for _, tt := range []struct{ name, clock, rounds, state, want string }{
		{"running", "", round("A", "2024-11-24", "06:00:00", "live") + "," + round("B", "2024-12-01", "16:00:00", "scheduled"), "live", "A|Live|"},
		{"to come", "", round("A", "2024-11-24", "06:00:00", "awaiting_result") + "," + round("B", "2024-12-01", "16:00:00", "scheduled"), "counting", "B|7 d 09:19:"},
		{"no build since the start", "", round("A", "2024-11-24", "06:00:00", "scheduled") + "," + round("B", "2024-12-01", "16:00:00", "scheduled"), "counting", "B|7 d 09:19:"},
		{"starting", "", round("A", "2024-11-24", "06:40:31", "scheduled"), "starting", "A|Starting|"},
		{"without an hour", "", round("A", "2024-11-27", "", "scheduled"), "counting", "A|4 d|"},
		{"none", "", round("A", "2024-11-24", "", "cancelled"), "none", "No race is scheduled.||A: cancelled."},
		{"sandbox", "2024-12-01T14:59:30Z", round("B", "2024-12-01", "16:00:00", "scheduled"), "counting", "B|01:00:"},
	} {
		document := `{"data": {"season": 2024, "drivers": [], "team_mates": [], "rounds": [` + tt.rounds + `]}, "clock": "` + tt.clock + `"}`
		elements(t, b, `<gridcast-next key="`+strings.ReplaceAll(tt.name, " ", "-")+`"></gridcast-next>`, map[string]string{"overview": document})
		b.Await(`shadow("next").host.getAttribute("state")`, tt.state)
		must.Equal(t, tt.name+": requests", `{"overview":1}`, b.Evaluate(`JSON.stringify(asked)`))
		got := b.Evaluate(`[shadow("next").querySelector("h2").textContent, shadow("next").querySelector("[part=clock]")?.textContent ?? "", shadow("next").querySelector("[part=notice]")?.textContent ?? ""].join("|")`)
		must.Hold(t, strings.HasPrefix(got, tt.want), "%s: got %q, want %q", tt.name, got, tt.want)
		must.Equal(t, tt.name+": says that it is simulated", tt.clock != "", strings.Contains(b.Evaluate(`words("next")`), "Simulated"))
	}
}

// TestElementsShareAnswers: the elements of a page ask once for each document. <gridcast-next> names postponed and
// cancelled rounds, and one without a result. Pictures check every element at each width, also in forced colours.
func TestElementsShareAnswers(t *testing.T) {
	b := browsertest.Open(t)
	url, _ := serve(t)
	b.Do(chromedp.Navigate(url + "/"))
	b.Await(`customElements.get("gridcast-driver") !== undefined`, "true")
	const standing = `[{"position": 1, "driver": "RUS", "name": "George Russell", "team": "Mercedes", "team_colour": "#27F4D2", "points": 245, "wins": 2, "podiums": 4}, {"driver": "HAM", "name": "Lewis Hamilton", "team": "Mercedes", "team_colour": "#27F4D2", "points": 0.5, "wins": 0, "podiums": 0}]`
	elements(t, b, `<gridcast-next key="a"></gridcast-next><gridcast-standings key="a"></gridcast-standings><gridcast-standings key="a" type="constructors" rows="1"></gridcast-standings>
		<gridcast-driver key="a" driver="rus"></gridcast-driver><gridcast-driver id="other" key="a" driver="HAM"></gridcast-driver><gridcast-season key="a"></gridcast-season><gridcast-driver id="wrong" key="a" driver="XYZ">see the drivers</gridcast-driver>`, map[string]string{
		"standings": standing, "standings?type=constructors": `[{"position": 1, "team": "Mercedes", "points": 2, "wins": 1, "podiums": 2}, {"position": 2, "team": "Ferrari", "points": 1, "wins": 0, "podiums": 0}]`,
		"overview": season,
	})
	b.Await(`[...document.querySelectorAll("main > :not(h1)")].map((e) => e.getAttribute("state")).join()`, "counting,ready,ready,ready,ready,ready,none")
	must.Equal(t, "requests", "overview 1, standings 1, standings?type=constructors 1", b.Evaluate(`Object.entries(asked).map(([path, n]) => path + " " + n).sort().join(", ")`))
	must.Equal(t, "notices", "Jeddah Grand Prix: postponed.|Monza Grand Prix: cancelled.|Las Vegas Grand Prix: the result is awaited.", b.Evaluate(`[...shadow("next").querySelectorAll("[part=notice]")].map((p) => p.textContent).join("|")`))
	const cells = `[...%s.shadowRoot.querySelectorAll("tr")].map((tr) => [...tr.children].map((c) => c.textContent).join("/")).join("|")`
	for _, tt := range []struct{ element, want string }{
		{`document.querySelector("gridcast-standings")`, "Place/Driver/Wins/Points|1/George RussellMercedes/2/245|–/Lewis HamiltonMercedes/0/0.5"},
		{`document.querySelector("[rows]")`, "Place/Team/Wins/Points|1/Mercedes/1/2"},
		{`document.querySelector("gridcast-driver")`, "Period/Wins/Podiums/Points|2024/2/4/245|Career/3/15/714|Head to head/RUS/HAM|Qualifying/18/5|Race/12/8|Points/245/223"},
		{`document.getElementById("other")`, "Period/Wins/Podiums/Points|2024/0/0/0.5|Head to head/HAM/RUS|Qualifying/5/18|Race/8/12|Points/223/245"},
		{`document.querySelector("gridcast-season")`, "Race/Pick/Winner|Bahrain/Russell\u00a0✓/hit|São Paulo/Russell\u00a0✗/Hamilton|Las Vegas/Hamilton/no result yet|Qatar/Russell/no result yet"},
	} {
		must.Equal(t, tt.element, tt.want, b.Evaluate(fmt.Sprintf(cells, tt.element)))
	}
	must.Show(t, "a driver", b.Evaluate(`shadow("driver").textContent`), "George Russell", "Mercedes · number 63 · GBR", "Place 1 of the championship. 128 starts, 0 titles.", "Against Lewis Hamilton, Mercedes: a median of 0.123 s faster in qualifying")
	must.Show(t, "the other", b.Evaluate(`document.getElementById("other").shadowRoot.textContent`), "Not ranked in the championship", "0.123 s slower")
	must.Equal(t, "an unknown driver", `gridcast: <gridcast-driver> has no driver "XYZ" in 2024. Its attribute driver takes a code: RUS, HAM.`, b.Evaluate(`errors.join()`))
	b.Picture("elements")
	b.Emulate("forced-colors", "active")
	must.Hold(t, b.Evaluate(`getComputedStyle(shadow("standings").querySelector(".driver")).borderLeftColor`) == "rgb(39, 244, 210)", "forced colours take the team's away")
	b.Look("elements-forced-colours")
}

// TestElementsKeepTheLastData: after each fault an element shows its last data with their time, by the clock of the
// service. After a 429 no element of the page asks until Retry-After is over.
func TestElementsKeepTheLastData(t *testing.T) {
	b := browsertest.Open(t)
	url, _ := serve(t)
	b.Do(chromedp.Navigate(url + "/"))
	b.Await(`customElements.get("gridcast-standings") !== undefined`, "true")
	const row = `[{"position": 1, "team": "Mercedes", "points": 2, "wins": 1, "podiums": 2}]`
	const page = `<gridcast-standings key="KEY" type="constructors">see the standings</gridcast-standings><gridcast-progress key="KEY" type="constructors"></gridcast-progress>`
	for _, tt := range []struct{ status, state, words string }{
		{"0", "offline", "No connection."},
		{"401", "bad-key", "No longer updated."},
		{"403", "bad-key", "No longer updated."},
		{"422", "failed", "No longer updated."},
		{"429", "limited", "Too many requests."},
		{"503", "unavailable", "The service does not answer."},
	} {
		path := "standings?type=constructors"
		elements(t, b, strings.ReplaceAll(page, "KEY", tt.status), map[string]string{path: row, "standings-progress?type=constructors": `[{"team": "Mercedes", "rounds": [{"round": 1, "points": 25}]}]`})
		b.Await(`shadow("standings").host.getAttribute("state") + shadow("progress").host.getAttribute("state")`, "readyready")
		b.Evaluate(fmt.Sprintf(`(answers[%q] = { status: %s }, skip(303e3))`, path, tt.status))
		b.Await(`shadow("standings").host.getAttribute("state")`, tt.state)
		must.Equal(t, tt.status, tt.words+" As of "+b.Evaluate(`new Date("2024-11-24T06:40:30Z").toLocaleString([], { dateStyle: "medium", timeStyle: "short" })`)+".", b.Evaluate(`words("standings")`))
		must.Show(t, tt.status, b.Evaluate(`shadow("standings").querySelector("tbody").textContent`), "Mercedes")
		must.Equal(t, tt.status+": errors for the owner of the page", tt.state == "bad-key" || tt.state == "failed", b.Evaluate(`errors.length`) == "1")
		before := b.Evaluate(`asked["` + path + `"]`)
		b.Evaluate(`skip(61e3)`)
		if tt.status == "429" { // 90 s are not over
			b.Evaluate(`(document.querySelector("main").insertAdjacentHTML("beforeend", '<gridcast-season key="429">see the picks</gridcast-season>'), "")`)
			b.Await(`shadow("season").host.getAttribute("state") + (asked.predictions ?? 0)`, "limited0")
			must.Equal(t, "requests in the pause", before, b.Evaluate(`asked["`+path+`"]`))
			b.Look("limited")
		}
		b.Evaluate(fmt.Sprintf(`(answers[%q] = %s, skip(603e3))`, path, row))
		b.Await(`shadow("standings").host.getAttribute("state") + words("standings")`, "ready")
	}
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
