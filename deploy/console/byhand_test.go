package console_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/season"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/console"
	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/operator"
)

// timingPage is qualifying as a site shows it: names with and without codes and accents. It lacks Albon and Pérez.
const timingPage = "Pos.\tNo.\tDriver\tTeam\tQ1\tQ2\tQ3\tLaps\n" +
	"1\t63\tGeorge RussellRUS\tMercedes\t1:33.186\t1:32.779\t1:32.312\t22\n2\t55\tCarlos SainzSAI\tFerrari\t1:33.484\t1:33.016\t1:32.410\t23\n" +
	"3\t10\tPierre Gasly\tAlpine\n4\t16\tCharles Leclerc\tFerrari\n5\t1\tMax Verstappen\tRed Bull Racing\n6\t4\tL. NORRIS\tMcLaren\n" +
	"7\t22\tTSU\tRB\n8\t81\tPIA\tMcLaren\n9\t27\tNico Hülkenberg\tHaas\n10\t44\tLewis Hamilton\tMercedes\n11\t31\tEsteban Ocon\tAlpine\n" +
	"12\t20\tKevin Magnussen\tHaas\n13\t24\tGuanyu ZHOU ZHO\tSauber\n14\t43\tFranco Colapinto\tWilliams\n15\t30\tLiam Lawson\tRB\n" +
	"16\t14\tFernando Alonso\tAston Martin\n17\t18\tLance Stroll\tAston Martin\n18\t77\tValtteri Bottas\tSauber\n"

// silence has the world know nothing of its weekend, nor of those after it, but when they are.
func (w *world) silence() {
	w.t.Helper()
	facts := w.archive.Facts()
	facts.Seasons = slices.DeleteFunc(slices.Clone(facts.Seasons), func(s season.Season) bool { return s.Year > 2024 })
	year := &facts.Seasons[len(facts.Seasons)-1]
	year.Rounds = slices.Clone(year.Rounds)
	for i, r := range year.Rounds {
		if r.Number >= w.weekend.Number {
			year.Rounds[i] = archivetest.Scheduled(&r)
		}
	}
	facts.Drivers, facts.Headshots = named(&facts), season.Headshots{}
	if err := archive.NewStore(w.store).Put(w.t.Context(), archivetest.Stored(w.t, facts)); err != nil {
		w.t.Fatal(err)
	}
}

// named returns the drivers named in a row of the seasons.
func named(f *season.Facts) map[season.DriverID]season.Driver {
	drivers := make(map[season.DriverID]season.Driver)
	for _, s := range f.Seasons {
		for _, r := range s.Rounds {
			for _, row := range r.Entries {
				drivers[row.Driver] = f.Drivers[row.Driver]
			}
			for _, laps := range r.Practice {
				for _, row := range laps {
					drivers[row.Driver] = f.Drivers[row.Driver]
				}
			}
			for _, row := range r.Results {
				drivers[row.Driver] = f.Drivers[row.Driver]
			}
			for _, row := range r.Qualifying {
				drivers[row.Driver] = f.Drivers[row.Driver]
			}
			for _, row := range r.DriverStandings {
				drivers[row.Driver] = f.Drivers[row.Driver]
			}
		}
	}
	return drivers
}

