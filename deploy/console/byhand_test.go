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

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/season"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/console"
	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
)

// timingPage is qualifying in Las Vegas as a site shows it: names with and without codes and accents. It lacks Albon and Pérez.
const timingPage = `Pos.	No.	Driver	Team	Q1	Q2	Q3	Laps
1	63	George RussellRUS	Mercedes	1:33.186	1:32.779	1:32.312	25
2	55	Carlos SainzSAI	Ferrari	1:33.484	1:32.711	1:32.410	24
3	10	Pierre Gasly	Alpine	1:33.691	1:32.879	1:32.664	25
4	16	Charles Leclerc	Ferrari	1:33.446	1:33.016	1:32.783	23
5	1	Max Verstappen	Red Bull Racing	1:33.299	1:33.085	1:32.797	21
6	4	L. NORRIS	McLaren	1:33.592	1:33.099	1:33.008	20
7	22	TSU	RB	1:33.789	1:33.089	1:33.029	25
8	81	PIA	McLaren	1:33.450	1:33.024	1:33.033	21
9	27	Nico Hülkenberg	Haas	1:33.920	1:33.114	1:33.062	17
10	44	Lewis Hamilton	Mercedes	1:33.225	1:32.567	1:48.106	24
11	31	Esteban Ocon	Alpine	1:33.968	1:33.221		18
12	20	Kevin Magnussen	Haas	1:33.991	1:33.297		12
13	24	Guanyu ZHOU ZHO	Sauber	1:34.079	1:33.566		17
14	43	Franco Colapinto	Williams	1:33.746	1:33.749		16
15	30	Liam Lawson	RB	1:34.087	1:34.257		17
16	14	Fernando Alonso	Aston Martin	1:34.258			9
17	77	Valtteri Bottas	Sauber	1:34.430			10
18	18	Lance Stroll	Aston Martin	1:34.484			3
`

// timingRead is the form's text after timingPage is pasted.
const timingRead = `RUS 1:33.186 1:32.779 1:32.312
SAI 1:33.484 1:32.711 1:32.410
GAS 1:33.691 1:32.879 1:32.664
LEC 1:33.446 1:33.016 1:32.783
VER 1:33.299 1:33.085 1:32.797
NOR 1:33.592 1:33.099 1:33.008
TSU 1:33.789 1:33.089 1:33.029
PIA 1:33.450 1:33.024 1:33.033
HUL 1:33.920 1:33.114 1:33.062
HAM 1:33.225 1:32.567 1:48.106
OCO 1:33.968 1:33.221
MAG 1:33.991 1:33.297
ZHO 1:34.079 1:33.566
COL 1:33.746 1:33.749
LAW 1:34.087 1:34.257
ALO 1:34.258
BOT 1:34.430
STR 1:34.484
PER ALB BEA`

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
	must.Do(w.t, archive.NewStore(w.store).Put(w.t.Context(), archivetest.Stored(w.t, facts)))
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
	must.Long(t, "a browser takes half a minute")
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
	w.signIn(b)
	says(t, "by hand on a phone: notices", b.Text("#notices"))
	open := func(form string) {
		t.Helper()
		b.Do(chromedp.Navigate(w.console.URL), browsertest.Visible(chromedp.CSS(`#served`)), chromedp.Evaluate[chromedp.Void](
			`for (let e = document.querySelector("`+form+`").closest("details"); e; e = e.parentElement.closest("details")) e.open = true`),
			browsertest.Visible(chromedp.CSS(form+` textarea`)))
	}
	value := func(form string) string {
		t.Helper()
		return b.Value(form + " textarea")
	}
	typeIn := func(form, order string) {
		t.Helper()
		b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("`+form+` textarea").value = ""`),
			browsertest.Type(chromedp.CSS(form+` textarea`), order))
	}
	send := func(form, reason string) {
		t.Helper()
		b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("`+form+` [name=reason]").value = ""`),
			browsertest.Type(chromedp.CSS(form+` [name=reason]`), reason), browsertest.Press(chromedp.CSS(form+` > button`)))
	}
	yes := func(name string) {
		t.Helper()
		b.Do(browsertest.Visible(chromedp.CSS(`#ask[open]`)))
		says(t, "by hand on a phone: "+name+", asked", b.Text("#ask"))
		b.Look(name + "-asked")
		b.Do(browsertest.Press(chromedp.CSS(`#ask button[value=yes]`)), browsertest.Visible(chromedp.CSS(`#run[data-state=done], #run[data-state=failed]`)))
		b.Look(name + "-done")
		says(t, "by hand on a phone: "+name+", done", b.Text("#run-text"))
	}

	// A typing error appears beside the form, with a suggestion.
	const qualifying, grid, result = `form[action='/facts/2024022/qualifying']`, `form[action='/facts/2024022/grid']`, `form[action='/results/2024022/enter']`
	open(qualifying)
	b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("`+qualifying+` textarea").value = ""`),
		chromedp.SendKeys(chromedp.CSS(qualifying+` textarea`), "RSU SAI GAS")) // key by key, which reads the field at each
	send(qualifying, "every source is down")
	b.Do(browsertest.Visible(chromedp.CSS(qualifying + ` + #run[data-state=failed]`)))
	says(t, "by hand on a phone: a slip", b.Text("#run-text"))
	b.Look("slip")
	b.Do(chromedp.Navigate(w.console.URL), browsertest.Visible(chromedp.CSS(`#served`)))
	says(t, "by hand on a phone: notices after a slip", b.Text("#notices"))
	b.Do(browsertest.Press(chromedp.CSS(`#notices a[href='#facts-2024022-qualifying']`)), browsertest.Visible(chromedp.CSS(qualifying+` ol.order`)))
	b.Evaluate(`(() => {
		const field = document.querySelector("` + qualifying + ` textarea"), data = new DataTransfer();
		data.setData("text", ` + strconv.Quote(timingPage) + `);
		field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
	})()`)
	if got, want := value(qualifying), timingRead; got != want {
		t.Errorf("after a timing page is pasted the form has %q, want %q", got, want)
	}
	says(t, "by hand on a phone: a timing page that lacks drivers", b.Text(qualifying+" label + .hint"))
	b.Look("pasted")
	typeIn(qualifying, "RUS SAI GAS LEC VER NOR TSU PIA HUL HAM OCO MAG ZHO COL LAW ALO STR BOT ALB PER")
	b.Axe("qualifying is entered")
	send(qualifying, "every source is down")
	yes("qualifying")

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
	yes("grid")
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
	yes("result")
	r := w.round(2024022)
	if r.State != almanac.Finished || len(r.Valid()) != 20 {
		t.Fatalf("at the end the round is in state %v with %d rows", r.State, len(r.Valid()))
	}
	if got := fmt.Sprintf("%s %g %s", r.Code(r.Valid()[0].Driver), r.Valid()[0].Points, r.Code(r.Valid()[1].Driver)); got != "RUS 25 VER" {
		t.Errorf("the result begins with %s, want RUS 25 VER", got)
	}
	log := must.Get(auditlog.Load(t.Context(), w.store))(t)
	var did []string
	for _, e := range log.Entries() {
		did = append(did, fmt.Sprintf("%s %s %s: %s", e.Actor, e.Action, e.Subject, e.Reason))
	}
	must.Equal(t, "the audit log", []string{
		"claimed:anna set_qualifying 2024022: every source is down", "claimed:anna set_grid 2024022: every source is down",
		"claimed:anna enter_result 2024022: seen on television",
	}, did)
}
