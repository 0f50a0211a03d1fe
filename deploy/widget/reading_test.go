package widget_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/must"
	"gridcast/schemas/docs"
)

// cut lists text that a reader cannot see without scrolling sideways, at most three pieces, also in the elements of the widget. A
// line of code is not broken: its box scrolls, and can be reached by the keyboard.
const cut = `((inside) => inside("main, main *, #contents a, .tools *", document))(function inside(which, root) {
	return [...root.querySelectorAll(which)].flatMap((e) => e.shadowRoot ? [e, ...inside("*", e.shadowRoot)] : [e]);
}).filter((e) => e.checkVisibility() && !e.matches(".unseen, .unseen *, input, svg *")
	&& e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline"
	&& !(e.matches("pre") && getComputedStyle(e).overflowX === "auto" && e.tabIndex === 0))
	.map((e) => e.tagName + " " + e.textContent.trim().slice(0, 40)).slice(0, 3).join("; ")`

// TestEveryPageFits opens the start page, the status and every page of the documentation at the width of a desktop and of a
// phone: the page and each part of it but code show all of their text without scrolling sideways, and pictures load. No line
// of a program is broken, and no heading repeats the title. A cell of a stacked table says its own column, and an empty one nothing.
func TestEveryPageFits(t *testing.T) {
	b := browsertest.Open(t)
	url, _ := serve(t)
	pages := 0
	for _, narrow := range []bool{false, true} {
		if narrow {
			b.Phone()
		}
		for _, d := range append(docs.Documents(), docs.Document{Path: "/", ContentType: "text/html"}, docs.Document{Path: "/status", ContentType: "text/html"}) {
			if !strings.HasPrefix(d.ContentType, "text/html") {
				continue
			}
			pages++
			b.Do(chromedp.Navigate(url + d.Path))
			b.Evaluate(`(document.querySelectorAll("details").forEach((fold) => { fold.open = true; }), document.querySelectorAll("img").forEach((image) => { image.loading = "eager"; }), "")`)
			b.Await(`[...document.images].every((image) => image.complete && image.naturalWidth > 0)`, "true")
			b.Await(`document.querySelectorAll("[state=loading]").length`, "0")
			must.Equal(t, d.Path+": headings that repeat the title", "", b.Evaluate(`[...document.querySelectorAll("h2")].map((e) => e.textContent).filter((text) => text === document.querySelector("h1").textContent).join()`))
			if got := b.Evaluate(cut); got != "" {
				t.Errorf("%s, narrow %t: cut: %s", d.Path, narrow, got)
			}
			must.Equal(t, fmt.Sprintf("%s, narrow %t: lines of code that are broken", d.Path, narrow), "0", b.Evaluate(`[...document.querySelectorAll("pre:not(#try-headers)")].filter((e) => !e.querySelector(".json") && getComputedStyle(e).whiteSpace !== "pre").length`))
			must.Equal(t, fmt.Sprintf("%s, narrow %t: stacked tables whose cells do not say their column", d.Path, narrow), "0",
				b.Evaluate(`[...document.querySelectorAll(".stack td + td")].filter((e) => e.closest("table").tHead?.checkVisibility() === false && e.checkVisibility() && (e.textContent === "" && !e.querySelector("svg") || !e.dataset.head || getComputedStyle(e, "::before").content === "none"
					|| [...e.closest("table").tHead.rows[0].cells].findIndex((head) => head.textContent === e.dataset.head) !== [...e.parentElement.cells].slice(0, e.cellIndex).reduce((sum, c) => sum + c.colSpan, 0))).length`))
			must.Equal(t, fmt.Sprintf("%s, narrow %t: the page scrolls sideways", d.Path, narrow), "false", b.Evaluate(`document.documentElement.scrollWidth > innerWidth`))
		}
	}
	must.Hold(t, pages > 60, "got %d pages, want all of them twice", pages)
}

// TestSearchFinds types words that readers type. One of the first five hits is on a page that answers.
func TestSearchFinds(t *testing.T) {
	b := browsertest.Open(t)
	url, _ := serve(t)
	b.Do(chromedp.Navigate(url + "/docs/errors"))
	b.Await(`document.getElementById("find").hidden`, "false")
	for words, page := range map[string]string{
		"CORS": "keys", "timezone": "weekends", "time zone": "weekends", "withdraw": "picks", "postponed": "race-day", "etag": "caching", "429": "keys", "rate limit": "keys",
		"python": "/docs", "csv": "downloads", "Excel": "downloads", "duckdb": "downloads", "webhook": "webhooks", "iframe": "widget", "delay": "live", "dnf": "results", "sprint": "sessions",
		"points": "standings-progress", "licence": "service", "license": "service", "attribution": "service", "uptime": "service", "sandbox": "keys", "changelog": "stability",
		"red flag": "race-day", "countdown": "site", "calibration": "probabilities", "proof": "audit", "api key": "keys", "weather": "coverage", "tires": "coverage", "1987": "coverage",
		"historical": "coverage", "websocket": "webhooks", "websockets": "webhooks", "streaming": "webhooks", "webhook signature": "webhooks", "compression": "caching", "gzip": "caching",
		"pagination": "changes-log", "pricing": "keys", "laptimes": "sessions", "lap times": "sessions", "photo": "drivers", "oauth": "keys", "php": "/docs", "mcp": "service", "downtime": "service",
		"daylight saving": "weekends", "push notifications": "webhooks", "head to head": "head-to-head", "withdrawal": "picks", "postponement": "race-day", "cancellation": "race-day", "penalty": "sessions",
		"cache": "caching", "polling": "webhooks", "historic": "coverage", "CORS error": "keys", "real time": "live", "tire": "coverage",
		"zzyzx": "No page has all of these words. Try one word, or a shorter one.",
	} {
		b.Evaluate(fmt.Sprintf(`(document.getElementById("search").value = %q, document.getElementById("search").dispatchEvent(new Event("input")), "")`, words))
		b.Await(`document.querySelectorAll("#hits li").length > 0`, "true")
		got := b.Evaluate(`[...document.querySelectorAll("#hits li")].slice(0, 5).map((hit) => hit.querySelector("a")?.pathname.replace("/docs/", "") ?? hit.textContent).join("|")`)
		must.Hold(t, slices.Contains(strings.Split(got, "|"), page), "%q finds %s first, want %s", words, got, page)
		b.Evaluate(`(document.getElementById("hits").replaceChildren(), "")`)
	}
}
