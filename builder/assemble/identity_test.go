package assemble_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/assemble"
	"gridcast/builder/season"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

// weekendOf returns the season of 2025 up to Monza, as the archive in use has it, and as a source has it with Monza. change
// edits the source's Monza.
func weekendOf(t *testing.T, change func(f *season.Facts, r *season.Round, d *assemble.Document)) (season.Facts, assemble.Document) {
	t.Helper()
	copied := func() (season.Facts, *season.Round) {
		f := archivetest.Seasons(t, 2024, 2025)
		s := &f.Seasons[1]
		last := slices.IndexFunc(s.Rounds, func(r season.Round) bool { return r.GrandPrix == "italy" })
		for i := last + 1; i < len(s.Rounds); i++ {
			s.Rounds[i] = archivetest.Scheduled(&s.Rounds[i])
		}
		f.Drivers, f.Teams, f.Circuits, f.Engines = maps.Clone(f.Drivers), maps.Clone(f.Teams), maps.Clone(f.Circuits), maps.Clone(f.Engines)
		return f, &s.Rounds[last]
	}
	ours, monza := copied()
	*monza = archivetest.Scheduled(monza)
	theirs, said := copied()
	d := assemble.Document{Source: "f1db", Revision: "r1", From: 2024, To: 2025, Kind: assemble.Full}
	for part, rows := range map[season.Section][]season.Entry{season.Section(season.Qualifying): said.Entries, season.ResultSection: said.Entries} {
		sheet := season.Sheet{Year: 2025, GrandPrix: "italy", Section: part}
		for _, e := range rows {
			sheet.Rows = append(sheet.Rows, season.SheetRow{Driver: e.Driver, Team: e.Team, Engine: e.Engine, Number: e.Number})
		}
		d.Sheets = append(d.Sheets, sheet)
	}
	d.Born = map[season.DriverID]string{"gabriel-bortoleto": "2004-10-14"}
	if change != nil {
		change(&theirs, said, &d)
	}
	d.Facts = theirs
	return ours, d
}

// called gives a driver another identifier in a round of the source, also in its sheets. part limits it to a table.
func called(f *season.Facts, r *season.Round, d *assemble.Document, from, to season.DriverID, part string) {
	other := *r
	season.Rename(&other, from, to)
	for name, change := range map[string]func(){
		"practice":   func() { r.Practice = other.Practice },
		"entries":    func() { r.Entries = other.Entries },
		"qualifying": func() { r.Qualifying = other.Qualifying },
		"grid":       func() { r.Grid = other.Grid },
		"results":    func() { r.Results = other.Results },
		"pit stops":  func() { r.PitStops = other.PitStops },
		"standings":  func() { r.DriverStandings = other.DriverStandings },
	} {
		if part == "" || part == name {
			change()
		}
	}
	for i := range d.Sheets {
		of := map[season.Section]string{season.ResultSection: "results", season.Section(season.Qualifying): "qualifying"}[d.Sheets[i].Section]
		for k := range d.Sheets[i].Rows {
			if row := &d.Sheets[i].Rows[k]; row.Driver == from && (part == "" || part == of) {
				row.Driver = to
			}
		}
	}
	f.Drivers[to] = season.Driver{ID: to, Name: "Someone Else", FirstName: "Someone", LastName: "Else", Abbreviation: "ELS", Country: "GER"}
}

func named(f *season.Facts, id season.DriverID, change func(*season.Driver)) {
	d := f.Drivers[id]
	change(&d)
	f.Drivers[id] = d
}

// standsAs renames Kick Sauber in the standings alone, and gives the new identifier a name.
func standsAs(name string) func(*season.Facts, *season.Round, *assemble.Document) {
	return func(f *season.Facts, r *season.Round, _ *assemble.Document) {
		f.Teams["sauber-f1"] = season.Team{ID: "sauber-f1", Name: name, Country: "CHE"}
		other := *r
		season.Rename(&other, season.TeamID("kick-sauber"), "sauber-f1")
		r.TeamStandings = other.TeamStandings
	}
}

