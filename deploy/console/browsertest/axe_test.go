package browsertest

import (
	"os"
	"strings"
	"testing"

	"gridcast/deploy/must"

	"github.com/chromedp/chromedp"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// TestAxe checks that a fault of a page is found. If it is skipped, no page was checked by axe-core.
func TestAxe(t *testing.T) {
	must.Long(t, "starts a browser")
	if _, err := os.Stat(axeFile()); err != nil {
		t.Skip("axe-core is not in .var/node: no page is checked by its rules; deploy/tools/npm.sh installs it")
	}
	b := Open(t)
	const page = `data:text/html,<!doctype html><html lang="en"><title>A page</title><main><h1>A page</h1>%s</main></html>`
	const good, pale = `<section><p>Section 1.</p></section>`, `<section><p style="color:%23aaa;background:%23fff">Pale.</p></section>`
	const table = `<section id="table"><table><thead><tr><th>Name</th></tr></thead><tbody><tr><td>Good 1.</td></tr>%s</tbody></table></section>`
	for _, tt := range []struct{ body, want string }{
		{`<p>Nothing is wrong.</p>`, ""},
		{`<img src="data:,">`, "image-alt"},
		{`<p style="color:%23aaa;background:%23fff">Pale.`, "contrast of 2.32"},
		{`<div style="background:%23222"><p style="color:%23fff;background:rgb(255 255 255 / .8)">Veiled.</div>`, "contrast of 1.50"},
		{`<p style="color:%23000;opacity:.4">Faded.`, "contrast of 2.85"},
		{`<p style="color:%23aaa;position:absolute">Over.`, "no background of its own"},
		{`<div id="x"></div><script>x.attachShadow({ mode: "open" }).innerHTML = "<p style='color:%23aaa'>Within.</p>"</script>`, "contrast of 2.32"},
		{`<label>Field <input value="typed" style="color:%23aaa;background:%23fff"></label>`, "contrast of 2.32"},
		{`<div style="height:2em;overflow:auto"><p style="height:9em">Long.</p></div>`, "scrollable-region-focusable"},
		{`<p>A long text with <a href="/" style="color:%23000;text-decoration:none">a link</a> within it.</p>`, "link-in-text-block"},
		{good, ""},
		// The pale section is beside one that has passed, and does not pass at the second look.
		{good + pale, "contrast of 2.32"},
		{good + pale, "contrast of 2.32"},
		{strings.Replace(good, "1.", "2.", 1) + `<img src="data:,">`, "image-alt"},
		// A row with a fault is beside one that has passed, and does not pass at the second look. Nor does the rest of the section.
		{strings.Replace(table, "%s", "", 1), ""},
		{strings.Replace(table, "%s", `<tr><td><img src="data:,"></td></tr>`, 1), "image-alt"},
		{strings.Replace(table, "%s", `<tr><td><img src="data:,"></td></tr>`, 1), "image-alt"},
		{strings.Replace(strings.Replace(table, "%s", "", 1), "Name", `Name <img src="data:,">`, 1), "image-alt"},
		{strings.Replace(table, "%s", `<tr><td>Better.</td></tr>`, 1), ""},
		// A section that has passed does not pass with another style.
		{`<style>p { color:%23aaa }</style>` + good, "contrast of 2.32"},
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
	// A page with live parts may replace a section that has passed, right after it was described. The new one is checked.
	changing := `<script>let parts; Object.defineProperty(window, "described", { get: () => parts, set: (now) => { parts = now; queueMicrotask(() => {
		document.getElementById("table").outerHTML = "<section><img src='data:,'></section>" }) } })</script>` + strings.Replace(table, "%s", "", 1)
	b.Do(chromedp.Navigate(strings.Replace(page, "%s", changing, 1)))
	must.Show(t, "the faults of a section that is replaced meanwhile", strings.Join(b.violations(), "\n"), "image-alt")
}
