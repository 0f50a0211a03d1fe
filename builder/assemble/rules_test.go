package assemble_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/season"
	"gridcast/deploy/must"
)

// TestGates: testdata/judgement.txt has a situation for every gate.
func TestGates(t *testing.T) {
	var text strings.Builder
	for _, s := range situations(t) {
		for _, outcomes := range s.want {
			text.WriteString(strings.Join(outcomes, "\n"))
		}
	}
	must.Hold(t, slices.Contains(assemble.Gates(), "pace") && !slices.Contains(assemble.Gates(), "slow"), "an invariant that only waits is no gate: %v", assemble.Gates())
	for _, gate := range assemble.Gates() {
		if slices.Contains(assemble.InvariantNames(), gate) {
			continue // TestInvariants has them
		}
		if !strings.Contains(text.String(), "("+string(gate)) && !strings.Contains(text.String(), ", "+string(gate)) {
			t.Errorf("no situation is held by the gate %q", gate)
		}
	}
}

// TestIDs: a proposal has an ID of its content. Neither the revision nor accepted terms change it.
func TestIDs(t *testing.T) {
	current, now := inYear(2024, "monaco")
	current.Seasons[0].Rounds[0].Entries = []season.Entry{{Driver: "ann", Team: "rosso", Engine: "v8", Number: 1}}
	propose := func(kind assemble.Kind, revision, driver string) string {
		t.Helper()
		theirs, _ := inYear(2024, "monaco")
		theirs.Seasons[0].Rounds[0].Results = []season.Result{{Driver: season.DriverID(driver), Team: "rosso", Position: 1, Points: 25}}
		out, err := assemble.Assemble(assemble.Input{
			Current: current, Now: now, Decided: undecided,
			Documents: []assemble.Document{{Source: "jolpica", Revision: revision, From: 2024, To: 2024, Kind: kind, Facts: theirs}},
		})
		if all := slices.Concat(out.Applied, out.Unlicensed); err == nil && len(all) == 1 {
			return all[0].ID
		}
		t.Fatalf("got %+v, %v; want one proposal", out, err)
		return ""
	}
	id := propose(assemble.Sparse, "r1", "ann")
	if got := propose(assemble.Sparse, "r2", "ann"); got != id {
		t.Errorf("another revision: the ID is %s, want %s", got, id)
	}
	if got := propose(assemble.CheckOnly, "r1", "ann"); got != id {
		t.Errorf("terms that are not accepted: the ID is %s, want %s", got, id)
	}
	if got := propose(assemble.Sparse, "r1", "bob"); got == id {
		t.Errorf("another winner: the ID is %s, too", got)
	}
}

// TestFormerStart: the proposal of a start names the former start, unless the round is new.
func TestFormerStart(t *testing.T) {
	current, now := inYear(2024, "monaco")
	former := current.Seasons[0].Rounds[0].Start
	for _, test := range []struct {
		name        string
		gp          season.GrandPrixID
		hourUnknown bool
		was         time.Time
		provisional bool
		proposals   int
	}{
		{"a moved start", "monaco", false, former, false, 1},
		{"a first hour", "monaco", true, former, true, 1},
		{"a new round", "imola", false, time.Time{}, false, 2},
	} {
		ours, _ := inYear(2024, "monaco")
		if test.hourUnknown {
			ours.Seasons[0].Rounds[0].Start = time.Time{}
		}
		theirs, _ := inYear(2024, test.gp)
		theirs.Seasons[0].Rounds[0].Start = former.Add(time.Hour)
		if test.gp != "monaco" {
			theirs.Seasons[0].Rounds[0].Circuit = "miami" // else it would be a renamed round
		}
		out, err := assemble.Assemble(assemble.Input{
			Current: ours, Now: now.AddDate(0, 0, -7), Decided: undecided,
			Documents: []assemble.Document{{Source: "f1db", From: 2024, To: 2024, Kind: assemble.Full, Facts: theirs}},
		})
		if err != nil || len(out.Applied) != test.proposals {
			t.Fatalf("%s: applied %+v, %v; want %d proposals", test.name, out.Applied, err, test.proposals)
		}
		for _, p := range out.Applied {
			was, provisional := time.Time{}, false
			if p.Block == assemble.Start {
				was, provisional = test.was, test.provisional
			}
			if !p.Was.Equal(was) || p.Provisional != provisional {
				t.Errorf("%s, %s: the former start is %s, provisional %t; want %s, %t", test.name, p.Block, p.Was, p.Provisional, was, provisional)
			}
		}
	}
}

