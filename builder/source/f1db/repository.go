package f1db

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"gridcast/builder/season"
	"gridcast/builder/source/media"
)

// facts reads the facts of the tree's seasons and adds colours and portraits. It ignores unknown keys,
// because F1DB adds some in patch releases. A part with a value of a wrong type is in the report.
func (t *Tree) facts(add media.Media) (season.Facts, Report, error) {
	rel, err := t.release()
	if err != nil {
		return season.Facts{}, Report{}, fmt.Errorf("read f1db commit %.12s: %w", t.Commit, err)
	}
	facts, report, err := convert(rel, Options{Media: add})
	if err != nil {
		return season.Facts{}, Report{}, fmt.Errorf("read f1db commit %.12s: %w", t.Commit, err)
	}
	return facts, report, nil
}

// raceFiles are the files of a race's folder that hold the rows of a table.
var raceFiles = map[string]table{
	"free-practice-1-results.yml": practice[0], "free-practice-2-results.yml": practice[1],
	"free-practice-3-results.yml": practice[2], "free-practice-4-results.yml": practice[3],
	"sprint-qualifying-results.yml": sprintQualifying, "sprint-starting-grid-positions.yml": sprintGrid,
	"sprint-race-results.yml": sprintResults, "qualifying-results.yml": qualifying,
	"starting-grid-positions.yml": startingGrid, "race-results.yml": raceResults,
	"fastest-laps.yml": fastestLaps, "pit-stops.yml": pitStops,
	"driver-standings.yml": driverStandings, "constructor-standings.yml": teamStandings,
}

// release reads the tree into the rows of a release, so that both have one converter. It reads only
// the things to which a row refers.
func (t *Tree) release() (*release, error) {
	rel := newRelease()
	rel.files, rel.unknown = map[table]map[int]string{racesTable: {}}, make(map[string][]string)
	for table := range rel.rows {
		rel.files[table] = make(map[int]string)
	}
	refer := make(references)
	names := slices.Sorted(maps.Keys(t.files))
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, "seasons/")
		if !ok {
			continue
		}
		yearName, file, _ := strings.Cut(rest, "/")
		year, err := strconv.Atoi(yearName)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not a year", name, yearName)
		}
		switch {
		case file == "driver-standings.yml":
			t.readRows(name, rel, finalDrivers, row{Year: year}, year, refer)
		case file == "constructor-standings.yml":
			t.readRows(name, rel, finalTeams, row{Year: year}, year, refer)
		case path.Base(file) == "race.yml":
			t.readRace(name, year, rel, refer)
		}
	}
	if len(rel.races) == 0 {
		return nil, fmt.Errorf("no race from %d to %d", t.From, t.To)
	}
	rel.report.Tables = append(rel.report.Tables, Table{Name: racesTable.stem, Rows: len(rel.races)})
	t.readThings(rel, refer)
	return rel, nil
}

// readRace reads race.yml and the tables beside it. A file that cannot be read leaves its parts out. The folder names the
// Grand Prix if the file does not.
func (t *Tree) readRace(name string, year int, rel *release, refer references) {
	var r race
	err := decodeYAML(t.files[name], &r)
	// The identifier of a race names nothing outside this commit.
	r.ID, r.Year = len(rel.races)+1, year
	rel.files[racesTable][r.ID] = name
	parts := []season.Part{season.CalendarPart, season.StartPart, season.SessionsPart}
	switch wrongType := new(wrongTypesError); {
	case errors.As(err, &wrongType) && !strings.Contains(err.Error(), "into string"):
		parts = parts[:1] // dates and hours are texts
	case err == nil && r.Date != "" && r.GrandPrix != "" && r.Circuit != "":
		parts = nil
	case err == nil:
		err = fmt.Errorf("date %q, grandPrixId %q, circuitId %q: all are needed", r.Date, r.GrandPrix, r.Circuit)
	}
	for _, part := range parts {
		rel.faults = append(rel.faults, fault{r.ID, part, fmt.Errorf("%s: %w", name, err)})
	}
	folder := path.Dir(name)
	if _, ok := t.files["grands-prix/"+string(r.GrandPrix)+".yml"]; !ok || len(parts) > 1 {
		_, gp, _ := strings.Cut(path.Base(folder), "-")
		if len(parts) == 0 {
			rel.faults = append(rel.faults, fault{r.ID, season.CalendarPart, fmt.Errorf("%s: unknown grand prix %q", name, r.GrandPrix)})
		}
		r.GrandPrix = season.GrandPrixID(gp)
	}
	refer.add("circuits", string(r.Circuit))
	refer.add("grands-prix", string(r.GrandPrix))
	rel.races = append(rel.races, r)
	for _, file := range slices.Sorted(maps.Keys(raceFiles)) {
		beside := path.Join(folder, file)
		if _, ok := t.files[beside]; ok {
			t.readRows(beside, rel, raceFiles[file], row{RaceID: r.ID, Year: year}, r.ID, refer)
		}
	}
}

