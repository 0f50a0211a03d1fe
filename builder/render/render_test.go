package render_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/almanac"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/render"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/source/jolpica"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

var (
	generated = time.Date(2025, 6, 8, 15, 0, 0, 0, time.UTC)
	ann       = season.Driver{ID: "ann", Name: "Ann <O'Hara>", FirstName: "Ann", LastName: "O'Hara", Country: "IRL", HeadshotURL: "https://example.org/ann?a=1&b=2"}
	bob       = season.Driver{ID: "bob", Name: "Bob Müller", FirstName: "Bob", LastName: "Müller", Country: "DEU"}
	alpha     = season.Team{ID: "alpha", Name: "Alpha"}
	ring      = season.Circuit{ID: "ring", Name: "The Ring", Locality: "Town", Country: "Italy"}
)

// small is a season of four rounds: one finished and scored, one of unknown hour that is
// awaited, one cancelled, one to come.
func small() *almanac.Almanac {
	pick := &ledger.FrozenPick{
		Pick: ledger.Pick{P1: "ann", P2: "bob", P3: "cay", WinProbability: 0.625, Model: "v2-1"}, Basis: ledger.OnQualifying,
		FrozenAt: time.Date(2025, 5, 31, 16, 0, 0, 0, time.UTC),
		Chances:  []ledger.Chance{{Driver: "bob", Win: 250_000, Podium: ledger.Certain}, {Driver: "ann", Win: 625_000, Podium: ledger.Certain, Positions: []int{625_000, 249_949, 24_951}, Points: 20_499_000, DNF: 100_100}, {Driver: "cay", Win: 125_000, Podium: ledger.Certain}},
	}
	miss := &ledger.FrozenPick{Pick: ledger.Pick{P1: "bob", P2: "ann", P3: "cay", WinProbability: 0.3333}}
	round := func(number int, start time.Time, state almanac.State) *almanac.Round {
		facts := season.Round{Number: number, Name: "Grand Prix " + string(rune('A'+number-1)), Sprint: number == 1}
		r := almanac.Rounds(&season.View{Facts: season.Facts{Seasons: []season.Season{{Year: 2025, Rounds: []season.Round{facts}}}}}, new(ledger.Fold), 2025)[0]
		r.Session, r.Circuit, r.Start, r.State, r.Provisional = 2025000+int64(number), ring, start, state, false
		return r
	}
	finished := round(1, time.Date(2025, 6, 1, 13, 0, 0, 0, time.UTC), almanac.Finished)
	finished.Pick = pick
	finished.Result = &ledger.Classification{Rows: []ledger.Row{{Driver: "ann", Position: 1}, {Driver: "cay", Position: 1, Shared: true}, {Driver: "bob", Position: 3}}}
	awaited := round(2, time.Date(2025, 6, 8, 13, 0, 0, 0, time.UTC), almanac.AwaitingResult)
	awaited.Provisional = true
	awaited.Pick, awaited.LivePick = miss, pick
	toCome := round(4, time.Date(2025, 6, 22, 4, 0, 0, 0, time.FixedZone("", 2*3600)), almanac.Scheduled)
	drivers := func() []almanac.DriverStanding {
		return []almanac.DriverStanding{
			{Driver: ann, Team: alpha, Colour: "#112233", Tally: almanac.Tally{Position: 1, Points: 12.5, Wins: 1, Podiums: 1}},
			{Driver: bob, Team: alpha, Tally: almanac.Tally{Points: 4}},
		}
	}
	constructors := func() []almanac.ConstructorStanding {
		return []almanac.ConstructorStanding{{Team: alpha, Engine: "V6", Tally: almanac.Tally{Position: 1, Points: 16.5, Wins: 1, Podiums: 2}}}
	}
	a := almanac.Join(&season.View{At: generated}, new(ledger.Fold))
	a.Current = 2025
	a.Years = []*almanac.Year{
		{
			Year: 2024, Drivers: func() []almanac.DriverStanding { return nil }, Progress: func() []almanac.Championship { return nil },
		},
		{
			Year: 2025,
			Codes: func() map[season.DriverID]string {
				return map[season.DriverID]string{"ann": "OHA", "bob": "MUL", "cay": "CAY"}
			},
			Decisions: func() []almanac.ChampionshipDecision { return nil },
			Rounds:    []*almanac.Round{finished, awaited, round(3, time.Date(2025, 6, 15, 13, 0, 0, 0, time.UTC), almanac.Cancelled), toCome},
			Drivers:   drivers, Constructors: constructors,
			Progress: func() []almanac.Championship {
				return []almanac.Championship{{Round: finished, Drivers: drivers(), Constructors: constructors()}}
			},
		},
	}
	a.Grid = []almanac.GridEntry{{Driver: ann, Code: "OHA", Team: alpha, Colour: "#112233", Number: 7}}
	return a
}