// TestIdentity: a new identifier that may be another name of a known driver, team, engine or circuit is held in whatever table it
// stands, and the reason names both. A driver of another number, name, birth date and code passes.
func TestIdentity(t *testing.T) {
	const known, other = "gabriel-bortoleto", "the-new-one"
	said := make(map[string]string)
	for _, test := range []struct {
		what   string
		change func(f *season.Facts, r *season.Round, d *assemble.Document)
	}{
		{"nothing new", nil},
		{"number and team", func(f *season.Facts, r *season.Round, d *assemble.Document) { called(f, r, d, known, other, "") }},
		{"name, in practice", func(f *season.Facts, r *season.Round, d *assemble.Document) {
			called(f, r, d, known, other, "practice")
			named(f, other, func(d *season.Driver) { d.Name = "BORTOLETO" })
		}},
		{"number and team, in the first practice", func(f *season.Facts, r *season.Round, d *assemble.Document) {
			second := r.Practice[1]
			called(f, r, d, known, other, "practice")
			r.Practice[1] = second
			d.Sheets = append(d.Sheets, season.Sheet{Year: 2025, GrandPrix: "italy", Section: practice, Rows: []season.SheetRow{{Driver: other, Team: "kick-sauber", Number: 5}}})
		}},
		{"birth date, in pit stops", func(f *season.Facts, r *season.Round, d *assemble.Document) {
			called(f, r, d, known, other, "pit stops")
			d.Born[other] = d.Born[known]
		}},
		{"code, in the standings", func(f *season.Facts, r *season.Round, d *assemble.Document) {
			called(f, r, d, known, other, "standings")
			named(f, other, func(d *season.Driver) { d.Abbreviation = "BOR" })
		}},
		{"code, but another birth date", func(f *season.Facts, r *season.Round, d *assemble.Document) {
			called(f, r, d, known, other, "standings")
			named(f, other, func(d *season.Driver) { d.Abbreviation = "BOR" })
			d.Born[other] = "2005-10-14"
		}},
		{"in qualifying alone", func(f *season.Facts, r *season.Round, d *assemble.Document) {
			called(f, r, d, known, other, "qualifying")
		}},
		{"in the result alone", func(f *season.Facts, r *season.Round, d *assemble.Document) { called(f, r, d, known, other, "results") }},
		{"a known driver in another's car after qualifying", func(f *season.Facts, r *season.Round, d *assemble.Document) {
			driver := f.Drivers["valtteri-bottas"]
			called(f, r, d, known, "valtteri-bottas", "results")
			f.Drivers["valtteri-bottas"] = driver
		}},
		{"a stand-in with a number of his own", func(f *season.Facts, r *season.Round, d *assemble.Document) {
			called(f, r, d, known, other, "")
			for i := range r.Entries {
				if r.Entries[i].Driver == other {
					r.Entries[i].Number = 98
				}
			}
			for i := range d.Sheets {
				for k := range d.Sheets[i].Rows {
					if d.Sheets[i].Rows[k].Driver == other {
						d.Sheets[i].Rows[k].Number = 98
					}
				}
			}
		}},
		{"a team with the same drivers", func(f *season.Facts, r *season.Round, _ *assemble.Document) {
			f.Teams["sauber-f1"] = season.Team{ID: "sauber-f1", Name: "Something", Country: "CHE"}
			other := *r
			season.Rename(&other, season.TeamID("kick-sauber"), "sauber-f1")
			r.Entries = other.Entries
		}},
		{"a team with the same name, in the standings", standsAs("Kick Sauber F1 Team")},
		{"a team with the same engine, in the standings", standsAs("Something")},
		{"a circuit of the same name", func(f *season.Facts, r *season.Round, _ *assemble.Document) {
			f.Circuits["monza-gp"] = season.Circuit{ID: "monza-gp", Name: f.Circuits[r.Circuit].Name, Locality: "Brianza", Country: "Italy"}
			r.Circuit = "monza-gp"
		}},
		{"a circuit without a name", func(_ *season.Facts, r *season.Round, _ *assemble.Document) { r.Circuit = "monza-gp" }},
		{"an engine of a known team", func(f *season.Facts, r *season.Round, _ *assemble.Document) {
			f.Engines["ferrari-power"] = season.Engine{ID: "ferrari-power", Name: "Power"}
			other := *r
			season.Rename(&other, season.EngineID("ferrari"), "ferrari-power")
			r.Results = other.Results
		}},
		{"a circuit in the same place", func(f *season.Facts, r *season.Round, _ *assemble.Document) {
			f.Circuits["monza-gp"] = season.Circuit{ID: "monza-gp", Name: "Autodromo", Locality: "Monza", Country: "Italy"}
			r.Circuit = "monza-gp"
		}},
		{"a circuit in another place of the country", func(f *season.Facts, r *season.Round, _ *assemble.Document) {
			f.Circuits["mugello-gp"] = season.Circuit{ID: "mugello-gp", Name: "Autodromo", Locality: "Scarperia", Country: "Italy"}
			r.Circuit = "mugello-gp"
		}},
		{"a circuit under another identifier in the last season too", func(f *season.Facts, r *season.Round, _ *assemble.Document) {
			f.Circuits["monza-gp"] = season.Circuit{ID: "monza-gp", Name: "Autodromo", Locality: "Monza", Country: "Italy"}
			r.Circuit = "monza-gp"
			f.Seasons = f.Seasons[1:]
		}},
	} {
		ours, d := weekendOf(t, test.change)
		out := must.Get(assemble.Assemble(assemble.Input{Current: ours, Documents: []assemble.Document{d}, Decided: undecided, Now: time.Date(2025, 9, 9, 0, 0, 0, 0, time.UTC)}))(t)
		var reasons []string
		for _, p := range out.Held {
			for _, r := range p.Refused {
				if r.Gate == assemble.IdentityGate {
					reasons = append(reasons, r.Reason)
				}
			}
		}
		said[test.what] = strings.Join(reasons, "\n")
	}
	golden.Inputs(t, "testdata/identity.txt", said)
}