// readRows reads the rows of a table. Each row is a copy of base with the keys of the file. A file that cannot be read
// is a fault of the release and has no rows.
func (t *Tree) readRows(name string, rel *release, of table, base row, key int, refer references) {
	rel.files[of][key] = name
	var rows []yamlRow
	if err := decodeYAML(t.files[name], &rows); err != nil && !errors.Is(err, errEmpty) {
		rel.faults = append(rel.faults, fault{base.RaceID, of.part, fmt.Errorf("%s: %w", name, err)})
		return
	}
	for i, y := range rows {
		r := base
		r.Order, r.n = i+1, i+1
		r.Position, _ = strconv.Atoi(string(y.Position))
		r.PositionText, r.Penalty = string(y.Position), string(y.Penalty)
		r.Grid, _ = strconv.Atoi(string(y.Grid)) // PL is the pit lane
		r.GridText, r.Gap, r.Interval = string(y.Grid), string(y.Gap), string(y.Interval)
		r.Number, r.Driver, r.Team, r.Engine = string(y.Number), y.Driver, y.Team, y.Engine
		r.Shared, r.Reason, r.Points, r.Stop, r.Lap = y.Shared, string(y.Reason), y.Points, y.Stop, y.Lap
		r.Laps, _ = strconv.Atoi(string(y.Laps))
		r.LapsText = string(y.Laps)
		for _, lap := range []struct {
			text text
			ms   *int64
			key  string
		}{{y.Time, &r.Time, "time"}, {y.Q1, &r.Q1, "q1"}, {y.Q2, &r.Q2, "q2"}, {y.Q3, &r.Q3, "q3"}} {
			d, ok := season.ParseLapTime(string(lap.text))
			if !ok && lap.text != "" {
				text := fmt.Sprintf("%s %q is no time", lap.key, string(lap.text))
				// An unreadable time of a race counts as unknown, so that it never holds a result.
				rel.report.skip(name, text, 1)
				rel.unknown[name] = append(rel.unknown[name], fmt.Sprintf("%s, row %d: %s", name, i+1, text))
				if of == qualifying || of == sprintQualifying || slices.Contains(practice[:], of) {
					rel.faults = append(rel.faults, fault{base.RaceID, of.part, errors.New(rel.unknown[name][0])})
				}
			}
			*lap.ms = d.Milliseconds()
		}
		if r.Team == "" && slices.Contains(practice[:], of) { // nothing else in the document shows it
			rel.faults = append(rel.faults, fault{base.RaceID, of.part, fmt.Errorf("%s, row %d: no constructorId", name, i+1)})
		}
		refer.add("drivers", string(r.Driver))
		refer.add("constructors", string(r.Team))
		refer.add("engine-manufacturers", string(r.Engine))
		rel.rows[of][key] = append(rel.rows[of][key], r)
	}
}

// references are the things to which rows refer, as paths below src/data.
type references map[string]bool

func (r references) add(folder, id string) {
	if id != "" {
		r[folder+"/"+id+".yml"] = true
	}
}