// undecided is a ledger without a record of any round.
func undecided(int, season.GrandPrixID) assemble.Decided { return assemble.Decided{} }

// inYear returns facts with one round of a year, which started on 1 June.
func inYear(year int, gp season.GrandPrixID) (season.Facts, time.Time) {
	f := emptyFacts()
	day := time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC)
	f.Seasons = []season.Season{{Year: year, Rounds: []season.Round{
		{Number: 1, GrandPrix: gp, Name: string(gp), Circuit: "street", Date: day, Start: day.Add(13 * time.Hour)},
	}}}
	return f, day.AddDate(0, 0, 1)
}

// TestPointsOfTheYears: points pass the gate if a table of the year gives them.
func TestPointsOfTheYears(t *testing.T) {
	for _, test := range []struct {
		year   int
		gp     season.GrandPrixID
		sprint bool
		points []float64 // by position
		held   bool
	}{
		{year: 2009, gp: "monaco", points: []float64{9, 9, 9}}, // no table: everything passes
		{year: 2010, gp: "monaco", points: []float64{25, 18, 15}},
		{year: 2010, gp: "monaco", points: []float64{10, 8, 6}, held: true},
		{year: 2014, gp: "monaco", points: []float64{25, 18}},
		{year: 2014, gp: "abu-dhabi", points: []float64{50, 36}}, // double points at the last race
		{year: 2014, gp: "abu-dhabi", points: []float64{25, 18}, held: true},
		{year: 2015, gp: "abu-dhabi", points: []float64{50, 36}, held: true},
		{year: 2018, gp: "monaco", points: []float64{26, 18}, held: true},
		{year: 2019, gp: "monaco", points: []float64{25, 19}}, // the fastest lap
		{year: 2021, gp: "belgium", points: []float64{12.5, 9}},
		{year: 2022, gp: "belgium", points: []float64{12.5, 9}, held: true},
		{year: 2022, gp: "japan", points: []float64{19, 14, 12}},
		{year: 2022, gp: "japan", points: []float64{13, 10, 8}},
		{year: 2024, gp: "monaco", points: []float64{26, 18}},
		{year: 2025, gp: "monaco", points: []float64{26, 18}, held: true},
		{year: 2020, gp: "monaco", sprint: true, points: []float64{9, 9, 9}}, // no sprints, no table
		{year: 2021, gp: "monaco", sprint: true, points: []float64{3, 2, 1}},
		{year: 2021, gp: "monaco", sprint: true, points: []float64{8, 7, 6}, held: true},
		{year: 2022, gp: "monaco", sprint: true, points: []float64{8, 7, 6}},
		{year: 2022, gp: "monaco", sprint: true, points: []float64{3, 2, 1}, held: true},
	} {
		current, now := inYear(test.year, test.gp)
		theirs, _ := inYear(test.year, test.gp)
		r := &theirs.Seasons[0].Rounds[0]
		for i, driver := range []season.DriverID{"ann", "bob", "cid"}[:len(test.points)] {
			row := season.Result{Driver: driver, Team: teams[driver], Position: i + 1, Points: test.points[i]}
			if test.sprint {
				r.SprintResults = append(r.SprintResults, row)
			} else {
				r.Results = append(r.Results, row)
				r.DriverStandings = append(r.DriverStandings, season.DriverStanding{Driver: driver, Position: i + 1})
			}
		}
		out := must.Get(assemble.Assemble(assemble.Input{
			Current: current, Now: now, Decided: undecided,
			Documents: []assemble.Document{{Source: "f1db", From: test.year, To: test.year, Kind: assemble.Full, Facts: theirs}},
		}))(t)
		must.Equal(t, fmt.Sprintf("%d %s: standings without points are in doubt", test.year, test.gp), test.year >= 2010 && !test.sprint, len(out.Doubted) > 0)
		held := len(out.Held) == 1 && out.Held[0].Refused[0].Gate == assemble.PointsGate
		if held && out.Held[0].Round() != fmt.Sprintf("%s %d", test.gp, test.year) {
			t.Errorf("the held round is %q, want %s %d", out.Held[0].Round(), test.gp, test.year)
		}
		if held != test.held || held == (len(out.Applied) == 1) {
			t.Errorf("%d %s, sprint %t, points %v: held %+v, applied %+v; want held %t", test.year, test.gp, test.sprint, test.points, out.Held, out.Applied, test.held)
		}
	}
}

