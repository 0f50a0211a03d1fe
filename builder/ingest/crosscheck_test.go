package ingest_test

import (
	stdcmp "cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/season"
	"gridcast/builder/source/jolpica"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/must"
	"gridcast/schemas/wire"
)

// austria is lights out of the Austrian Grand Prix of 2024; qualifying ended 22 hours before.
var austria = time.Date(2024, 6, 30, 13, 0, 0, 0, time.UTC)

const austriaKey = 2024011

// beforeAustria returns the embedded seasons 2023 and 2024 on the Saturday before qualifying: Austria and the rounds
// after it have the calendar alone.
func beforeAustria(t *testing.T) archive.Stored {
	t.Helper()
	facts := archivetest.Seasons(t, 2023, 2024)
	last := &facts.Seasons[len(facts.Seasons)-1]
	for i := range last.Rounds {
		if r := &last.Rounds[i]; !r.StartsAt().Before(austria) {
			*r = archivetest.Scheduled(r)
		}
	}
	return archivetest.Stored(t, facts)
}

// inAustria is a service without operators that reads some sources.
func inAustria(t *testing.T, sources ...ingest.Source) *service {
	t.Helper()
	s := &service{now: austria.Add(-24 * time.Hour)}
	s.begin(t, beforeAustria(t), sources...)
	return s
}

func fromJolpica(t *testing.T, accepted bool) (ingest.Source, *sourcetest.Replay) {
	t.Helper()
	api := sourcetest.Jolpica(t)
	return ingest.Source{Upstream: sourcetest.Open(t, jolpica.New, api), CheckOnly: !accepted}, api
}

// fromHerald is another API with non-commercial terms. It has the calendar of 2024, and of Austria what tellOfAustria adds.
func fromHerald(t *testing.T, accepted bool) (ingest.Source, *herald) {
	t.Helper()
	h := &herald{noncommercial: true, sparse: true}
	h.tellOfAustria(t, austria.Add(-24*time.Hour), nil)
	return ingest.Source{Upstream: h, CheckOnly: !accepted}, h
}

// tellOfAustria gives the herald a new revision. It has the grid of Austria from the evening before the race, and the
// result two hours after lights out. change alters that round; it may be nil.
func (h *herald) tellOfAustria(t *testing.T, now time.Time, change func(*season.Round)) {
	t.Helper()
	h.revision = fmt.Sprintf("%s, told %d times", now.Format(time.RFC3339), h.told)
	h.told++
	h.facts = archivetest.Seasons(t, 2024, 2024)
	for i := range h.facts.Seasons[0].Rounds {
		r := &h.facts.Seasons[0].Rounds[i]
		whole := *r
		if *r = archivetest.Scheduled(r); whole.GrandPrix != "austria" {
			continue
		}
		if now.After(austria.Add(-20 * time.Hour)) {
			r.Grid = slices.Clone(whole.Grid)
		}
		if now.After(austria.Add(2 * time.Hour)) {
			r.Entries, r.Results = whole.Entries, slices.Clone(whole.Results)
		}
		if change != nil {
			change(r)
		}
	}
}

// swapped swaps the second and the third of a result.
func swapped(r *season.Round) {
	if len(r.Results) == 0 {
		return
	}
	second, third := &r.Results[1], &r.Results[2]
	second.Driver, third.Driver = third.Driver, second.Driver
	second.Team, third.Team = third.Team, second.Team
	second.Grid, third.Grid = third.Grid, second.Grid
	second.Number, third.Number = third.Number, second.Number
}

// TestGridOfOneSource: a pick is made on the grid that only one source has, if its terms are accepted. Otherwise
// the grid is unlicensed. A grid with two cars in a slot waits for a person.
func TestGridOfOneSource(t *testing.T) {
	must.Long(t, "takes eight seconds")
	for _, test := range []struct {
		what     string
		accepted bool
		twice    bool // two cars have the last slot
		basis    string
		withheld int
		waiting  assemble.Gate
	}{
		{"its terms are accepted", true, false, "grid", 0, ""},
		{"its terms are not accepted", false, false, "form", 1, ""},
		{"a starting grid with two cars in a slot (2025-09)", true, true, "form", 0, assemble.PositionsGate},
	} {
		t.Run(test.what, func(t *testing.T) {
			source, herald := fromHerald(t, test.accepted)
			s := inAustria(t, source)
			s.step(t, s.now)
			for _, before := range []time.Duration{18 * time.Hour, 5 * time.Minute} {
				herald.tellOfAustria(t, austria.Add(-before), func(r *season.Round) {
					byPlace := func(a, b season.GridSlot) int { return stdcmp.Compare(a.Position, b.Position) }
					if slices.SortFunc(r.Grid, byPlace); test.twice {
						r.Grid[len(r.Grid)-1].Position--
					}
				})
				for name, fault := range s.step(t, austria.Add(-before)).Faults {
					t.Errorf("%s: %v", name, fault)
				}
			}
			chances := decoded[[]wire.ProbabilityRecord](t, s.bodies(t, "probabilities/2024")["probabilities/2024"])
			if len(chances) != 1 || chances[0].SessionKey != austriaKey || chances[0].Basis != test.basis {
				t.Fatalf("the picks are %+v, want that of Austria, on %s", chances, test.basis)
			}
			state := must.Get(ingest.LoadPollState(t.Context(), s.ingest.Store, "herald"))(t)
			if len(state.Unlicensed) != test.withheld {
				t.Errorf("%d changes are withheld, want %d: %+v", len(state.Unlicensed), test.withheld, state.Unlicensed)
			}
			if test.withheld > 0 && (state.Unlicensed[0].Block != assemble.Grid || state.Unlicensed[0].Refused[0].Gate != assemble.TermsGate) {
				t.Errorf("withheld is %+v, want the grid by its terms", state.Unlicensed[0])
			}
			elsewhere := func(c assemble.Proposal) bool { return c.Refused[0].Gate != test.waiting }
			if (test.waiting == "") != (len(state.Held) == 0) || slices.ContainsFunc(state.Held, elsewhere) {
				t.Errorf("there wait %+v, want changes at gate %q", state.Held, test.waiting)
			}
		})
	}
}