// TestWeekendByHandOnAPhone: every source fails on Saturday noon, and one person with a phone carries
// the weekend to a verified result through the console alone: by typing, by dragging, and by keys.
func TestWeekendByHandOnAPhone(t *testing.T) {
	if testing.Short() {
		t.Skip("short: a browser takes half a minute")
	}
	w := newWorld(t, func(c *console.Config) {
		c.Sources = func() []operator.Source {
			return []operator.Source{{Name: "f1db", Detail: "revision 1234", Problem: "connection refused, 12 times"}}
		}
	})
	w.silence()
	w.set(time.Date(2024, 11, 23, 12, 0, 0, 0, time.UTC)) // qualifying was at 06:00
	w.build("start")
	b := browsertest.Open(t)
	b.Phone()
	b.Do(chromedp.Navigate(w.console.URL), chromedp.WaitVisible(chromedp.CSS(`input[name=token]`)),
		chromedp.SendKeys(chromedp.CSS(`input[name=name]`), "anna"), chromedp.SendKeys(chromedp.CSS(`input[name=token]`), token),
		chromedp.Submit(chromedp.CSS(`input[name=token]`)), chromedp.WaitVisible(chromedp.CSS(`#control`)))
	if got := b.Text("#notices"); !strings.Contains(got, "The source f1db fails") {
		t.Errorf("the console says %q, want that the source fails", got)
	}
	open := func(form string) {
		t.Helper()
		b.Do(chromedp.Navigate(w.console.URL), chromedp.WaitVisible(chromedp.CSS(`#served`)), chromedp.Evaluate[chromedp.Void](
			`for (let e = document.querySelector("`+form+`").closest("details"); e; e = e.parentElement.closest("details")) e.open = true`),
			chromedp.WaitVisible(chromedp.CSS(form+` textarea`)))
	}
	value := func(form string) string {
		t.Helper()
		return b.Value(form + " textarea")
	}
	typeIn := func(form, order string) {
		t.Helper()
		b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("`+form+` textarea").value = ""`),
			chromedp.SendKeys(chromedp.CSS(form+` textarea`), order))
	}
	send := func(form, reason string) {
		t.Helper()
		b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("`+form+` [name=reason]").value = ""`),
			chromedp.SendKeys(chromedp.CSS(form+` [name=reason]`), reason), browsertest.Press(chromedp.CSS(form+` > button`)))
	}
	yes := func(name string, want ...string) {
		t.Helper()
		b.Do(chromedp.WaitVisible(chromedp.CSS(`#ask[open]`)))
		asked := b.Text("#ask")
		for _, part := range want {
			if !strings.Contains(asked, part) {
				t.Errorf("%s: it asks %q, want %q in it", name, asked, part)
			}
		}
		b.Look(name + "-asked")
		b.Do(browsertest.Press(chromedp.CSS(`#ask button[value=yes]`)), chromedp.WaitVisible(chromedp.CSS(`#run[data-state=done], #run[data-state=failed]`)))
		b.Look(name + "-done")
		if got := b.Text("#run-text"); !strings.Contains(got, "Version") {
			t.Errorf("%s: it says %q", name, got)
		}
	}

	// A typing error appears beside the form, with a suggestion.
	const qualifying, grid, result = `form[action='/facts/2024022/qualifying']`, `form[action='/facts/2024022/grid']`, `form[action='/results/2024022/enter']`
	open(qualifying)
	typeIn(qualifying, "RSU SAI GAS")
	send(qualifying, "every source is down")
	b.Do(chromedp.WaitVisible(chromedp.CSS(qualifying + ` + #run[data-state=failed]`)))
	if got := b.Text("#run-text"); !strings.Contains(got, `line 1: "RSU"`) || !strings.Contains(got, "RUS (George Russell)") {
		t.Errorf("after a slip it says %q", got)
	}
	b.Look("slip")
	b.Do(chromedp.Navigate(w.console.URL), chromedp.WaitVisible(chromedp.CSS(`#served`)))
	if got := b.Text("#notices"); !strings.Contains(got, "gridcast qualifying set 2024022 ") {
		t.Errorf("the console says %q, want the command that enters qualifying", got)
	}
	b.Do(browsertest.Press(chromedp.CSS(`#notices a[href='#facts-2024022-qualifying']`)), chromedp.WaitVisible(chromedp.CSS(qualifying+` ol.order`)))
	b.Evaluate(`(() => {
		const field = document.querySelector("` + qualifying + ` textarea"), data = new DataTransfer();
		data.setData("text", ` + strconv.Quote(timingPage) + `);
		field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
	})()`)
	if got, want := value(qualifying), "RUS SAI GAS LEC VER NOR TSU PIA HUL HAM OCO MAG ZHO COL LAW ALO STR BOT PER ALB BEA"; got != want {
		t.Errorf("after a timing page is pasted the form has %q, want %q", got, want)
	}
	if got := b.Text(qualifying + " label + .hint"); !strings.Contains(got, "18 drivers read") || !strings.Contains(got, "It lacks PER ALB BEA: they stand last.") {
		t.Errorf("after a timing page without two drivers it says %q", got)
	}
	b.Look("pasted")
	typeIn(qualifying, "RUS SAI GAS LEC VER NOR TSU PIA HUL HAM OCO MAG ZHO COL LAW ALO STR BOT ALB PER")
	b.Axe("qualifying is entered")
	send(qualifying, "every source is down")
	yes("qualifying", "Is this the qualifying of the Las Vegas Grand Prix?", "The pick is made at", "Qualifying of 20 drivers")

	// The grid is filled with qualifying; Sainz is moved up with the keyboard, Verstappen is dragged to the front.
	w.set(w.now().Add(time.Minute))
	open(grid)
	if got := value(grid); !strings.HasPrefix(got, "RUS SAI GAS LEC VER") {
		t.Errorf("the form of the grid has %q, want the order of qualifying", got)
	}
	b.Do(chromedp.Focus(chromedp.CSS(grid+` .order li[data-code=SAI] button`)), chromedp.KeyEvent(kb.ArrowUp))
	b.Drag(grid+` .order li[data-code=VER] .grip`, grid+` .order li[data-code=SAI] .grip`)
	if got := value(grid); !strings.HasPrefix(got, "VER SAI RUS GAS LEC NOR") {
		t.Errorf("after moving by keys and by finger the form has %q, want VER SAI RUS GAS LEC NOR", got)
	}
	b.Look("grid-moved")
	send(grid, "every source is down")
	yes("grid", "Is this the grid", "In order: VER SAI RUS")
	if r := w.round(2024022); r.Pick == nil || !r.Pick.GridKnown || r.Facts.Grid[0].Driver != "max-verstappen" {
		t.Fatalf("after the grid was entered there is the pick %+v on %+v", r.Pick, r.Facts.Grid)
	}

	// The race is over, and no source has the winner.
	w.set(w.weekend.StartsAt().Add(2 * time.Hour))
	w.build("the race is run")
	open(result)
	if got := value(result); !strings.HasPrefix(got, "VER SAI RUS") {
		t.Errorf("the form of the result has %q, want those who started", got)
	}
	b.Drag(result+` .order li[data-code=RUS] .grip`, result+` .order li[data-code=VER] .grip`)
	b.Look("result-dragged")
	send(result, "seen on television")
	yes("result", "The winner is George Russell", "Is this the result of the Las Vegas Grand Prix?")
	r := w.round(2024022)
	if r.State != almanac.Finished || len(r.Valid()) != 20 {
		t.Fatalf("at the end the round is in state %v with %d rows", r.State, len(r.Valid()))
	}
	if got := fmt.Sprintf("%s %g %s", r.Code(r.Valid()[0].Driver), r.Valid()[0].Points, r.Code(r.Valid()[1].Driver)); got != "RUS 25 VER" {
		t.Errorf("the result begins with %s, want RUS 25 VER", got)
	}
	log, err := auditlog.Load(t.Context(), w.store)
	if err != nil {
		t.Fatal(err)
	}
	var did []string
	for _, e := range log.Entries() {
		did = append(did, fmt.Sprintf("%s %s %s: %s", e.Actor, e.Action, e.Subject, e.Reason))
	}
	if diff := cmp.Diff([]string{
		"claimed:anna set_qualifying 2024022: every source is down", "claimed:anna set_grid 2024022: every source is down",
		"claimed:anna enter_result 2024022: seen on television",
	}, did); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
}