// TestLapsOfTwoSources: a source with other laps of a retired car disputes the result, and one without laps does not.
func TestLapsOfTwoSources(t *testing.T) {
	result := func(laps int) season.Facts {
		f, _ := inYear(2025, "monaco")
		f.Seasons[0].Rounds[0].Results = []season.Result{
			{Driver: "ann", Team: "rosso", Position: 1, Points: 25, Laps: 78}, {Driver: "bob", Team: "rosso", Outcome: season.DidNotFinish, Laps: laps},
		}
		f.Seasons[0].Rounds[0].SprintResults = []season.Result{{Driver: "bob", Team: "rosso", Position: 1, Points: 8, Laps: laps}}
		return f
	}
	current, now := inYear(2025, "monaco")
	for laps, want := range map[int][]assemble.Line{
		20: nil, 0: nil,
		21: {{About: "sprint of bob", Was: "P1, 8 points, 20 laps", Is: "P1, 8 points, 21 laps"}, {About: "bob", Was: "unplaced, 20 laps", Is: "unplaced, 21 laps"}},
	} {
		out := must.Get(assemble.Assemble(assemble.Input{Current: current, Now: now, Decided: undecided, Documents: []assemble.Document{
			{Source: "f1db", From: 2025, To: 2025, Kind: assemble.Full, Facts: result(20)},
			{Source: "jolpica", From: 2025, To: 2025, Kind: assemble.CheckOnly, Facts: result(laps)},
		}}))(t)
		var lines []assemble.Line
		for _, p := range out.Disputed {
			lines = append(lines, p.Lines...)
		}
		must.Equal(t, fmt.Sprintf("disputed with %d laps", laps), want, lines)
	}
}

// TestUnreadParts: a part that cannot be read is held in the seasons that the document covers, and its block is not applied.
func TestUnreadParts(t *testing.T) {
	for year, want := range map[int][3]int{2023: {0, 2, 1}, 2024: {1, 1, 0}, 2025: {0, 2, 1}, 0: {1, 2, 1}} { // held, applied and doubted
		current, now := inYear(2024, "monaco")
		theirs, _ := inYear(2024, "monaco")
		theirs.Seasons[0].Rounds[0].Grid = []season.GridSlot{{Driver: "ann", Team: "rosso", Position: 1}}
		theirs.Seasons[0].Rounds[0].DriverStandings = []season.DriverStanding{{Driver: "ann", Position: 1, Points: 1}}
		theirs.Seasons[0].Rounds[0].Results = []season.Result{{Driver: "ann", Team: "rosso", Position: 1, Points: 25}}
		unread := []season.Unread{{Year: year, GrandPrix: "monaco", Section: season.GridSection, Reason: "the slot is a word"}}
		out := must.Get(assemble.Assemble(assemble.Input{Current: current, Now: now, Decided: undecided, Documents: []assemble.Document{
			{Source: "f1db", From: 2024, To: 2024, Kind: assemble.Full, Facts: theirs, Unread: unread},
			{Source: "jolpica", From: 2024, To: 2024, Kind: assemble.CheckOnly, Facts: theirs, Unread: unread}, // nothing of it is held
		}}))(t)
		must.Equal(t, fmt.Sprintf("unread in %d", year), want, [3]int{len(out.Held), len(out.Applied), len(out.Doubted)})
		must.Hold(t, want[0] == 0 || strings.HasPrefix(out.Held[0].Refused[0].Reason, "the slot is a word: "), "unread in %d: held %+v", year, out.Held)
	}
}

