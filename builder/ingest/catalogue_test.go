package ingest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"gridcast/deploy/golden"
)

// incident is an event at an upstream in 2025 or 2026 with its effect here. Rows with the same effect
// share a test.
type incident struct {
	date, what        string
	readers, operator string
	test              string // function and case; empty: no test yet
	file              string
}

const (
	unchanged = "the facts before"
	here      = "builder/ingest/incidents_test.go"
	apis      = "builder/ingest/apis_test.go"
	compared  = "builder/ingest/crosscheck_test.go"
	seasons   = "deploy/service/season_test.go"
	weekends  = "deploy/service/weekends_test.go"
)

var incidents = []incident{
	{"2025-04-04", "everybody is refused for asking too often", unchanged, "throttled; asked again later", "TestOutagesOfTheSource: everybody gets 429", here},
	{"2025-08-02", "connections are refused", unchanged, "unreachable; asked again later", "TestOutagesOfTheSource: connections are refused", here},
	{"2025-11-02", "503 in plain text for days", unchanged, "unreachable, since when", "TestOutagesOfTheSource: 503 in plain text", here},
	{"2025-11-07", "401 long after a session", unchanged, "refused; asked on the slow clock", "TestOutagesOfTheSource: 401 long after", here},
	{"2025-11-09, 2026-06-01", "504 with a page of nginx", unchanged, "unreachable", "TestOutagesOfTheSource: 504 of nginx", here},
	{"2025-12-05, 2026-03-15", "502 while it is said to be mended", unchanged, "unreachable", "TestOutagesOfTheSource: 502 while", here},
	{"2026-03-21", "403 at the start of the service", "the seasons that the store has", "refused; the service runs", "TestStartWithoutASource", here},
	{"2026-06-07", "403 under load", unchanged, "refused; asked on the slow clock", "TestOutagesOfTheSource: 403 under the load", here},
	{"2025-10-18", "200 with nothing in it", unchanged, "malformed", "TestOutagesOfTheSource: nothing at all", here},
	{"2026-03-07", "404 where there was data", unchanged, "refused", "TestOutagesOfTheSource: 404 where", here},
	{"2026-07-02", "keys that no schema had", unchanged, "nothing", "TestHarmlessOddities: four keys", here},
	{"2026-03-08", "no grid", unchanged, "nothing", "TestHarmlessOddities: no grid", here},
	{"2026-03-08", "no pit stops, no laps", unchanged, "nothing", "TestHarmlessOddities: no pit stops", here},
	{"2025-03-16, 2026-03-06", "the time of a retirement makes no sense", unchanged, "a note", "TestHarmlessOddities: the time of a retirement", here},
	{"2026-06-29", "every pit stop twice", unchanged, "nothing", "TestHarmlessOddities: every pit stop twice", here},
	{"2026-03-14", "two rounds are deleted, 19 renumbered", "postponed a day later, under the same keys", "the events in the ledger, by the source", "TestRoundTakenOffAndBack", here},
	{"2026-03-07", "a cancelled round has no number", "keys that stay", "nothing", "TestRoundTakenOffAndBack", here},
	{"2026-05-02", "Miami starts three hours earlier, on the day", "the new start at the next poll", "the move in the ledger, by the source", "TestSeason2026", seasons},
	{"2026-05-04", "a start moves onto another round", unchanged, "a change waits at gate start", "TestWrongData: a start moved onto another round", here},
	{"2026-07-26", "Bahrain is back, elsewhere, as round 16", "scheduled, under its old key, in the other country", "the reinstatement in the ledger", "TestSeason2026", seasons},
	{"2026-05-03", "two drivers in P9, one of them disqualified", unchanged, "a change waits at gate positions", "TestWrongData: two drivers in P9", here},
	{"2026-06-12", "a place is corrected without its points", unchanged, "a change waits at gate points", "TestWrongData: P6 with nine points", here},
	{"2026-06-07", "a podium changes, and changes back", "each revision once it has stood; the pick stays", "the revisions, with their reasons", "TestSeason2026", seasons},
	{"2026-09-13", "standings are behind the results", "the sum of the results", "which rows differ", "TestHarmlessOddities: standings that are behind", here},
	{"2025-08-05", "a disqualified winner keeps the points", unchanged, "a change waits at gate outcome", "TestWrongData: a disqualified driver", here},
	{"2025-09", "two cars in one slot of a grid", unchanged, "a change waits at gate positions", "TestWrongData: a grid with two cars", here},
	{"2026-08-21", "a driver twice in a session", unchanged, "a change waits at gate once", "TestWrongData: a driver twice", here},
	{"2025-11-22", "Las Vegas moves into the past on race day", "the start that was valid", "a change waits at gate start", "TestLasVegas2025", weekends},
	{"2025-04-13", "a start of 900", unchanged, "a change waits at gate unread", "TestWrongData: a time of 900", here},
	{"2025-08-31", "the leading driver has another identifier", "one driver", "the renaming in the ledger", "TestSeasons2025And2026", seasons},

	{"2026-09-06", "the Spanish Grand Prix is shown with the map of Catalunya", "Madrid, and Catalunya as another round", "nothing", "TestCalendarAsItIs: Catalunya and Madrid", here},
	{"2026-09-26", "a race on a Saturday", "Saturday, with its sessions since Thursday", "nothing", "TestCalendarAsItIs: a race on a Saturday", here},
	{"2025-09-21, 2026-03-07", "cars that start minutes late turn countdowns negative", "the race after it, from lights out on", "nothing", "TestCalendarAsItIs: five minutes late", here},
	{"2026-07-05", "a night after the race a driver is four places and a lap further back", "the revision once it has stood; the pick stays", "the revision, with its reason", "TestOvernightCorrection", here},

	{"2026-08-20", "accounts of an API are locked out", unchanged, "refused: incorrect username or password; the others go on", "TestWrongDataOfAPIs: accounts are locked out", apis},
	{"2026-03-15", "Jolpica gives a cancelled round the number 0, or none", unchanged, "nothing, or a change waits at gate unread", "TestWrongDataOfAPIs: a cancelled round has", apis},
	{"2026-03-08", "Jolpica has no laps and no pit stops for weeks", "the result", "nothing: they are not asked for", "TestWrongDataOfAPIs: which may be missing for weeks", apis},
	{"2026-05-04", "Jolpica puts a start onto another round", unchanged, "a change waits at gate start", "TestWrongDataOfAPIs: a start is put onto another round", apis},
	{"2026-05-03", "Jolpica has a provisional qualifying with two drivers in P9", unchanged, "a change waits at gate positions", "TestWrongDataOfAPIs: provisional qualifying", apis},
	{"2026-05-03", "of penalties one source knows for weeks and the other does not", "nothing of that result until both agree", "the disagreement, by driver", "TestDisagreementHoldsVerification: a source stands", compared},
	{"2026-06-07", "the podium of a result that is verified is another in one source", unchanged, "the disagreement, by driver", "TestWrongDataOfAPIs: the podium of one source", apis},
	{"2026-06-07", "both sources change a podium, and change it back", "each revision once it has stood; the pick stays", "the revisions, with their reasons", "TestDisagreementHoldsVerification: both have another podium", compared},
	{"2025-09", "an API copies a starting grid with two cars in a slot", "no grid; the pick on what else is known", "a change waits at gate positions", "TestGridOfOneSource: a starting grid with two cars", compared},
	{"2026-03-08", "the grid of Jolpica is null", unchanged, "a note: the result is without the grid", "TestWrongDataOfAPIs: the grid is null", apis},
	{"2026-03-14", "Jolpica ranks an unclassified driver", unchanged, "nothing", "TestWrongDataOfAPIs: a retired driver is ranked", apis},
	{"2026", "the permanent number is not the car's", "the number on the car", "nothing", "TestWrongDataOfAPIs: the permanent number", apis},

	{"2025-11-11, 2026-07-03", "the broker refuses, or drops its listeners", "", "", "", ""},
	{"2026-09-12", "tokens die on a weekend", "", "", "", ""},
	{"2025-04, 2026-05-26", "laps are missing, or a driver's whole row", "", "", "", ""},
	{"2026-05-01, 2026-05-03", "a session goes on and the stream is silent", "", "", "", ""},
}