// The exact bytes of every endpoint: order of members, absent values, formats. The names tell the decisions.
func TestBytes(t *testing.T) {
	a, bytes := small(), make(map[string]string)
	for _, c := range []struct {
		decision string
		variant  catalog.Variant
	}{
		{"no HTML escaping, colour and position absent where unknown", catalog.Variant{Endpoint: catalog.Standings, Type: catalog.DriversType, Year: 2025}},
		{"the engine where it tells constructors apart", catalog.Variant{Endpoint: catalog.Standings, Type: catalog.ConstructorsType, Year: 2025}},
		{"a season without results has no standings", catalog.Variant{Endpoint: catalog.Standings, Type: catalog.DriversType, Year: 2024}},
		{"states, winner only when finished, the start only when its hour is known, the date in UTC", catalog.Variant{Endpoint: catalog.Calendar, Year: 2025}},
		{"the grid", catalog.Variant{Endpoint: catalog.Drivers}},
		{"result and winner_hit absent until verified; of a shared first place the first; a place nobody holds absent", catalog.Variant{Endpoint: catalog.Predictions, Year: 2025}},
		{"the frozen chances, to a tenth, the likeliest first; a pick without them is left out", catalog.Variant{Endpoint: catalog.Probabilities, Year: 2025}},
		{"one session's chances", catalog.Variant{Endpoint: catalog.Probabilities, SessionKey: 2025002}},
		{"one session", catalog.Variant{Endpoint: catalog.Predictions, SessionKey: 2025002}},
		{"after each round, by last position, identifiers beside codes", catalog.Variant{Endpoint: catalog.StandingsProgress, Type: catalog.DriversType, Year: 2025}},
		{"no such session", catalog.Variant{Endpoint: catalog.Predictions, SessionKey: catalog.NoSession}},
		{"a season without picks", catalog.Variant{Endpoint: catalog.Predictions, Year: 2024}},
		{"one decimal, half up: two of three on the podium are 66.7; a live pick of an unverified race does not count", catalog.Variant{Endpoint: catalog.Accuracy}},
		{"no races", catalog.Variant{Endpoint: catalog.Accuracy, Year: 2024}},
	} {
		bytes[c.variant.Path()+": "+c.decision] = string(must.Get(render.Body(a, c.variant, generated))(t))
	}
	golden.Inputs(t, "testdata/bytes.txt", bytes)
}

func TestVariantsAreThoseOfTheCatalog(t *testing.T) {
	var paths strings.Builder
	for _, v := range render.Variants(small()) {
		fmt.Fprintln(&paths, v.Path())
	}
	golden.File(t, "testdata/variants.txt", paths.String())
}

// TestRowsAreByPosition, although an operator entered them the other way round.
func TestRowsAreByPosition(t *testing.T) {
	h := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	h.Decide(testseason.Belgium.Over(), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
		rows := slices.Clone(r.Source())
		slices.Reverse(rows)
		return r.Correct(rows, nil, "seen on the timing page")
	})
	body := must.Get(render.Body(h.Almanac(testseason.Belgium.Over()), catalog.Variant{Endpoint: catalog.Results, SessionKey: testseason.Belgium.Key}, generated))(t)
	var results struct{ Data []wire.ResultRecord }
	must.Do(t, json.Unmarshal(body, &results))
	race := results.Data[0].Race
	for i, row := range race[:18] {
		if row.Position != i+1 || i > 0 && row.GapMS <= 0 && row.GapLaps == 0 {
			t.Errorf("row %d: position %d, %d ms behind; want position %d and a gap", i+1, row.Position, row.GapMS, i+1)
		}
	}
	if len(race) != 20 || race[19].Position != 0 {
		t.Errorf("got %d rows, the last with position %d; want 20, those without a position last", len(race), race[len(race)-1].Position)
	}
}

func TestUnknownSeasonIsAnError(t *testing.T) {
	body, err := render.Body(small(), catalog.Variant{Endpoint: catalog.Calendar, Year: 1949}, generated)
	must.Hold(t, err != nil, "got %s, want an error", body)
}

