package f1db_test

import (
	"archive/zip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/media"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

// world is the small release of testdata, as files by name.
func world(t testing.TB) map[string]string {
	t.Helper()
	a := must.Get(txtar.ParseFile("testdata/world.txtar"))(t)
	files := make(map[string]string)
	for _, f := range a.Files {
		files[f.Name] = string(f.Data)
	}
	return files
}

// folder writes files to a new folder and returns its path.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644))
	}
	return dir
}

func TestSmallRelease(t *testing.T) {
	colours := media.Colours{2023: {"verde": "#00FF00", "blu": "#0000FF"}, 1999: {"verde": "#112233"}}
	a, report := must.Get2(f1db.Import(folder(t, world(t)), f1db.Options{Media: media.Media{Colours: colours}}))(t)
	day := func(d int) time.Time { return time.Date(2023, 6, d, 0, 0, 0, 0, time.UTC) }
	want := season.Facts{
		Source: f1db.Source,
		Drivers: map[season.DriverID]season.Driver{
			"anna-arno": {ID: "anna-arno", Name: "Anna Arno", FirstName: "Anna", LastName: "Arno", Abbreviation: "ARN", Country: "ITA"},
			"bert-berg": {ID: "bert-berg", Name: "Bert Berg", FirstName: "Bert", LastName: "Berg", Abbreviation: "BER", Country: "AUT"},
			"carl-coda": {ID: "carl-coda", Name: "Carl Coda", FirstName: "Carl", LastName: "Coda", Abbreviation: "COD", Country: "ITA"},
		},
		Teams: map[season.TeamID]season.Team{
			"rosso": {ID: "rosso", Name: "Rosso", Country: "ITA"},
			"verde": {ID: "verde", Name: "Verde", Country: "ITA"},
		},
		Engines:  map[season.EngineID]season.Engine{"vee": {ID: "vee", Name: "Vee"}},
		Circuits: map[season.CircuitID]season.Circuit{"ring": {ID: "ring", Name: "Alpenring", Locality: "Alpdorf", Country: "Austria"}},
		Lineages: []season.Lineage{{Links: []season.Link{{Team: "verde", From: 2019, To: 2022}, {Team: "rosso", From: 2023}}}},
		Seasons: []season.Season{{
			Year:    2023,
			Colours: map[season.TeamID]string{"verde": "#00FF00"},
			Rounds: []season.Round{{
				Number: 1, GrandPrix: "austria", Name: "Austrian Grand Prix", Circuit: "ring", Street: true, CourseKm: 4.5,
				ScheduledLaps: 60, Date: day(4), Start: day(4).Add(13 * time.Hour),
				Sessions: []season.Session{
					{Kind: season.Practice1, Date: day(2), Start: day(2).Add(11*time.Hour + 30*time.Minute)},
					{Kind: season.Qualifying, Date: day(3), Start: day(3).Add(14 * time.Hour)},
				},
				Entries: []season.Entry{{Driver: "anna-arno", Team: "rosso", Engine: "vee", Number: 1}, {Driver: "bert-berg", Team: "verde", Engine: "vee", Number: 2}},
				Practice: [4][]season.TimedLap{{
					{Driver: "anna-arno", Team: "rosso", Time: 90500 * time.Millisecond, Laps: 20},
				}},
				Qualifying: []season.QualifyingRow{
					{
						Driver: "anna-arno", Team: "rosso", Position: 1,
						Segments: [3]time.Duration{90 * time.Second, 89500 * time.Millisecond, 89 * time.Second},
					},
					{Driver: "bert-berg", Team: "verde", Position: 2, Segments: [3]time.Duration{91 * time.Second, 90500 * time.Millisecond}},
					{Driver: "carl-coda", Team: "verde", Position: 3, Segments: [3]time.Duration{92 * time.Second}},
				},
				Grid: []season.GridSlot{{Driver: "anna-arno", Team: "rosso", Position: 1, Penalty: 3}, {Driver: "bert-berg", Team: "verde", Position: 0, Back: true}},
				Results: []season.Result{
					{Driver: "bert-berg", Team: "verde", Engine: "vee", Position: 1, Laps: 50, Time: 90 * time.Minute, Points: 25},
					{Driver: "anna-arno", Team: "rosso", Engine: "vee", Outcome: season.DidNotFinish, Grid: 1, Laps: 12, Reason: "Engine"},
					{Driver: "carl-coda", Team: "verde", Engine: "vee", Outcome: season.DidNotQualify, Number: 3}, // has no entry
				},
				DriverStandings: []season.DriverStanding{{Driver: "bert-berg", Position: 1, Points: 25}}, // the season is not complete
				TeamStandings:   []season.TeamStanding{{Team: "verde", Engine: "vee", Position: 1, Points: 25}},
			}, {
				Number: 2, GrandPrix: "alps", Name: "Grand Prix of the Alps", Circuit: "ring", CourseKm: 4.5,
				ScheduledLaps: 60, Date: day(11), Sprint: true,
				Sessions: []season.Session{{Kind: season.Sprint, Date: day(10)}},
			}},
		}},
	}
	must.Equal(t, "facts", want, a.Facts())
	skips := make(map[string]string)
	for _, s := range report.Skipped {
		skips[s.What] = s.Why
	}
	for what, why := range map[string]string{
		"f1db-chassis.json":         "not needed",
		"*.schema.json":             "schemas, not data",
		"f1db-races-pit-stops.json": "not in this release",
		"drivers":                   "no row refers to them",
		"team colours":              "teams not in these seasons",
	} {
		must.Equal(t, fmt.Sprintf("skipped %s", what), why, skips[what])
	}
	if report.Seasons != 1 || report.Rounds != 2 || report.Results != 3 || report.From != 2023 || report.To != 2023 {
		t.Errorf("got report %+v", report)
	}
}

