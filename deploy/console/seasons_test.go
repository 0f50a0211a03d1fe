package console_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/sourcetest"
	"gridcast/builder/testseason"
	"gridcast/deploy/console"
	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/must"
)

// mostBytes limits the console's page, so that a phone on a poor line loads it in a few seconds.
const mostBytes = 150 << 10

// The console's page shows one season, however many the archive has.
func TestPageIsSmall(t *testing.T) {
	for _, tt := range []struct {
		name    string
		seasons func(testing.TB) *season.Archive
		oldest  string
	}{
		{"the seasons that come with gridcast", archivetest.Embedded, "2007"},
		{"all seasons", func(t testing.TB) *season.Archive {
			a, _ := must.Get2(f1db.Import(sourcetest.Path(t, sourcetest.F1DB2026), f1db.Options{}))(t)
			return a
		}, "1950"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			stored := archivetest.Put(t, archive.NewStore(w.store), archivetest.Stored(t, tt.seasons(t).Facts()))
			w.set(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
			must.Get(testseason.Fresh(t, w.builder.Ledger).Append(t.Context(), w.now(), "test", func(s *ledger.Fold) ([]ledger.Event, error) {
				keys, err := ledger.AssignKeys(s, stored.Archive.Facts().Seasons)
				return []ledger.Event{{Type: ledger.KeysAssigned, Keys: keys}}, err
			}))(t)
			for path, year := range map[string]string{"/": "2026", "/?season=" + tt.oldest: tt.oldest, "/?season=2024": "2024"} {
				page := w.asOperator("GET", path, nil, "Accept: text/html").body
				must.Hold(t, len(page) <= mostBytes, "the page %s has %d bytes, want at most %d", path, len(page), mostBytes)
				for _, want := range []string{"<h2>Picks of " + year + "</h2>", `<a href="/?season=` + tt.oldest + `#season"`} {
					must.Equal(t, path+" has "+want, 1, strings.Count(page, want))
				}
			}
		})
	}
}

// Without scripts the page of an action on a round leads back to the season of the round.
func TestBackToTheSeason(t *testing.T) {
	w := newWorld(t)
	const browser, correct = "Accept: text/html", "/results/2024001/correct"
	form := url.Values{"order": {"VER PER SAI LEC RUS NOR HAM PIA ALO STR"}, "reason": {"document 42"}}
	asked := w.asOperator("POST", correct, form, browser).body
	const back = `<a href="/?season=2024#season">`
	must.Equal(t, "links of the question to the season", 1, strings.Count(asked, back))
	_, seen, _ := strings.Cut(asked, `name="seen" value="`)
	seen, _, _ = strings.Cut(seen, `"`)
	form.Set("seen", seen)
	form.Set("confirm", "yes")
	run := w.asOperator("GET", w.asOperator("POST", correct, form, browser).Header.Get("Location"), nil, browser).body
	must.Equal(t, "links of the run to the season", 1, strings.Count(run, back))
}

// An operator opens an earlier season, acts on one of its rounds, and stays at that season.
func TestSeasonsInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("short: a browser takes half a minute")
	}
	w := newWorld(t, func(c *console.Config) { c.EdgesWait = time.Minute })
	w.set(time.Date(2025, 2, 1, 12, 0, 0, 0, time.UTC))
	w.build("a winter later")
	b := browsertest.Open(t)
	b.Do(chromedp.Navigate(w.console.URL), browsertest.Visible(chromedp.CSS(`input[name=token]`)),
		chromedp.SendKeys(chromedp.CSS(`input[name=name]`), "anna"), browsertest.Type(chromedp.CSS(`input[name=token]`), token),
		chromedp.Submit(chromedp.CSS(`input[name=token]`)), browsertest.Visible(chromedp.CSS(`#served`)))
	if title := b.Text("#season h2"); title != "Picks of 2025" {
		t.Errorf("the console begins with %q, want the current season", title)
	}
	b.Do(browsertest.Press(chromedp.CSS(`#season > .fold > details > summary`)))
	b.Picture("30-seasons")
	b.Do(browsertest.Press(chromedp.CSS(`#season a[href*="2024"]`)), browsertest.Visible(chromedp.CSS(`#season [action='/results/2024001/correct'], #season .round`)))
	b.Await(`document.querySelector("#season h2").textContent`, "Picks of 2024")
	b.Phone()
	b.Await(`document.documentElement.scrollWidth <= innerWidth`, "true")
	const form = `#season form[action='/results/2024001/correct']`
	b.Do(chromedp.Evaluate[chromedp.Void](`for (let e = document.querySelector("`+form+`").closest("details"); e; e = e.parentElement.closest("details")) e.open = true`),
		browsertest.Type(chromedp.CSS(form+` [name=reason]`), "document 42"))
	b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("` + form + ` [name=order]").value = "VER PER SAI LEC RUS NOR HAM PIA ALO STR"`))
	b.Do(browsertest.Press(chromedp.CSS(form+` button:not([type=button])`)), browsertest.Visible(chromedp.CSS(`#ask[open]`)))
	b.Do(browsertest.Press(chromedp.CSS(`#ask button[value=yes]`)), browsertest.Visible(chromedp.CSS(`#run[data-state=done]`)))
	b.Look("31-season-corrected")
	b.Await(`document.querySelector("#season h2").textContent + document.querySelectorAll("#season .seasons [aria-current]").length`, "Picks of 20241")
	b.Axe("31-season-corrected")
}
