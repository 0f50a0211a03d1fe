package console_test

import (
	"context"
	"html"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gridcast/deploy/console"
	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/must"
	"gridcast/deploy/usage"
	"gridcast/edge/keys"
)

// TestUsageOfKeys shows a month of a key whose tier is too small, and one of an edge that does not answer.
func TestUsageOfKeys(t *testing.T) {
	now := time.Now()
	report := usage.Report{Until: now, Days: map[usage.Day]map[string]keys.Counts{}}
	w := newWorld(t, func(c *console.Config) {
		list, _ := must.Get2(keys.Load(t.Context(), c.Operator.Store))(t)
		for i := -1; i < 40; i++ { // tomorrow too: the page may be made after midnight
			n := keys.Counts{Requests: uint64(900 + 37*(i*i%23)), Bytes: 1 << 20}
			if i%3 == 0 {
				n.Limited = n.Requests / 4
			}
			report.Days[usage.DayOf(now.AddDate(0, 0, -i))] = map[string]keys.Counts{list.Keys[0].ID: n}
		}
		report.Days[usage.DayOf(now)][list.Keys[1].ID] = keys.Counts{Requests: 5, Unauthorized: 1}
		c.Usage = func(context.Context, usage.Day) (usage.Report, error) { return report, nil }
	})
	w.build("start")
	begin := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	report.Gaps = []usage.Gap{{Edge: "edge2:9100", From: begin, To: begin.Add(time.Hour), Why: usage.Unread}, {Edge: "edge1:9100", From: begin, To: begin.Add(30 * time.Second), Why: usage.Lost}}
	page := html.UnescapeString(w.asOperator(http.MethodGet, "/", nil, "Accept: text/html").body)
	says(t, "usage: notices", section(page, "notices"))
	shown := section(page, "keys")
	must.Show(t, "the keys", shown, "429 on 10 of 30 days", "edge edge1:9100, 2026-11-26 10:00:00 to 2026-11-26 10:00:30 UTC: not counted")
	must.Equal(t, "days with bars, and those with refusals", [2]int{31, 11}, [2]int{strings.Count(page, `width="3"`) - strings.Count(page, `class="refused"`), strings.Count(page, `class="refused"`)})
	if testing.Short() {
		return
	}
	b := browsertest.Open(t)
	w.signIn(b)
	b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#keys > .fold").open = true`))
	b.Picture("usage")
	for _, width := range []string{"1280", "390"} {
		if width == "390" {
			b.Phone()
		}
		b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("svg.bars").scrollIntoView()`))
		b.Look("usage-" + width)
		if got := b.Evaluate(`(() => { const box = document.querySelector("svg.bars").getBoundingClientRect(); return box.width > 80 && box.right <= innerWidth && box.height > 16 && [...document.querySelectorAll("#keys .scroll")].every((e) => e.scrollWidth <= e.clientWidth) })()`); got != "true" {
			t.Errorf("at %s pixels bars or actions are out of sight", width)
		}
	}
}