// TestIdentityMerged: after an alias every table is the one that the source would have had with one name; after an acceptance of
// each held block the archive has the source's tables.
func TestIdentityMerged(t *testing.T) {
	truthOurs, truth := weekendOf(t, nil)
	want := must.Get(assemble.Assemble(assemble.Input{Current: truthOurs, Documents: []assemble.Document{truth}, Decided: undecided, Now: time.Date(2025, 9, 9, 0, 0, 0, 0, time.UTC)}))(t)
	twice := func(f *season.Facts, r *season.Round, d *assemble.Document) {
		called(f, r, d, "gabriel-bortoleto", "the-new-one", "")
		// The source splits the points of the driver.
		i := slices.IndexFunc(r.DriverStandings, func(row season.DriverStanding) bool { return row.Driver == "the-new-one" })
		rest := season.DriverStanding{Driver: "gabriel-bortoleto", Position: len(r.DriverStandings) + 1, Points: r.DriverStandings[i].Points - 1}
		r.DriverStandings[i].Points = 1
		r.DriverStandings = append(r.DriverStandings, rest)
	}
	ours, d := weekendOf(t, twice)
	in := assemble.Input{
		Current: ours, Documents: []assemble.Document{d}, Decided: undecided, Now: time.Date(2025, 9, 9, 0, 0, 0, 0, time.UTC),
		Aliases: map[season.DriverID]season.DriverID{"the-new-one": "gabriel-bortoleto"},
	}
	got := must.Get(assemble.Assemble(in))(t)
	points := func(f season.Facts) map[season.DriverID]float64 {
		all := make(map[season.DriverID]float64)
		for _, row := range roundOf(t, f, 2025, "italy").DriverStandings {
			all[row.Driver] += row.Points
		}
		return all
	}
	must.Equal(t, "points after the alias", points(want.Facts), points(got.Facts))
	must.Equal(t, "result after the alias", roundOf(t, want.Facts, 2025, "italy").Results, roundOf(t, got.Facts, 2025, "italy").Results)
	in.Aliases, in.Accepted = nil, make(map[string]bool)
	for range 3 {
		out := must.Get(assemble.Assemble(in))(t)
		in.Current = out.Facts
		for _, p := range out.Held {
			in.Accepted[p.ID] = true
		}
	}
	if diff := cmp.Diff(d.Facts.Seasons[1].Rounds, in.Current.Seasons[1].Rounds); diff != "" {
		t.Errorf("rounds after acceptance (-want +got):\n%.2000s", diff)
	}
	// An engine with an alias, also in the tables of numbers.
	ours, d = weekendOf(t, func(_ *season.Facts, r *season.Round, d *assemble.Document) {
		season.Rename(r, season.EngineID("ferrari"), "ferrari-power")
		for _, s := range d.Sheets {
			for k := range s.Rows {
				if s.Rows[k].Engine == "ferrari" {
					s.Rows[k].Engine = "ferrari-power"
				}
			}
		}
	})
	aliased := must.Get(assemble.Assemble(assemble.Input{
		Current: ours, Documents: []assemble.Document{d}, Decided: undecided, Now: time.Date(2025, 9, 9, 0, 0, 0, 0, time.UTC),
		Named: []assemble.Alias{{Kind: assemble.EngineAlias, From: "ferrari-power", To: "ferrari"}},
	}))(t)
	must.Equal(t, "held with the alias of an engine, and aliases of teams", 0, len(aliased.Held)+len(aliased.Facts.Aliases))
	// A team with two names that is merged after the archive had both.
	_, d = weekendOf(t, nil)
	r := &d.Facts.Seasons[1].Rounds[15]
	other := *r
	season.Rename(&other, season.TeamID("kick-sauber"), "sauber-f1")
	r.Entries = other.Entries
	d.Facts.Teams["sauber-f1"] = season.Team{ID: "sauber-f1", Name: "Other", Country: "CHE"}
	current := d.Facts
	current.Aliases = map[season.TeamID]season.TeamID{"sauber-ag": "sauber-f1", "kick-sauber": "sauber-f1", "racing-bulls-2": "racing-bulls"}
	merged, err := assemble.Assemble(assemble.Input{
		Current: current, Documents: []assemble.Document{d}, Decided: undecided, Now: time.Date(2025, 9, 9, 0, 0, 0, 0, time.UTC),
		Named: []assemble.Alias{{Kind: assemble.TeamAlias, From: "sauber-f1", To: "kick-sauber"}},
	})
	if err != nil || len(merged.Held) > 0 {
		t.Fatalf("merged: held %+v, %v", merged.Held, err)
	}
	aliases := map[season.TeamID]season.TeamID{"sauber-ag": "kick-sauber", "sauber-f1": "kick-sauber", "racing-bulls-2": "racing-bulls"}
	must.Equal(t, "the aliases", aliases, merged.Facts.Aliases)
	must.Equal(t, "entries after the alias of a team", roundOf(t, want.Facts, 2025, "italy").Entries, roundOf(t, merged.Facts, 2025, "italy").Entries)
}