// readThings reads the things to which rows refer, and their countries. It skips a missing thing: the
// converter names the row that refers to it.
func (t *Tree) readThings(rel *release, refer references) {
	home := make(references)
	for _, of := range thingTables {
		for _, name := range slices.Sorted(maps.Keys(refer)) {
			if path.Dir(name) != of.stem {
				continue
			}
			read, ok := t.readThing(rel, of, name)
			if !ok {
				continue
			}
			if of.homed() {
				home.add(countriesTable.stem, cmp.Or(read.Nationality, read.Country))
			}
			for i, l := range read.Chronology {
				l.Parent, l.Order = season.TeamID(read.ID), i+1
				rel.chronology = append(rel.chronology, l)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(home)) {
		t.readThing(rel, countriesTable, name)
	}
}

// readThing reads the file of a thing, if there is one. The thing must have the name of the file as its identifier. A file
// that cannot be read is in rel.unread.
func (t *Tree) readThing(rel *release, of table, name string) (read thing, ok bool) {
	content, ok := t.files[name]
	if !ok {
		return read, false
	}
	err := decodeYAML(content, &read)
	if err == nil && of.place(read.ID) != name {
		err = fmt.Errorf("its id is %q", read.ID)
	}
	if err != nil {
		rel.unread[name] = fmt.Errorf("%s: %w", name, err)
		return read, false
	}
	rel.things[of] = append(rel.things[of], read)
	return read, true
}

// text is a scalar as written, because YAML would convert 04:00, 2026-03-08 and 900 into other types.
type text string

func (t *text) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: got a list or a mapping, want one value", node.Line)
	}
	if node.Tag != "!!null" {
		*t = text(node.Value)
	}
	return nil
}

// yamlRow is a row of any table of a race or a season, as the repository writes it.
type yamlRow struct {
	Position text            `yaml:"position"`
	Number   text            `yaml:"driverNumber"`
	Driver   season.DriverID `yaml:"driverId"`
	Team     season.TeamID   `yaml:"constructorId"`
	Engine   season.EngineID `yaml:"engineManufacturerId"`
	Shared   bool            `yaml:"sharedCar"`
	Laps     text            `yaml:"laps"`
	Time     text            `yaml:"time"`
	Q1       text            `yaml:"q1"`
	Q2       text            `yaml:"q2"`
	Q3       text            `yaml:"q3"`
	Reason   text            `yaml:"reasonRetired"`
	Points   float64         `yaml:"points"`
	Grid     text            `yaml:"gridPosition"`
	Penalty  text            `yaml:"gridPenalty"`
	Gap      text            `yaml:"gap"`
	Interval text            `yaml:"interval"`
	Stop     int             `yaml:"stop"`
	Lap      int             `yaml:"lap"`
}

// decodeYAML decodes a file with one plain document. It refuses anchors and aliases, which can make a
// small file a large one, tags, and a second document.
func decodeYAML(content []byte, into any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return errEmpty
		}
		return err
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	if err := plain(&document); err != nil {
		return err
	}
	err := document.Decode(into)
	if wrongType := new(yaml.TypeError); errors.As(err, &wrongType) {
		return &wrongTypesError{wrongType}
	}
	return err
}

// wrongTypesError is a TypeError in one line.
type wrongTypesError struct{ *yaml.TypeError }

func (w *wrongTypesError) Error() string { return strings.Join(w.Errors, "; ") }

// errEmpty says that a file has no document, such as a table without rows yet.
var errEmpty = errors.New("the file is empty")

// plain returns an error that names the line of the first anchor, alias or tag.
func plain(node *yaml.Node) error {
	switch {
	case node.Kind == yaml.AliasNode:
		return fmt.Errorf("line %d: an alias", node.Line)
	case node.Anchor != "":
		return fmt.Errorf("line %d: an anchor", node.Line)
	case node.Style&yaml.TaggedStyle != 0:
		return fmt.Errorf("line %d: a tag", node.Line)
	}
	for _, child := range node.Content {
		if err := plain(child); err != nil {
			return err
		}
	}
	return nil
}