// TestCompleteSeason checks that the standings of a complete season are those of its own file.
func TestCompleteSeason(t *testing.T) {
	files := world(t)
	files["f1db-races.json"] = strings.Split(files["f1db-races.json"], "},\n")[0] + "}]"
	a, _ := must.Get2(f1db.Import(folder(t, files), f1db.Options{}))(t)
	got := a.Facts().Seasons[0].Rounds[0].DriverStandings
	if diff := cmp.Diff([]season.DriverStanding{{Driver: "bert-berg", Points: 25}}, got); diff != "" {
		t.Error(diff)
	}
}

// TestRoundBeforeItsResult checks the entries of a round of which only qualifying is known.
func TestRoundBeforeItsResult(t *testing.T) {
	files := world(t)
	files["f1db-races-race-results.json"] = "[]"
	delete(files, "f1db-races-starting-grid-positions.json")
	a, _ := must.Get2(f1db.Import(folder(t, files), f1db.Options{}))(t)
	want := []season.Entry{{Driver: "anna-arno", Team: "rosso", Engine: "vee", Number: 1}, {Driver: "bert-berg", Team: "verde", Engine: "vee", Number: 2}, {Driver: "carl-coda", Team: "verde", Engine: "vee", Number: 3}}
	if diff := cmp.Diff(want, a.Facts().Seasons[0].Rounds[0].Entries); diff != "" {
		t.Error(diff)
	}
}