// TestMergedStandings: two names of a competitor become one row with the points of both, apart from the rows without a place.
func TestMergedStandings(t *testing.T) {
	var drivers, merged []season.DriverStanding
	var teams, joined []season.TeamStanding
	list := func(d *[]season.DriverStanding, c *[]season.TeamStanding, name string, position int, points float64) {
		*d = append(*d, season.DriverStanding{Driver: season.DriverID(name), Position: position, Points: points})
		*c = append(*c, season.TeamStanding{Team: season.TeamID(name), Engine: "v6", Position: position, Points: points})
	}
	for i, name := range []string{"ann", "bob", "cid", "dan", "bob"} {
		list(&drivers, &teams, name, i+1, []float64{25, 20, 9, 9, 8}[i])
		list(&merged, &joined, []string{"bob", "ann", "cid", "dan", "cid"}[i], (i+1)%5, []float64{28, 25, 9, 9, 4}[i])
	}
	for i, name := range []string{"bob", "cid", "cid"} {
		list(&drivers, &teams, name, 0, []float64{2, 3, 1}[i])
	}
	list(&merged, &joined, "bob", 0, 2)
	other := season.TeamStanding{Team: "ann", Engine: "v8", Position: 6, Points: 1}
	r := season.Round{DriverStandings: drivers, TeamStandings: append(teams, other)}
	assemble.MergeStandings(&r)
	other.Position = 5
	must.Equal(t, "drivers", merged, r.DriverStandings)
	must.Equal(t, "teams, of which one has two engines", slices.Insert(joined, 4, other), r.TeamStandings)
	backwards := []season.DriverStanding{{Driver: "ann", Position: 1, Points: 8}, {Driver: "bob", Position: 2, Points: 9}} // not all results count
	r = season.Round{DriverStandings: slices.Clone(backwards)}
	assemble.MergeStandings(&r)
	must.Equal(t, "drivers of one name each", backwards, r.DriverStandings)
}

// TestNewSeason: every kind that adds rounds adds a season with them, and no kind adds an empty season.
func TestNewSeason(t *testing.T) {
	for kind, want := range map[assemble.Kind][]int{
		assemble.Full: {2022, 2024, 2025}, assemble.Sparse: {2022, 2024, 2025}, assemble.Manual: {2022, 2024, 2025}, assemble.CheckOnly: {2024},
	} {
		current, now := inYear(2024, "monaco")
		theirs, _ := inYear(2025, "monaco")
		earlier, _ := inYear(2022, "japan")
		earlier.Seasons[0].Rounds[0].Circuit, earlier.Seasons[0].Rounds[0].Start = "suzuka", time.Time{}
		theirs.Seasons = append(theirs.Seasons, season.Season{Year: 2021}, earlier.Seasons[0])
		out := must.Get(assemble.Assemble(assemble.Input{
			Current: current, Now: now, Decided: undecided,
			Documents: []assemble.Document{{Source: "f1db", From: 2021, To: 2025, Kind: kind, Facts: theirs}},
		}))(t)
		var years []int
		for _, s := range out.Facts.Seasons {
			years = append(years, s.Year)
		}
		must.Equal(t, "the assumed hour of a season before the first with hours", time.Duration(0), out.Facts.Seasons[0].Rounds[0].AssumedHour)
		if !slices.Equal(years, want) || len(out.Disputed) > 0 {
			t.Errorf("kind %d: the seasons are %v, want %v; disputed %+v", kind, years, want, out.Disputed)
		}
	}
}