// TestWeekendTellsWhyItMoved checks reason and earlier start after the decisions about a round.
func TestWeekendTellsWhyItMoved(t *testing.T) {
	planned := time.Date(2025, 6, 22, 2, 0, 0, 0, time.UTC)
	later, latest := planned.Add(time.Hour), planned.Add(2*time.Hour)
	moved := ledger.CalendarChange{Type: ledger.RoundMoved, Reason: "heat", Was: planned, Start: later}
	postponed := ledger.CalendarChange{Type: ledger.RoundPostponed, Reason: "storm", Was: later}
	for _, test := range []struct {
		name    string
		start   time.Time
		changes []ledger.CalendarChange
		reason  string
		was     time.Time
	}{
		{"as planned", planned, nil, "", time.Time{}},
		{"moved", later, []ledger.CalendarChange{moved}, "heat", planned},
		{"moved and postponed", planned, []ledger.CalendarChange{moved, postponed}, "storm", later},
		{"reinstated at another hour", latest, []ledger.CalendarChange{moved, postponed, {Type: ledger.RoundReinstated, Reason: "dry", Start: latest}}, "dry", later},
		{"moved and back", planned, []ledger.CalendarChange{moved, {Type: ledger.RoundMoved, Reason: "cool", Was: later, Start: planned}}, "cool", later},
		{"reinstated as planned", later, []ledger.CalendarChange{postponed, {Type: ledger.RoundReinstated, Reason: "dry"}}, "dry", time.Time{}},
		{"released without a change", later, []ledger.CalendarChange{moved, {Type: ledger.RoundReleased, Reason: "agree", Was: later, Start: later}}, "heat", planned},
	} {
		a := small()
		r := a.Years[1].Rounds[3]
		r.Start, r.Record.Override.Changes = test.start, test.changes
		body := must.Get(render.Body(a, catalog.Variant{Endpoint: catalog.Weekends, Year: 2025}, generated))(t)
		got := must.JSON[wire.Success[[]wire.Weekend]](t, body)
		if w := got.Data[3]; w.Reason != test.reason || !time.Time(w.Was).Equal(test.was) {
			t.Errorf("%s: got reason %q, was %s; want %q, %s", test.name, w.Reason, w.Was, test.reason, test.was)
		}
	}
}

// TestFullPageOfChangesStays moves a race again and again: a full page leads to the next one and keeps its bytes.
func TestFullPageOfChangesStays(t *testing.T) {
	opened := time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC)
	h := testseason.New(t, testseason.Config{Opened: opened, Until: testseason.Scheduled})
	start := h.Round(opened, 2024013).Start
	valid := start
	move := func(at time.Time, times int) {
		h.Decide(at, 2024013, func(*almanac.Round) ([]ledger.Event, error) {
			var events []ledger.Event
			for range times {
				next := start.Add(time.Hour)
				if !valid.Equal(start) {
					next = start
				}
				events = append(events, (&ledger.RoundRecord{Key: 2024013}).Move(valid, next, "heat"))
				valid = next
			}
			return events, nil
		})
	}
	page := func(at time.Time, n int) ([]byte, wire.ChangesPage) {
		body := must.Get(render.Body(h.Almanac(at), catalog.Variant{Endpoint: catalog.ChangesLog, Page: n}, generated))(t)
		got := must.JSON[wire.Success[wire.ChangesPage]](t, body)
		return body, got.Data
	}
	pages := func(at time.Time) (n int) {
		for _, v := range render.Variants(h.Almanac(at)) {
			if v.Page > 0 {
				n++
			}
		}
		return n
	}
	at := opened.Add(time.Hour)
	move(at, 199)
	if _, p := page(at, 1); len(p.Changes) != 199 || p.Next != "" || pages(at) != 1 {
		t.Errorf("got %d changes, next %q, %d pages; want 199 on the only page", len(p.Changes), p.Next, pages(at))
	}
	at = at.Add(time.Hour)
	move(at, 1)
	full, p := page(at, 1)
	if _, second := page(at, 2); len(p.Changes) != 200 || p.Next != "/api/v1/changes/log?page=2" || pages(at) != 2 || len(second.Changes) != 0 {
		t.Errorf("got %d changes, next %q, %d pages, %d changes on the second", len(p.Changes), p.Next, pages(at), len(second.Changes))
	}
	at = at.Add(time.Hour)
	move(at, 3)
	again, _ := page(at, 1)
	if _, second := page(at, 2); string(again) != string(full) || len(second.Changes) != 3 {
		t.Errorf("three changes later the first page is another, or the second has %d changes", len(second.Changes))
	}
	want := wire.LoggedChange{
		SessionKey: 2024013, Kind: wire.RoundMoved, At: wire.Instant(opened.Add(time.Hour)), By: "operator", Reason: "heat",
		Old: &wire.LoggedState{DateStart: wire.Instant(start)}, New: &wire.LoggedState{DateStart: wire.Instant(start.Add(time.Hour))},
	}
	if diff := cmp.Diff(fmt.Sprintf("%+v", want.Old), fmt.Sprintf("%+v", p.Changes[0].Old)); diff != "" || p.Changes[0].Kind != want.Kind || p.Changes[0].By != want.By {
		t.Errorf("got %+v, want %+v", p.Changes[0], want)
	}
}

