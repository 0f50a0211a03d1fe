package ingest_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

// readBy2024 are the published bodies of the season of Austria.
var readBy2024 = []string{"calendar/2024", "standings/drivers/2024", "standings/constructors/2024", "predictions/2024", "results/2024", "weekends/2024", "drivers"}

// TestWrongDataOfAPIs: Jolpica and a second API repeat the errors of two years about Austria 2024, the day
// after the race. Readers see the last version, and the operator sees the error.
func TestWrongDataOfAPIs(t *testing.T) {
	must.Long(t, "takes some seconds")
	first, jolpicaAPI := fromJolpica(t, true)
	second, herald := fromHerald(t, true)
	s := inAustria(t, first, second)
	s.step(t, s.now)
	now := austria.Add(30 * time.Hour)
	for _, at := range []time.Time{austria.Add(4 * time.Hour), austria.Add(7 * time.Hour), now} {
		herald.tellOfAustria(t, at, nil)
		for name, fault := range s.step(t, at).Faults {
			t.Fatalf("%s: %v", name, fault)
		}
	}
	before := s.bodies(t, readBy2024...)
	must.Show(t, "results/2024", before["results/2024"], strconv.Itoa(austriaKey))
	sentences, port := map[string]string{}, regexp.MustCompile(`127\.0\.0\.1:\d+`)
	for _, test := range []struct {
		incident string
		second   func(*season.Round) // a change of the second API's round; nil: Jolpica answers otherwise
		target   string              // of the request
		within   string              // text before the replacement; empty: anywhere
		was, is  string              // is is the whole answer where was is empty
		status   int                 // of the whole answer
		// Visible to the operator:
		fault source.FaultKind
		gate  assemble.Gate  // of a change that waits
		block assemble.Block // of one that is disputed
	}{
		{incident: "accounts are locked out (2026-08-20)", status: 401, is: `{"detail":"Incorrect username or password"}`, fault: source.Refused},
		{incident: "a cancelled round has the number 0 (2026-03-15)", target: "2024/races.json", within: `"round":"19"`, was: `"round":"20"`, is: `"round":"0"`},
		{incident: "a cancelled round has no number (2026-03-15)", target: "2024/races.json", within: `"round":"19"`, was: `"round":"20"`, is: `"round":null`, gate: assemble.UnreadGate},
		{incident: "one cell of a result cannot be read", target: "2024/results.json", within: `"round":"11"`, was: `"points":"25"`, is: `"points":"25,5"`, gate: assemble.UnreadGate},
		{incident: "one cell of qualifying has another type", target: "2024/qualifying.json", within: `"round":"11"`, was: `"position":"10"`, is: `"position":{"number":10}`, gate: assemble.UnreadGate},
		{incident: "a start is put onto another round (2026-05-04)", target: "2024/races.json", within: `"round":"12"`, was: `"date":"2024-07-07"`, is: `"date":"2024-06-30"`, gate: assemble.StartGate},
		{incident: "provisional qualifying with two in P9 (2026-05-03)", target: "2024/qualifying.json", within: `"round":"11"`, was: `"position":"10"`, is: `"position":"9"`, gate: assemble.PositionsGate},
		{incident: "the podium of one source is another (2026-06-07)", second: swapped, block: assemble.Result},
		{incident: "the grid is null (2026-03-08)", target: "2024/results.json", within: `"round":"11"`, was: `"grid":"1"`, is: `"grid":null`},
		{incident: "the time of a retired driver makes no sense (2026-03-06)", target: "2024/results.json", within: `"round":"11"`, was: `"time":"+1.906"`, is: `"time":"+-1:38:49.328"`},
		{incident: "a retired driver is ranked without being classified (2026-03-14)", target: "2024/results.json", within: `"round":"11"`, was: `"positionText":"R"`, is: `"positionText":"-"`},
		{incident: "the permanent number is not the car's (2026)", target: "2024/results.json", within: `"round":"11"`, was: `"permanentNumber":"33"`, is: `"permanentNumber":"3"`},
	} {
		t.Run(test.incident, func(t *testing.T) {
			asked, api, changed := "jolpica", jolpicaAPI, test.was == ""
			now = now.Add(31 * time.Minute)
			switch {
			case test.second != nil:
				asked = "herald"
				herald.tellOfAustria(t, now, test.second)
			case test.target == "":
				api.Instead(sourcetest.Answer(test.status, "application/json", test.is))
			default:
				api.Rewrite(func(target, body string) string {
					if !strings.Contains(target, test.target) {
						return body
					}
					if test.was == "" {
						return test.is
					}
					from := strings.Index(body, test.within)
					if from < 0 || !strings.Contains(body[from:], test.was) {
						return body
					}
					changed = true
					return body[:from] + strings.Replace(body[from:], test.was, test.is, 1)
				})
			}
			report := s.step(t, now)
			api.Instead(nil)
			api.Rewrite(nil)
			herald.tellOfAustria(t, now, nil)
			must.Require(t, changed, "no answer has %s", test.was)
			must.Equal(t, "what readers see", before, s.bodies(t, readBy2024...))
			state := must.Get(ingest.LoadPollState(t.Context(), s.ingest.Store, asked))(t)
			said := append([]string{state.Reason}, state.Notes...) // the reason, the notes and the lines
			for _, c := range state.Held {
				if slices.ContainsFunc(c.Refused, func(r assemble.Refusal) bool { return r.Gate == test.gate }) {
					said = append(said, fmt.Sprint(c.Refused))
				}
			}
			for _, c := range state.Disputed {
				if c.Block == test.block {
					said = append(said, fmt.Sprint(c.Lines))
				}
			}
			must.Hold(t, state.Fault == test.fault, "the operator sees the fault %q and %q; want %q", state.Fault, said, test.fault)
			sentences[test.incident] = port.ReplaceAllString(strings.Join(said, "\n"), "127.0.0.1")
			for name, fault := range report.Faults {
				if name != asked {
					t.Errorf("%s has a fault because of it: %v", name, fault)
				}
			}
		})
	}
	golden.Inputs(t, "testdata/wrong_data_of_apis.golden", sentences)
	// Laps and pit stops may be missing for weeks.
	must.Hide(t, "the requests", strings.Join(jolpicaAPI.Requests(), "\n"), "/laps", "/pitstops")
}

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
	inSmall   = "builder/ingest/small_test.go"
	inLies    = "builder/ingest/lies_test.go"
	apis      = "builder/ingest/apis_test.go"
	compared  = "builder/ingest/crosscheck_test.go"
	seasons   = "deploy/service/season_test.go"
	weekends  = "deploy/service/weekends_test.go"
)

