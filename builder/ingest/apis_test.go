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
	"gridcast/builder/source"
	"gridcast/builder/source/sourcetest"
)

// readBy2024 are the published bodies of the season of Austria.
var readBy2024 = []string{"calendar/2024", "standings/drivers/2024", "standings/constructors/2024", "predictions/2024", "results/2024", "weekends/2024", "drivers"}

// TestWrongDataOfAPIs: Jolpica and OpenF1 repeat their errors of two years about Austria 2024, the day
// after the race. Readers see the last version, and the operator sees the error.
func TestWrongDataOfAPIs(t *testing.T) {
	if testing.Short() {
		t.Skip("short: takes some seconds")
	}
	first, jolpicaAPI := fromJolpica(t, true)
	second, openF1API := fromOpenF1(t, true)
	s := inAustria(t, first, second)
	s.step(t, s.now)
	now := austria.Add(30 * time.Hour)
	for _, at := range []time.Time{austria.Add(4 * time.Hour), austria.Add(7 * time.Hour), now} {
		for name, fault := range s.step(t, at).Faults {
			t.Fatalf("%s: %v", name, fault)
		}
	}
	before := s.bodies(t, readBy2024...)
	if !strings.Contains(before["results/2024"], strconv.Itoa(austriaKey)) {
		t.Fatal("the result of Austria is not published")
	}
	const jolpica, openf1 = "jolpica", "openf1"
	sentences, port := map[string]string{}, regexp.MustCompile(`127\.0\.0\.1:\d+`)
	for _, test := range []struct {
		incident string
		source   string
		target   string // of the request
		within   string // text before the replacement; empty: anywhere
		was, is  string // is is the whole answer where was is empty
		status   int    // of the whole answer
		// Visible to the operator:
		fault source.FaultKind
		gate  assemble.Gate  // of a change that waits
		block assemble.Block // of one that is disputed
	}{
		{incident: "accounts are locked out (2026-08-20)", source: openf1, status: 401, is: `{"detail":"Incorrect username or password"}`, fault: source.Refused},
		{incident: "a cancelled round has the number 0 (2026-03-15)", source: jolpica, target: "2024/races.json", within: `"round":"19"`, was: `"round":"20"`, is: `"round":"0"`},
		{incident: "a cancelled round has no number (2026-03-15)", source: jolpica, target: "2024/races.json", within: `"round":"19"`, was: `"round":"20"`, is: `"round":null`, gate: assemble.UnreadGate},
		{incident: "one cell of a result cannot be read", source: jolpica, target: "2024/results.json", within: `"round":"11"`, was: `"points":"25"`, is: `"points":"25,5"`, gate: assemble.UnreadGate},
		{incident: "one cell of qualifying has another type", source: jolpica, target: "2024/qualifying.json", within: `"round":"11"`, was: `"position":"10"`, is: `"position":{"number":10}`, gate: assemble.UnreadGate},
		{incident: "a start is put onto another round (2026-05-04)", source: jolpica, target: "2024/races.json", within: `"round":"12"`, was: `"date":"2024-07-07"`, is: `"date":"2024-06-30"`, gate: assemble.StartGate},
		{incident: "provisional qualifying with two in P9 (2026-05-03)", source: jolpica, target: "2024/qualifying.json", within: `"round":"11"`, was: `"position":"10"`, is: `"position":"9"`, gate: assemble.PositionsGate},
		{incident: "the podium of one source is another (2026-06-07)", source: openf1, target: "session_result?session_key=9550", was: `"driver_number":81`, is: `"driver_number":55`, block: assemble.Result},
		{incident: "nulls for new teams (2026-03-08)", source: openf1, target: "drivers?session_key=9550", was: `"team_name":"Ferrari"`, is: `"team_name":null`},
		{incident: "one driver in two teams (2026-08-21)", source: openf1, target: "drivers?session_key=9550", was: `[`, is: `[{"driver_number":30,"name_acronym":"TSU","team_name":"Red Bull Racing"},`},
		{incident: "a disqualified winner still on top (2025-08-05)", source: openf1, target: "session_result?session_key=9550", was: `"dsq":false`, is: `"dsq":true`},
		{incident: "no results after a race (2025-10-18)", source: openf1, target: "session_result?session_key=9550", status: 200, is: `[]`},
		{incident: "the grid is null (2026-03-08)", source: jolpica, target: "2024/results.json", within: `"round":"11"`, was: `"grid":"1"`, is: `"grid":null`},
		{incident: "the time of a retired driver makes no sense (2026-03-06)", source: jolpica, target: "2024/results.json", within: `"round":"11"`, was: `"time":"+1.906"`, is: `"time":"+-1:38:49.328"`},
		{incident: "a retired driver is ranked without being classified (2026-03-14)", source: jolpica, target: "2024/results.json", within: `"round":"11"`, was: `"positionText":"R"`, is: `"positionText":"-"`},
		{incident: "the permanent number is not the car's (2026)", source: jolpica, target: "2024/results.json", within: `"round":"11"`, was: `"permanentNumber":"33"`, is: `"permanentNumber":"3"`},
	} {
		t.Run(test.incident, func(t *testing.T) {
			api := map[string]*sourcetest.Replay{jolpica: jolpicaAPI, openf1: openF1API}[test.source]
			changed := test.was == ""
			if test.target == "" {
				api.Instead(sourcetest.Answer(test.status, "application/json", test.is))
			} else {
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
			now = now.Add(31 * time.Minute)
			report := s.step(t, now)
			api.Instead(nil)
			api.Rewrite(nil)
			if !changed {
				t.Fatalf("no answer has %s", test.was)
			}
			if diff := cmp.Diff(before, s.bodies(t, readBy2024...)); diff != "" {
				t.Errorf("readers see something else (-before +now):\n%s", diff)
			}
			state, err := ingest.LoadPollState(t.Context(), s.ingest.Store, test.source)
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
				if name != test.source {
					t.Errorf("%s has a fault because of it: %v", name, fault)
				}
			}
		})
	}
	sourcetest.Sentences(t, "wrong_data_of_apis.golden", sentences)
	for _, target := range openF1API.Requests() {
		if strings.Contains(target, "latest") {
			t.Errorf("asked for %s: latest was a cancelled race for weeks", target)
		}
	}
	for _, target := range jolpicaAPI.Requests() {
		if strings.Contains(target, "/laps") || strings.Contains(target, "/pitstops") {
			t.Errorf("asked for %s, which may be missing for weeks", target)
		}
	}
}
