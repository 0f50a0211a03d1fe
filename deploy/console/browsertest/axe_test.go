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
	for body, want := range map[string]string{
		`<p>Nothing is wrong.</p>`:                        "",
		`<img src="data:,">`:                              "image-alt",
		`<p style="color:%23aaa;background:%23fff">Pale.`: "color-contrast",
		`<div style="height:2em;overflow:auto"><p style="height:9em">Long.</p></div>`: "scrollable-region-focusable",
	} {
		b.Do(chromedp.Navigate(strings.Replace(page, "%s", body, 1)))
		if got := strings.Join(b.violations(), "\n"); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q in it", body, got, want)
		}
	}
}