var incidents = []incident{
	{"2025-04-04", "everybody is refused for asking too often", unchanged, "throttled; asked again later", "TestSmallFaults: 429", inSmall},
	{"2025-08-02", "connections are refused", unchanged, "unreachable; asked again later", "TestSmallFaults: a connection that ends", inSmall},
	{"2025-11-02", "503 in plain text for days", unchanged, "unreachable, since when", "TestSmallFaults: 503", inSmall},
	{"2025-11-07", "401 long after a session", unchanged, "refused; asked on the slow clock", "TestSmallFaults: 401", inSmall},
	{"2025-11-09, 2026-06-01", "504 with a page of nginx", unchanged, "unreachable", "TestSmallFaults: 503", inSmall},
	{"2025-12-05, 2026-03-15", "502 while it is said to be mended", unchanged, "unreachable", "TestSmallFaults: 503", inSmall},
	{"2026-03-21", "403 at the start of the service", "the seasons that the store has", "refused; the service runs", "TestStartWithoutASource", here},
	{"2026-06-07", "403 under load", unchanged, "refused; asked on the slow clock", "TestSmallFaults: 403", inSmall},
	{"2025-10-18", "200 with nothing in it", unchanged, "malformed", "TestLies: nothing at all", inLies},
	{"2026-03-07", "404 where there was data", unchanged, "refused", "TestSmallFaults: 404", inSmall},
	{"2026-07-02", "keys that no schema had", unchanged, "nothing", "TestLies: a key that nobody knows", inLies},
	{"2026-03-08", "no grid", unchanged, "nothing", "TestLies: the result", inLies},
	{"2026-03-08", "no pit stops, no laps", unchanged, "nothing", "TestLies: the result", inLies},
	{"2025-03-16, 2026-03-06", "the time of a retirement makes no sense", unchanged, "a note", "TestLies: a time that is none", inLies},
	{"2026-06-29", "every pit stop twice", unchanged, "nothing", "TestLies: every pit stop twice", inLies},
	{"2026-03-14", "two rounds are deleted, 19 renumbered", "postponed a day later, under the same keys", "the events in the ledger, by the source", "TestSeason2026", seasons},
	{"2026-03-07", "a cancelled round has no number", "keys that stay", "nothing", "TestSeason2026", seasons},
	{"2026-05-02", "Miami starts three hours earlier, on the day", "the new start at the next poll", "the move in the ledger, by the source", "TestSeason2026", seasons},
	{"2026-05-04", "a start moves onto another round", unchanged, "a change waits at gate start", "TestLies: a start moves onto another round", inLies},
	{"2026-07-26", "Bahrain is back, elsewhere, as round 16", "scheduled, under its old key, in the other country", "the reinstatement in the ledger", "TestSeason2026", seasons},
	{"2026-05-03", "two drivers in P9, one of them disqualified", unchanged, "a change waits at gate positions", "TestLies: a place is there twice", inLies},
	{"2026-06-12", "a place is corrected without its points", unchanged, "a change waits at gate points", "TestLies: points of another place", inLies},
	{"2026-06-07", "a podium changes, and changes back", "each revision once it has stood; the pick stays", "the revisions, with their reasons", "TestSeason2026", seasons},
	{"2026-09-13", "standings are behind the results", "the sum of the results", "which rows differ", "TestLies: the standings differ", inLies},
	{"2025-08-05", "a disqualified winner keeps the points", unchanged, "a change waits at gate outcome", "TestLies: a disqualified driver", inLies},
	{"2025-09", "two cars in one slot of a grid", unchanged, "a change waits at gate positions", "TestGridOfOneSource: a starting grid with two cars", compared},
	{"2026-08-21", "a driver twice in a session", unchanged, "a change waits at gate once", "TestLies: a driver is there twice", inLies},
	{"2025-11-22", "Las Vegas moves into the past on race day", "the start that was valid", "a change waits at gate start", "TestLasVegas2025", weekends},
	{"2025-04-13", "a start of 900", unchanged, "a change waits at gate unread", "TestLies: a start of 900", inLies},
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
		must.Show(t, i.file, string(must.Get(os.ReadFile("../../"+i.file))(t)), "func "+name+"(", of)
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