// TestImportErrors changes one thing of the small release at a time. The golden file has the errors.
func TestImportErrors(t *testing.T) {
	said := make(map[string]string)
	refused := func(name, path string, opts f1db.Options) {
		t.Helper()
		_, _, err := f1db.Import(path, opts)
		must.Fail(t, name+" was imported", err)
		said[name] = strings.ReplaceAll(fmt.Sprint(err), path, "PATH")
	}
	for _, test := range []struct{ name, file, old, with string }{ // old is replaced once; with no old, the file is replaced
		{"unknown driver", "f1db-races-race-results.json", `"driverId":"anna-arno"`, `"driverId":"zeno"`},
		{"unknown team", "f1db-races-qualifying-results.json", `"constructorId":"verde"`, `"constructorId":"nero"`},
		{"unknown engine", "f1db-races-constructor-standings.json", `"vee"`, `"wee"`},
		{"unknown race", "f1db-races-free-practice-1-results.json", `"raceId":7`, `"raceId":70`},
		{"unknown circuit", "f1db-races.json", `"circuitId":"ring"`, `"circuitId":"rang"`},
		{"unknown grand prix", "f1db-races.json", `"grandPrixId":"alps"`, `"grandPrixId":"alp"`},
		{"unknown country", "f1db-drivers.json", `"nationalityCountryId":"austria"`, `"nationalityCountryId":"at"`},
		{"race twice", "f1db-races.json", `"id":8`, `"id":7`},
		{"bad date", "f1db-races.json", "2023-06-11", "11.6.2023"},
		{"bad hour", "f1db-races.json", `"qualifyingTime":"14:00"`, `"qualifyingTime":"2 pm"`},
		{"no position and no reason", "f1db-races-race-results.json", `"positionText":"DNF"`, `"positionText":null`},
		{"wrong type", "f1db-races-race-results.json", `"laps":12`, `"laps":"twelve"`},
		{"cut off", "f1db-races-race-results.json", "", `[{"raceId":7,`},
		{"not an array", "f1db-races-race-results.json", "", `{}`},
		{"empty file", "f1db-circuits.json", "", ""},
		{"more after the end", "f1db-circuits.json", "}]", "}][]"},
		{"negative time", "f1db-races-free-practice-1-results.json", "90500", "-90500"},
		{"driver twice on the grid", "f1db-races-starting-grid-positions.json", "bert-berg", "anna-arno"},
	} {
		files := world(t)
		changed := strings.Replace(files[test.file], test.old, test.with, 1)
		if test.old == "" {
			changed = test.with
		}
		must.Require(t, changed != files[test.file], "%s does not hold %s", test.file, test.old)
		files[test.file] = changed
		refused(test.name, folder(t, files), f1db.Options{})
	}
	refused("missing", filepath.Join(t.TempDir(), "none.zip"), f1db.Options{})
	refused("empty folder", t.TempDir(), f1db.Options{})
	refused("broken zip", filepath.Join(folder(t, map[string]string{"f1db.zip": "PK\x03\x04 and no more"}), "f1db.zip"), f1db.Options{})
	refused("other zip", zipped(t, map[string]string{"readme.txt": "hello"}), f1db.Options{})
	refused("other JSON", filepath.Join(folder(t, map[string]string{"x.json": `{"races": []}`}), "x.json"), f1db.Options{})
	refused("too large", zipped(t, world(t)), f1db.Options{MaxBytes: 1000})
	refused("no season asked for", folder(t, world(t)), f1db.Options{From: 2024})
	path := zipped(t, world(t))
	data := must.Get(os.ReadFile(path))(t)
	data[strings.Index(string(data), "f1db-drivers.json")+40] ^= 0xff
	must.Do(t, os.WriteFile(path, data, 0o644))
	refused("damaged zip", path, f1db.Options{})
	files := world(t)
	delete(files, "f1db-drivers.json")
	refused("required file missing", folder(t, files), f1db.Options{})
	golden.Inputs(t, "testdata/errors.txt", said)
}

func zipped(t *testing.T, files map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "release.zip")
	f := must.Get(os.Create(path))(t)
	z := zip.NewWriter(f)
	for name, data := range files {
		w := must.Get(z.Create(name))(t)
		must.Get(w.Write([]byte(data)))(t)
	}
	must.Do(t, z.Close())
	must.Do(t, f.Close())
	return path
}

// FuzzImport feeds any bytes as the results of a release: an error or an archive, never a panic.
func FuzzImport(f *testing.F) {
	files := world(f)
	f.Add(files["f1db-races-race-results.json"])
	f.Add(`[{"raceId":7,"positionNumber":-1,"driverId":"anna-arno","driverNumber":"-3"}]`)
	f.Add(`[{"raceId":7,"positionText":"?","driverId":"anna-arno","timeMillis":9223372036854775807}]`)
	f.Fuzz(func(t *testing.T, results string) {
		dir := folder(t, files)
		must.Do(t, os.WriteFile(filepath.Join(dir, "f1db-races-race-results.json"), []byte(results), 0o644))
		a, report, err := f1db.Import(dir, f1db.Options{})
		if err != nil {
			return
		}
		rows := 0
		for _, r := range a.Facts().Seasons[0].Rounds {
			rows += len(r.Results)
		}
		if rows != report.Results {
			t.Errorf("%d results in the archive, %d in the report", rows, report.Results)
		}
	})
}