// TestIdentifiersLast renames a driver as F1DB did: the documents keep the first identifier, and /identifiers has both.
func TestIdentifiersLast(t *testing.T) {
	opened := time.Date(2025, 8, 1, 12, 0, 0, 0, time.UTC)
	const old, now = "andrea-kimi-antonelli", "kimi-antonelli"
	of := func(a *almanac.Almanac, v catalog.Variant, into any) {
		body, err := render.Body(a, v, generated)
		if err == nil {
			err = json.Unmarshal(body, into)
		}
		must.Do(t, err)
	}
	for _, test := range []struct {
		renames []ledger.Event
		actor   string
		want    wire.Identity
	}{
		{nil, "", wire.Identity{ID: now, F1DB: now}},
		{[]ledger.Event{ledger.Rename(old, now)}, "operator:anna", wire.Identity{ID: now, F1DB: now, Aliases: []string{old}}}, // a source used the old id later
		{[]ledger.Event{ledger.Rename(old, now)}, "source:f1db@1", wire.Identity{ID: old, F1DB: now}},
		{[]ledger.Event{ledger.Rename(old, "kimi"), ledger.Rename("kimi", now)}, "source:f1db@1", wire.Identity{ID: old, F1DB: now, Aliases: []string{"kimi"}}},
	} {
		h := testseason.New(t, testseason.Config{Opened: opened, Until: testseason.Scheduled})
		if test.renames != nil {
			must.Get(testseason.Fresh(t, h.Ledger).Append(t.Context(), opened, test.actor, func(*ledger.Fold) ([]ledger.Event, error) { return test.renames, nil }))(t)
		}
		a := h.Almanac(opened.Add(time.Hour))
		var results wire.Success[[]wire.ResultRecord]
		of(a, catalog.Variant{Endpoint: catalog.Results, Year: 2025}, &results)
		i := slices.IndexFunc(results.Data[0].Race, func(row wire.ResultRow) bool { return row.Driver == "ANT" })
		if got := results.Data[0].Race[i]; got.DriverID != test.want.ID || got.TeamID != "mercedes" {
			t.Errorf("after %d renames: got %s of %s, want %s", len(test.renames), got.DriverID, got.TeamID, test.want.ID)
		}
		var identities wire.Success[[]wire.Identity]
		of(a, catalog.Variant{Endpoint: catalog.Identifiers, Type: catalog.DriversType}, &identities)
		i = slices.IndexFunc(identities.Data, func(id wire.Identity) bool { return id.ID == test.want.ID })
		must.Require(t, i >= 0, "after %d renames: /identifiers lacks %s", len(test.renames), test.want.ID)
		test.want.Name, test.want.Jolpica, test.want.OpenF1 = identities.Data[i].Name, []string{"antonelli"}, []string{"ANT"}
		test.want.Codes = []wire.SeasonCode{{Code: "ANT", From: 2025, To: 2025}}
		must.Equal(t, fmt.Sprintf("after %d renames", len(test.renames)), test.want, identities.Data[i])
	}
}

// rowsOf returns the data of a document.
func rowsOf[T any](t *testing.T, a *almanac.Almanac, v catalog.Variant) []T {
	t.Helper()
	body := must.Get(render.Body(a, v, generated))(t)
	got := must.JSON[wire.Success[[]T]](t, body)
	return got.Data
}

// after2025 is the almanac of the embedded seasons at the end of 2025.
func after2025(t *testing.T) *almanac.Almanac {
	opened := time.Date(2025, 12, 31, 0, 0, 0, 0, time.UTC)
	return testseason.New(t, testseason.Config{Opened: opened, Until: testseason.Scheduled}).Almanac(opened.Add(time.Hour))
}