// TestAliasesInEveryTable: aliases of a driver and a team reach every table of a round.
func TestAliasesInEveryTable(t *testing.T) {
	current, now := inYear(2024, "monaco")
	theirs, _ := inYear(2024, "monaco")
	r := &theirs.Seasons[0].Rounds[0]
	for _, d := range []struct {
		id   season.DriverID
		team season.TeamID
	}{{"annie", "rossa"}, {"cid", "verde"}} {
		place := len(r.Entries) + 1
		points := []float64{25, 18}[place-1]
		r.Entries = append(r.Entries, season.Entry{Driver: d.id, Team: d.team, Number: place})
		r.Practice[2] = append(r.Practice[2], season.TimedLap{Driver: d.id, Team: d.team, Time: time.Minute})
		r.Qualifying = append(r.Qualifying, season.QualifyingRow{Driver: d.id, Team: d.team, Position: place})
		r.SprintQualifying = append(r.SprintQualifying, season.QualifyingRow{Driver: d.id, Team: d.team, Position: place})
		r.SprintGrid = append(r.SprintGrid, season.GridSlot{Driver: d.id, Team: d.team, Position: place})
		r.SprintResults = append(r.SprintResults, season.Result{Driver: d.id, Team: d.team, Position: place, Points: float64(9 - place)})
		r.Grid = append(r.Grid, season.GridSlot{Driver: d.id, Team: d.team, Position: place})
		r.Results = append(r.Results, season.Result{Driver: d.id, Team: d.team, Position: place, Points: points})
		r.FastestLaps = append(r.FastestLaps, season.FastestLap{Driver: d.id, Lap: 3, Time: time.Minute})
		r.PitStops = append(r.PitStops, season.PitStop{Driver: d.id, Stop: 1, Lap: 9})
		r.DriverStandings = append(r.DriverStandings, season.DriverStanding{Driver: d.id, Position: place, Points: points + float64(9-place)})
		r.TeamStandings = append(r.TeamStandings, season.TeamStanding{Team: d.team, Position: place})
	}
	var want season.Round
	current.Drivers["ann"] = season.Driver{ID: "ann", Name: "Annie", HeadshotURL: "https://portraits/ann"}
	before := must.Get(json.Marshal(r))(t)
	sheets := []season.Sheet{{Year: 2024, GrandPrix: "monaco", Section: season.GridSection, Rows: []season.SheetRow{{Driver: "annie", Team: "rossa"}}}}
	renamed := strings.NewReplacer(`"annie"`, `"ann"`, `"rossa"`, `"rosso"`).Replace(string(before))
	must.Do(t, json.Unmarshal([]byte(renamed), &want))
	out := must.Get(assemble.Assemble(assemble.Input{
		Current: current, Now: now, Decided: undecided, Since: 2025,
		Documents: []assemble.Document{{Source: "f1db", From: 2024, To: 2024, Kind: assemble.Full, Facts: theirs, Sheets: sheets}},
		Aliases:   map[season.DriverID]season.DriverID{"annie": "ann"},
		Named:     []assemble.Alias{{Kind: assemble.TeamAlias, From: "rossa", To: "rosso"}},
	}))(t)
	must.Equal(t, "the round with aliases", want, out.Facts.Seasons[0].Rounds[0])
	must.Equal(t, "the driver, whom the source names without a portrait", season.Driver{ID: "ann", Name: "ann", HeadshotURL: "https://portraits/ann"}, out.Facts.Drivers["ann"])
	if after, err := json.Marshal(r); err != nil || string(after) != string(before) || sheets[0].Rows[0].Driver != "annie" {
		t.Errorf("Assemble changed its input: %s, %+v, %v", after, sheets, err)
	}
}

