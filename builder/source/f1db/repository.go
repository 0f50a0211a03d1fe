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
		if path.Base(file) == "race.yml" {
			t.readRace(name, year, rel, refer)
		}
		for _, of := range seasonTables {
			if file == of.beside() {
				t.readRows(name, rel, of, row{Year: year}, year, refer)
			}
		}
	}
	if len(rel.races) == 0 {
		return nil, fmt.Errorf("no race from %d to %d", t.From, t.To)
	}
	rel.report.Tables = append(rel.report.Tables, Table{Name: racesTable.stem, Rows: len(rel.races)})
	t.readThings(rel, refer)
	return rel, nil
}

// readRace reads race.yml and the tables beside it. A file that cannot be read leaves its sections out. The folder names the
// Grand Prix if the file does not.
func (t *Tree) readRace(name string, year int, rel *release, refer references) {
	var r race
	err := decodeYAML(t.files[name], &r)
	// The identifier of a race names nothing outside this commit.
	r.ID, r.Year = len(rel.races)+1, year
	rel.files[racesTable][r.ID] = name
	sections := []season.Section{season.CalendarSection, season.StartSection, season.SessionsSection}
	switch wrongType := new(wrongTypesError); {
	case errors.As(err, &wrongType) && !strings.Contains(err.Error(), "into string"):
		sections = sections[:1] // dates and hours are texts
	case err == nil && r.Date != "" && r.GrandPrix != "" && r.Circuit != "":
		sections = nil
	case err == nil:
		err = fmt.Errorf("date %q, grandPrixId %q, circuitId %q: all are needed", r.Date, r.GrandPrix, r.Circuit)
	}
	for _, section := range sections {
		rel.faults = append(rel.faults, fault{r.ID, section, fmt.Errorf("%s: %w", name, err)})
	}
	folder := path.Dir(name)
	if _, ok := t.files["grands-prix/"+string(r.GrandPrix)+".yml"]; !ok || len(sections) > 1 {
		_, gp, _ := strings.Cut(path.Base(folder), "-")
		if len(sections) == 0 {
			rel.faults = append(rel.faults, fault{r.ID, season.CalendarSection, fmt.Errorf("%s: unknown grand prix %q", name, r.GrandPrix)})
		}
		r.GrandPrix = season.GrandPrixID(gp)
	}
	refer.add("circuits", string(r.Circuit))
	refer.add("grands-prix", string(r.GrandPrix))
	rel.races = append(rel.races, r)
	for _, of := range raceTables {
		beside := path.Join(folder, of.beside())
		if _, ok := t.files[beside]; ok {
			t.readRows(beside, rel, of, row{RaceID: r.ID, Year: year}, r.ID, refer)
		}
	}
}

// readRows reads the rows of a table, of the race and the year of base. A file that cannot be read is a fault of the release
// and has no rows.
func (t *Tree) readRows(name string, rel *release, of table, base row, key int, refer references) {
	rel.files[of][key] = name
	var rows []row
	if err := decodeYAML(t.files[name], &rows); err != nil && !errors.Is(err, errEmpty) {
		if base.RaceID == 0 { // of a season
			rel.report.Unread = append(rel.report.Unread, season.Unread{Year: base.Year, Section: of.section, Reason: fmt.Sprintf("%s: %v", name, err)})
			return
		}
		rel.faults = append(rel.faults, fault{base.RaceID, of.section, fmt.Errorf("%s: %w", name, err)})
		return
	}
	for i := range rows {
		r := &rows[i]
		r.RaceID, r.Year, r.Order, r.n = base.RaceID, base.Year, i+1, i+1
		r.Position, _ = strconv.Atoi(r.PositionText)
		r.Grid, _ = strconv.Atoi(r.GridText) // PL is the pit lane
		r.Laps, _ = strconv.Atoi(r.LapsText)
		for _, lap := range []struct {
			text, key string
			ms        *int64
		}{{r.TimeText, "time", &r.Time}, {r.Q1Text, "q1", &r.Q1}, {r.Q2Text, "q2", &r.Q2}, {r.Q3Text, "q3", &r.Q3}} {
			d, ok := season.ParseLapTime(lap.text)
			if !ok && lap.text != "" {
				text := fmt.Sprintf("%s %q is no time", lap.key, lap.text)
				// An unreadable time of a race counts as unknown, so that it never holds a result.
				rel.report.skip(name, text, 1)
				rel.unknown[name] = append(rel.unknown[name], fmt.Sprintf("%s, row %d: %s", name, i+1, text))
				if of == qualifying || of == sprintQualifying || slices.Contains(practice[:], of) {
					rel.faults = append(rel.faults, fault{base.RaceID, of.section, errors.New(rel.unknown[name][0])})
				}
			}
			*lap.ms = d.Milliseconds()
		}
		if r.Team == "" && slices.Contains(practice[:], of) { // nothing else in the document shows it
			rel.faults = append(rel.faults, fault{base.RaceID, of.section, fmt.Errorf("%s, row %d: no constructorId", name, i+1)})
		}
		refer.add("drivers", string(r.Driver))
		refer.add("constructors", string(r.Team))
		refer.add("engine-manufacturers", string(r.Engine))
	}
	rel.rows[of][key] = rows
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