// TestDefaultYears: the default season of an endpoint that looks back is the latest season of which its document has a row.
func TestDefaultYears(t *testing.T) {
	for name, a := range map[string]*almanac.Almanac{"in winter": after2025(t), "in a season": testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled}).Almanac(testseason.Belgium.Qualified)} {
		want := map[string]int{}
		for _, e := range catalog.Endpoints {
			for _, y := range slices.Backward(a.Years) {
				v := catalog.Variant{Endpoint: e.Name, Type: catalog.DriversType, Year: y.Year}
				if e.Past && !e.Derived && len(rowsOf[any](t, a, v)) > 0 {
					want[string(e.Name)] = y.Year
					break
				}
			}
		}
		maps.DeleteFunc(want, func(_ string, year int) bool { return year == a.Current })
		must.Equal(t, name, want, render.DefaultYears(a))
	}
}

// TestSprintGridOf2021 compares a sprint grid with the qualifying of Friday, which set it in 2021 and 2022.
func TestSprintGridOf2021(t *testing.T) {
	round := rowsOf[wire.WeekendSessions](t, after2025(t), catalog.Variant{Endpoint: catalog.Sessions, SessionKey: 2021010})[0]
	must.Require(t, len(round.SprintGrid) == 20, "got %d rows, want 20", len(round.SprintGrid))
	for _, row := range round.SprintGrid {
		i := slices.IndexFunc(round.Qualifying, func(q wire.QualifyingRow) bool { return q.DriverID == row.DriverID })
		if want := round.Qualifying[i].Position; row.Qualified != want || row.Position > 0 && (row.PlacesLost == nil || *row.PlacesLost != row.Position-want) {
			t.Errorf("%s: got place %d after %d in qualifying, %v lost; want %d in qualifying", row.DriverID, row.Position, row.Qualified, row.PlacesLost, want)
		}
	}
}

// TestFastestLapOfTheSource gives the fastest lap in China in 2025 to Norris. Hamilton, who was disqualified, had a
// faster one, which the source lists last.
func TestFastestLapOfTheSource(t *testing.T) {
	for _, c := range rowsOf[wire.Career](t, after2025(t), catalog.Variant{Endpoint: catalog.Careers, Type: catalog.DriversType, Year: 2025}) {
		if want, named := map[string]int{"lando-norris": 6, "lewis-hamilton": 1}[c.ID]; named && c.FastestLaps != want {
			t.Errorf("%s has %d fastest laps in 2025, want %d", c.ID, c.FastestLaps, want)
		}
	}
}

// TestSharedFastestLap gives two drivers with the fastest time the first place, and the next driver the third.
func TestSharedFastestLap(t *testing.T) {
	a := after2025(t)
	r := must.Get(a.Round(2025001))(t)
	facts := *r.Facts
	facts.FastestLaps = slices.Clone(facts.FastestLaps[:3])
	facts.FastestLaps[1].Time = facts.FastestLaps[0].Time
	r.Facts = &facts
	var places []int
	for _, lap := range rowsOf[wire.WeekendSessions](t, a, catalog.Variant{Endpoint: catalog.Sessions, SessionKey: 2025001})[0].FastestLaps {
		places = append(places, lap.Position)
	}
	diff := cmp.Diff([]int{1, 1, 3}, places)
	must.Hold(t, diff == "", "(-want +got)\n%s", diff)
}