// TestAliasesInSheets: sheets have the identifiers of the facts if an alias follows on another, if two are of one name, and if
// a season keeps a round under its name. Otherwise the tables of the weekend contradict each other.
func TestAliasesInSheets(t *testing.T) {
	for _, test := range []struct {
		named []assemble.Alias
		round season.GrandPrixID // another of the season
		want  season.TeamID
	}{
		{named: []assemble.Alias{{Kind: assemble.TeamAlias, From: "rossa", To: "rosso"}, {Kind: assemble.TeamAlias, From: "rosso", To: "verde"}}, want: "verde"},
		{named: []assemble.Alias{{Kind: assemble.TeamAlias, From: "rossa", To: "rosso"}, {Kind: assemble.TeamAlias, From: "rossa", To: "verde"}}, want: "rosso"},
		{named: []assemble.Alias{{Kind: assemble.EngineAlias, From: "v8", To: "v6"}, {Kind: assemble.EngineAlias, From: "v6", To: "v10"}}, want: "rossa"},
		{named: []assemble.Alias{{Kind: assemble.RoundAlias, From: "monaco", To: "bay"}}, round: "bay", want: "rossa"},
	} {
		current, now := inYear(2025, "monaco")
		theirs, _ := inYear(2025, "monaco")
		rounds := &theirs.Seasons[0].Rounds
		r := &(*rounds)[0]
		for _, name := range []string{"rossa", "rosso", "verde"} {
			theirs.Teams[season.TeamID(name)] = season.Team{ID: season.TeamID(name), Name: name}
		}
		for _, name := range []season.EngineID{"v6", "v8", "v10"} {
			theirs.Engines[name] = season.Engine{ID: name, Name: string(name)}
		}
		sheet := season.Sheet{Year: 2025, GrandPrix: "monaco", Section: season.Section(season.Qualifying)}
		for i, driver := range []season.DriverID{"annie", "cid"} {
			theirs.Drivers[driver] = season.Driver{ID: driver, Name: string(driver)}
			r.Entries = append(r.Entries, season.Entry{Driver: driver, Team: "rossa", Engine: "v8", Number: 2 + i})
			r.Qualifying = append(r.Qualifying, season.QualifyingRow{Driver: driver, Team: "rossa", Position: 1 + i, Segments: [3]time.Duration{time.Minute + time.Duration(i)}})
			sheet.Rows = append(sheet.Rows, season.SheetRow{Driver: driver, Team: "rossa", Engine: "v8", Number: 2 + i, Place: strconv.Itoa(1 + i)})
		}
		sheets := []season.Sheet{sheet}
		if test.round != "" {
			other := *r
			other.Number, other.GrandPrix, other.Date, other.Start = 2, test.round, r.Date.AddDate(0, 0, 14), r.Start.AddDate(0, 0, 14)
			other.Entries = slices.Clone(r.Entries)
			sheet.GrandPrix, sheet.Rows = test.round, slices.Clone(sheet.Rows)
			for i := range other.Entries {
				other.Entries[i].Number += 10
				sheet.Rows[i].Number += 10
			}
			*rounds, sheets = append(*rounds, other), append(sheets, sheet)
			other.Entries, other.Qualifying = nil, nil
			current.Seasons[0].Rounds = append(current.Seasons[0].Rounds, other)
		}
		out := must.Get(assemble.Assemble(assemble.Input{
			Current: current, Now: now.AddDate(0, 0, 14), Decided: undecided, Since: 2025, Named: test.named,
			Documents: []assemble.Document{{Source: "f1db", From: 2025, To: 2025, Kind: assemble.Full, Facts: theirs, Sheets: sheets}},
		}))(t)
		got := out.Facts.Seasons[0].Rounds[0].Qualifying
		must.Hold(t, len(out.Held) == 0 && len(got) == 2 && got[0].Team == test.want, "%v: qualifying %+v, held %+v; want it applied for %s", test.named, got, out.Held, test.want)
	}
}

// TestLineages: links to the same team from the same year join two lineages. A link that the document has corrected goes, and
// one of a team that it does not name stays.
func TestLineages(t *testing.T) {
	link := func(team season.TeamID, from, to int) season.Link {
		return season.Link{Team: team, From: from, To: to}
	}
	lineage := func(links ...season.Link) season.Lineage { return season.Lineage{Links: links} }
	current, now := inYear(2024, "monaco")
	current.Teams["nero"] = season.Team{ID: "nero", Name: "Nero"}
	current.Lineages = []season.Lineage{lineage(link("verde", 2001, 0)), lineage(link("nero", 2000, 2009), link("rosso", 2010, 0), link("verde", 2021, 0))}
	theirs, _ := inYear(2024, "monaco")
	theirs.Lineages = []season.Lineage{lineage(link("blu", 2005, 2009), link("rosso", 2010, 2020)), lineage(link("blu", 2021, 0))}
	for kind, want := range map[assemble.Kind][]season.Lineage{
		assemble.Full: {
			lineage(link("verde", 2001, 0)), lineage(link("nero", 2000, 2009), link("blu", 2005, 2009), link("rosso", 2010, 2020)), lineage(link("blu", 2021, 0)),
		},
		assemble.CheckOnly: current.Lineages,
	} {
		out := must.Get(assemble.Assemble(assemble.Input{
			Current: current, Now: now, Decided: undecided,
			Documents: []assemble.Document{{Source: "f1db", From: 2024, To: 2024, Kind: kind, Facts: theirs}},
		}))(t)
		must.Equal(t, fmt.Sprintf("kind %d: lineages", kind), want, out.Facts.Lineages)
		must.Equal(t, "the second team of the lineage of the input", season.TeamID("rosso"), current.Lineages[1].Links[1].Team)
	}
}
