package ingest_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/golden"
)

// readBy2024 are the published bodies of the season of Austria.
var readBy2024 = []string{"calendar/2024", "standings/drivers/2024", "standings/constructors/2024", "predictions/2024", "results/2024", "weekends/2024", "drivers"}

// TestWrongDataOfAPIs: Jolpica and a second API repeat the errors of two years about Austria 2024, the day
// after the race. Readers see the last version, and the operator sees the error.
func TestWrongDataOfAPIs(t *testing.T) {
	if testing.Short() {
		t.Skip("short: takes some seconds")
	}
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
	if !strings.Contains(before["results/2024"], strconv.Itoa(austriaKey)) {
		t.Fatal("the result of Austria is not published")
	}
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
			if !changed {
				t.Fatalf("no answer has %s", test.was)
			}
			if diff := cmp.Diff(before, s.bodies(t, readBy2024...)); diff != "" {
				t.Errorf("readers see something else (-before +now):\n%s", diff)
			}
			state, err := ingest.LoadPollState(t.Context(), s.ingest.Store, asked)
			if err != nil {
				t.Fatal(err)
			}
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
			if state.Fault != test.fault {
				t.Errorf("the operator sees the fault %q and %q; want %q", state.Fault, said, test.fault)
			}
			sentences[test.incident] = port.ReplaceAllString(strings.Join(said, "\n"), "127.0.0.1")
			for name, fault := range report.Faults {
				if name != asked {
					t.Errorf("%s has a fault because of it: %v", name, fault)
				}
			}
		})
	}
	golden.Inputs(t, "testdata/wrong_data_of_apis.golden", sentences)
	for _, target := range jolpicaAPI.Requests() {
		if strings.Contains(target, "/laps") || strings.Contains(target, "/pitstops") {
			t.Errorf("asked for %s, which may be missing for weeks", target)
		}
	}
}
