package browsertest

import (
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// TestAxe checks that a fault of a page is found. If it is skipped, no page was checked by axe-core.
func TestAxe(t *testing.T) {
	if testing.Short() {
		t.Skip("short: starts a browser")
	}
	if _, err := os.Stat(axeFile()); err != nil {
		t.Skip("axe-core is not in .var/node: no page is checked by its rules; deploy/tools/npm.sh installs it")
	}
	b := Open(t)
	const page = `data:text/html,<!doctype html><html lang="en"><title>A page</title><main><h1>A page</h1>%s</main></html>`
	const good, pale = `<section><p>Section 1.</p></section>`, `<section><p style="color:%23aaa;background:%23fff">Pale.</p></section>`
	for _, tt := range []struct{ body, want string }{
		{`<p>Nothing is wrong.</p>`, ""},
		{`<img src="data:,">`, "image-alt"},
		{`<p style="color:%23aaa;background:%23fff">Pale.`, "color-contrast"},
		{`<div style="height:2em;overflow:auto"><p style="height:9em">Long.</p></div>`, "scrollable-region-focusable"},
		{good, ""},
		// The pale section is beside one that has passed, and does not pass at the second look.
		{good + pale, "color-contrast"},
		{good + pale, "color-contrast"},
		{strings.Replace(good, "1.", "2.", 1) + `<img src="data:,">`, "image-alt"},
		// A section that has passed does not pass with another style.
		{`<style>p { color:%23aaa }</style>` + good, "color-contrast"},
	} {
		b.Do(chromedp.Navigate(strings.Replace(page, "%s", tt.body, 1)))
		const html = `document.body.outerHTML`
		before := b.Evaluate(html)
		if got := strings.Join(b.violations(), "\n"); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q in it", tt.body, got, tt.want)
		}
		if after := b.Evaluate(html); after != before {
			t.Errorf("the check turns %s into %s", before, after)
		}
	}
}