// swappedByJolpica lets Jolpica swap the second and the third of Austria.
func swappedByJolpica(target, body string) string {
	from := strings.Index(body, `"round":"11"`)
	if !strings.Contains(target, "2024/results.json") || from < 0 {
		return body
	}
	race, rest, more := strings.Cut(body[from:], `"round":"12"`)
	const second, third = `"position":"2","positionText":"2","points":"18"`, `"position":"3","positionText":"3","points":"15"`
	const sooner, later = `"millis":"5064704","time":"+1.906"`, `"millis":"5067331","time":"+4.533"`
	race = strings.NewReplacer(second, third, third, second, sooner, later, later, sooner).Replace(race)
	if more {
		race += `"round":"12"` + rest
	}
	return body[:from] + race
}

// TestDisagreementHoldsVerification: a disputed result is not published, and the dispute names the
// drivers. Once the sources agree, the result is verified. If both change the podium weeks later, and
// change it back, each change is a revision once it is stable, and the pick stays.
func TestDisagreementHoldsVerification(t *testing.T) {
	must.Long(t, "takes five seconds")
	first, firstAPI := fromJolpica(t, true)
	second, herald := fromHerald(t, false)
	change := swapped // a penalty that the one has and the other has not
	s := inAustria(t, first, second)
	s.Policy.AutoReviseAfter = 2 * time.Hour
	step := func(after time.Duration) {
		t.Helper()
		herald.tellOfAustria(t, austria.Add(after), change)
		for name, fault := range s.step(t, austria.Add(after)).Faults {
			t.Errorf("%s: %v", name, fault)
		}
	}
	record := func() (prediction wire.PredictionRecord, result wire.ResultRecord) {
		t.Helper()
		bodies := s.bodies(t, "predictions/2024", "results/2024")
		for _, p := range decoded[[]wire.PredictionRecord](t, bodies["predictions/2024"]) {
			if p.SessionKey == austriaKey {
				prediction = p
			}
		}
		for _, r := range decoded[[]wire.ResultRecord](t, bodies["results/2024"]) {
			if r.SessionKey == austriaKey {
				result = r
			}
		}
		return prediction, result
	}
	step(-24 * time.Hour)
	step(-5 * time.Minute)
	before := s.bodies(t, readBy2024...)
	pick, _ := record()
	must.Require(t, pick.Prediction.Winner != "", "there is no pick")
	for _, after := range []time.Duration{4 * time.Hour, 7 * time.Hour, 30 * time.Hour} {
		step(after)
	}
	for _, path := range []string{"results/2024", "predictions/2024", "standings/drivers/2024", "standings/constructors/2024"} {
		diff := cmp.Diff(before[path], s.bodies(t, path)[path])
		must.Hold(t, diff == "", "of a result against which a source stands %s is published:\n%s", path, diff)
	}
	state := must.Get(ingest.LoadPollState(t.Context(), s.ingest.Store, "herald"))(t)
	want := []assemble.Line{
		{About: "carlos-sainz-jr", Was: "P3, 15 points", Is: "P2, 18 points"},
		{About: "oscar-piastri", Was: "P2, 18 points", Is: "P3, 15 points"},
	}
	var got []assemble.Line
	for _, c := range state.Disputed {
		if c.GrandPrix == "austria" && c.Block == assemble.Result {
			got = c.Lines
		}
	}
	must.Equal(t, "disagreements about Austria", want, got)

	sainzSecond := wire.Podium{P1: "RUS", P2: "SAI", P3: "PIA"}
	piastriSecond := wire.Podium{P1: "RUS", P2: "PIA", P3: "SAI"}
	for _, test := range []struct {
		what      string
		say       func()
		at        time.Duration // after the start
		podium    wire.Podium
		revisions int
	}{
		{"the sources agree", func() { change = nil }, 31 * time.Hour, piastriSecond, 1},
		{"both have another podium", func() { firstAPI.Rewrite(swappedByJolpica); change = swapped }, 1000 * time.Hour, piastriSecond, 1},
		{"it has stood for two hours", func() {}, 1003 * time.Hour, sainzSecond, 2},
		{"it is taken back", func() { firstAPI.Rewrite(nil); change = nil }, 2000 * time.Hour, sainzSecond, 2},
		{"that has stood too", func() {}, 2003 * time.Hour, piastriSecond, 3},
	} {
		test.say()
		step(test.at)
		p, r := record()
		if p.Result == nil || p.Result.Podium != test.podium || len(r.Revisions) != test.revisions || p.Prediction != pick.Prediction {
			t.Errorf("%s: the record is %+v with %+v and the revisions %+v; want the podium %+v in revision %d, and the pick %+v",
				test.what, p.Prediction, p.Result, r.Revisions, test.podium, test.revisions, pick.Prediction)
		}
		for _, row := range r.Race { // points go with the places
			if row.Position == 2 && (row.Driver != test.podium.P2 || row.Points != 18) {
				t.Errorf("%s: second of the published race is %+v, want %s with 18 points", test.what, row, test.podium.P2)
			}
		}
	}
}