// TestOneBadCellOfARelease: a cell that cannot be read leaves out its own part of the document, and the reason names file,
// row and value. All other parts stay.
func TestOneBadCellOfARelease(t *testing.T) {
	const results, races = "f1db-races-race-results.json", "f1db-races.json"
	whole := documentOf(t, world(t))
	if len(whole.Unread) > 0 {
		t.Fatal(whole.Unread)
	}
	said := make(map[string]string)
	for _, test := range []struct {
		file, was, is string
		want          []season.Section // of the first round; empty: a thing
	}{
		{results, `"points":25`, `"points":"12,5"`, []season.Section{season.ResultSection}},
		{results, `"laps":12`, `"laps":{"n":12}`, []season.Section{season.ResultSection}},
		{results, `"laps":50`, `"laps":-50`, []season.Section{season.ResultSection}},
		{results, `"raceId":7`, `"raceId":77`, []season.Section{season.ResultSection}},
		{results, `"raceId":7`, `"raceId":8`, []season.Section{season.ResultSection}},
		{results, `"round":1`, `"round":9`, []season.Section{season.ResultSection}},
		{results, `{"raceId":7,"year":2023,"round":1`, `{"raceId":8,"year":2023,"round":2,"points":"x"},{"raceId":7,"year":2023,"round":2`, []season.Section{season.ResultSection}},
		{"f1db-races-qualifying-results.json", `"q2Millis":90500`, `"q2Millis":"1:30.5"`, []season.Section{season.Section(season.Qualifying)}},
		{"f1db-races-driver-standings.json", `"points":25`, `"points":true`, []season.Section{season.DriverStandingsSection}},
		{races, `"courseLength":4.5`, `"courseLength":"4,5"`, []season.Section{season.CalendarSection}},
		{races, `"time":"13:00"`, `"time":1300`, []season.Section{season.StartSection}},
		{races, `"qualifyingTime":"14:00"`, `"qualifyingTime":1400`, []season.Section{season.SessionsSection}},
		{"f1db-drivers.json", `"abbreviation":"ARN"`, `"abbreviation":7`, nil},
		{"f1db-seasons-driver-standings.json", `"points":25`, `"points":"n/a"`, nil},
	} {
		t.Run(test.file+" "+test.is, func(t *testing.T) {
			files := world(t)
			files[test.file] = must.Replace(t, files[test.file], test.was, test.is)
			d := documentOf(t, files)
			must.Require(t, len(d.Unread) > 0, "%s is read", test.is)
			said[test.file+" "+test.is] = d.Unread[0].Reason
			want, got := whole.Facts.Seasons[0].Rounds[0], d.Facts.Seasons[0].Rounds[0]
			for _, part := range test.want {
				want.Clear(part)
				if part == season.ResultSection || part == season.Section(season.Qualifying) {
					want.Entries = nil // they follow from both
				}
			}
			must.Equal(t, "the first round", want, got)
			must.Equal(t, "the second round", whole.Facts.Seasons[0].Rounds[1], d.Facts.Seasons[0].Rounds[1])
		})
	}
	// Nobody knows which of two races of one Grand Prix it is: no part of either counts.
	files := world(t)
	files[races] = must.Replace(t, files[races], `"grandPrixId":"alps"`, `"grandPrixId":"austria"`)
	d := documentOf(t, files)
	said["a Grand Prix twice"] = fmt.Sprint(d.Unread)
	must.Equal(t, "the rounds", []season.Round{{GrandPrix: "austria"}}, d.Facts.Seasons[0].Rounds)
	golden.Inputs(t, "testdata/cells.txt", said)
}

// documentOf reads a release as a source gives it.
func documentOf(t *testing.T, files map[string]string) source.Document {
	t.Helper()
	u := must.Get(f1db.NewRelease(zipped(t, files), "", media.Media{}))(t)
	payload := must.Get(u.Fetch(t.Context(), time.Now(), 2023, 2023, source.Known{}))(t)
	return must.Get(u.Read(payload.Packed))(t)
}