// TestPortraitsCanBeRead: a drawn portrait is XML with number and code as text, whatever a source names the driver, and
// its letters have a contrast of at least 4.5 to 1 on every colour.
func TestPortraitsCanBeRead(t *testing.T) {
	channel := func(hex string) float64 {
		v := must.Get(strconv.ParseUint(hex, 16, 8))(t)
		if c := float64(v) / 255; c > .04045 {
			return math.Pow((c+.055)/1.055, 2.4)
		}
		return float64(v) / 255 / 12.92
	}
	luminance := func(c string) float64 {
		return .2126*channel(c[1:3]) + .7152*channel(c[3:5]) + .0722*channel(c[5:7])
	}
	for _, colour := range []string{"", "#000000", "#FFFFFF", "#E8002D", "#00D2BE", "#FF8000", "#757575", "#777777", "#0000FF"} {
		a := &almanac.Almanac{Grid: []almanac.GridEntry{{
			Driver: season.Driver{ID: "ann", Name: `Ann </title><script>"O'Hara" & co`}, Code: "O<A", Number: 7, Colour: colour,
		}}}
		drawn := render.Portraits(a)[catalog.Portrait("ann")]
		texts, fills := []string{}, []string{}
		for d := xml.NewDecoder(bytes.NewReader(drawn)); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", drawn, err)
			}
			switch token := token.(type) {
			case xml.CharData:
				texts = append(texts, strings.TrimSpace(string(token)))
			case xml.StartElement:
				if token.Name.Local == "script" || token.Name.Local == "style" {
					t.Errorf("a portrait with <%s>", token.Name.Local)
				}
				for _, attribute := range token.Attr {
					if attribute.Name.Local == "fill" {
						fills = append(fills, attribute.Value)
					}
				}
			}
		}
		got, want := strings.Join(texts, "|"), `Ann </title><script>"O'Hara" & co|7|O<A|`
		must.Hold(t, got == want, "got the texts %q, want %q", got, want)
		must.Require(t, len(fills) == 2, "got the fills %q, want a background and an ink", fills)
		if a, b := luminance(fills[0]), luminance(fills[1]); (max(a, b)+.05)/(min(a, b)+.05) < 4.5 {
			t.Errorf("%s on %s has a contrast of %.2f", fills[1], fills[0], (max(a, b)+.05)/(min(a, b)+.05))
		}
	}
}

// TestEveryDriverHasAPortrait: a driver without a portrait of the operator has the path of a drawn one.
func TestEveryDriverHasAPortrait(t *testing.T) {
	a := small()
	a.Grid = append(a.Grid, almanac.GridEntry{Driver: season.Driver{ID: "bob", Name: "Bob"}, Code: "BOB", Number: 8})
	body := must.Get(render.Body(a, catalog.Variant{Endpoint: catalog.Drivers}, generated))(t)
	must.Show(t, "/drivers", string(body), `"headshot_url":"https://example.org/ann?a=1&b=2"`, `"headshot_url":"/portraits/bob.svg"`)
	must.Equal(t, "len(render.Portraits(a))", 2, len(render.Portraits(a)))
}

// foreign reads the tables of foreign names, by source.
func foreign(t *testing.T) map[string]source.Equivalents {
	t.Helper()
	tables := map[string]source.Equivalents{}
	for name, read := range map[string]func() (source.Equivalents, error){"Jolpica": jolpica.Names, "OpenF1": render.OpenF1Names} {
		tables[name] = must.Get(read())(t)
	}
	return tables
}

// TestCoverageIsSaid: the document of the API says how many drivers, teams and circuits have names of the other sources.
func TestCoverageIsSaid(t *testing.T) {
	document := strings.Join(strings.Fields(string(schemas.OpenAPIYAML())), " ")
	for name, table := range foreign(t) {
		must.Show(t, "the document of the API", document, fmt.Sprintf("%s's names are known of %d drivers, %d teams, %d circuits and %d Grands Prix", name,
			len(table.Foreign("driver")), len(table.Foreign("team")), len(table.Foreign("circuit")), len(table.Foreign("grand_prix"))))
	}
}

// TestNamesOfOpenF1 checks that each row of the table names an identifier of the embedded seasons. No reader of OpenF1
// would notice a wrong one.
func TestNamesOfOpenF1(t *testing.T) {
	facts, table := archivetest.Embedded(t).Facts(), foreign(t)["OpenF1"]
	known := map[string]func(id string) bool{
		"driver":  func(id string) bool { _, ok := facts.Drivers[season.DriverID(id)]; return ok },
		"team":    func(id string) bool { _, ok := facts.Teams[season.TeamID(id)]; return ok },
		"circuit": func(id string) bool { _, ok := facts.Circuits[season.CircuitID(id)]; return ok },
		"grand_prix": func(id string) bool {
			return slices.ContainsFunc(facts.Seasons, func(s season.Season) bool {
				return slices.ContainsFunc(s.Rounds, func(r season.Round) bool { return string(r.GrandPrix) == id })
			})
		},
	}
	for kind, has := range known {
		names := table.Foreign(kind)
		must.Hold(t, len(names) != 0, "there is no %s", kind)
		for id, theirs := range names {
			if !has(id) {
				t.Errorf("%s %q = %s: the embedded seasons have no %s", kind, theirs, id, id)
			}
		}
	}
}
