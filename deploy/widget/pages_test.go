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

// serve starts an edge with the releases of the widget and with all parts of the start page. It returns its address
// and a key.
func serve(t *testing.T) (url, key string) {
	t.Helper()
	store := memblob.New()
	if err := keys.Update(t.Context(), store, func(d *keys.List) (err error) {
		_, key, err = d.Create(keys.Request{Name: "pages", Tier: "pro"}, time.Now())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	edgetest.Publish(t, store, 1, "")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := edge.DefaultConfig()
	cfg.StartPage = edge.Shown
	e, err := edge.New(cfg, edge.Deps{
		Store: store, Log: slog.New(slog.DiscardHandler), Listener: listener, Widgets: widget.Releases(),
		RaceTime: func(time.Time) time.Time { return edgetest.AbuDhabi.Add(-time.Hour) },
		Start:    func() edge.StartPage { return edge.StartPage{Key: key} },
	})
	if err != nil {
		t.Fatal(err)
	}
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
