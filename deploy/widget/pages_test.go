package widget_test

import (
	"context"
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

// TestPagesKeepTheirPolicy opens every page of an edge in a browser: the widget, and the form that tries requests,
// work, and the policy blocks nothing but a style that does not belong to the page. No policy names the widget's style
// sheet, because the policy of a foreign page does not know it either.
func TestPagesKeepTheirPolicy(t *testing.T) {
	b := browsertest.Open(t)
	store := memblob.New()
	var key string
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
	e, err := edge.New(edge.DefaultConfig(), edge.Deps{
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
	url := "http://" + listener.Addr().String()
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