// TestCatalogue compares the catalogue of incidents with its document, and checks that the named tests
// exist.
func TestCatalogue(t *testing.T) {
	var doc, waiting strings.Builder
	doc.WriteString(`# Incidents upstream, and their effect

Each row happened to a source of racing data in 2025 or 2026. A test serves the source's answer of that time to
the real client, or gives the same facts through a source of its own, and reads the published documents. ` + "`make season`" + ` lives through both years at once.

| when | event | readers see | the operator sees | shown by |
|-|-|-|-|-|
`)
	for _, i := range incidents {
		if i.test == "" {
			fmt.Fprintf(&waiting, "| %s | %s |\n", i.date, i.what)
			continue
		}
		name, of, _ := strings.Cut(i.test, ": ")
		source, err := os.ReadFile("../../" + i.file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(source), "func "+name+"(") || !strings.Contains(string(source), of) {
			t.Errorf("%s: %s has no %s", i.what, i.file, i.test)
		}
		fmt.Fprintf(&doc, "| %s | %s | %s | %s | %s |\n", i.date, i.what, i.readers, i.operator, i.test)
	}
	doc.WriteString(`
These concern live timing and accounts. No source of either is asked yet, and no test shows them:

| when | event |
|-|-|
` + waiting.String())
	t.Log("\n" + doc.String())
	golden.File(t, "../../deploy/docs/incidents.md", doc.String())
}
