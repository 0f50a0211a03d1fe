package f1db

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// readSingle reads f1db.json: one object with an array per table, in which races and seasons
// hold the rows that belong to them.
func (in *reader) readSingle(rel *release) (err error) {
	rel.single = true
	in.total = in.files.named[single].size
	for _, name := range in.files.names() {
		if name != single {
			rel.report.skip(name, "not needed", 0)
		}
	}
	r, err := in.open(single)
	if err != nil {
		return fmt.Errorf("%s: %w", single, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	d := json.NewDecoder(r)
	if err := in.decodeSingle(d, rel); err != nil {
		return fmt.Errorf("%s, %w", single, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: more after the end of the object", single)
	}
	rel.countRows()
	return nil
}

func (in *reader) decodeSingle(d *json.Decoder, rel *release) error {
	tables := map[string]func(*json.Decoder) error{
		countriesTable.key:    appendTo(&rel.countries),
		driversTable.key:      appendTo(&rel.drivers),
		constructorsTable.key: rel.decodeConstructor,
		enginesTable.key:      appendTo(&rel.engines),
		circuitsTable.key:     appendTo(&rel.circuits),
		grandsPrixTable.key:   appendTo(&rel.grandsPrix),
		racesTable.key:        rel.decodeRace,
		"seasons":             rel.decodeSeason,
	}
	if err := expect(d, json.Delim('{')); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fmt.Errorf("next table: %w", unexpectedEnd(err))
		}
		name, _ := key.(string)
		element, ok := tables[name]
		if !ok {
			var unused json.RawMessage
			if err := d.Decode(&unused); err != nil {
				return fmt.Errorf("%s: %w", name, unexpectedEnd(err))
			}
			rel.report.skip(name, "not needed", 0)
			continue
		}
		rows, err := decodeArray(d, element)
		if err != nil {
			return fmt.Errorf("%s, %w", name, err)
		}
		delete(tables, name)
		rel.report.Tables = append(rel.report.Tables, Table{Name: name, Rows: rows})
	}
	if err := expect(d, json.Delim('}')); err != nil {
		return fmt.Errorf("end: %w", err)
	}
	if len(tables) > 0 {
		return fmt.Errorf("not F1DB: no %v", slices.Sorted(maps.Keys(tables)))
	}
	return nil
}

func (rel *release) decodeConstructor(d *json.Decoder) error {
	var c constructor
	if err := d.Decode(&c); err != nil {
		return err
	}
	for _, l := range c.Chronology {
		l.Parent = c.ID
		rel.chronology = append(rel.chronology, l)
	}
	rel.constructors = append(rel.constructors, c)
	return nil
}

// decodeRace decodes a race with the rows of all its tables.
func (rel *release) decodeRace(d *json.Decoder) error {
	var r struct {
		race
		FreePractice1Results        []row
		FreePractice2Results        []row
		FreePractice3Results        []row
		FreePractice4Results        []row
		SprintQualifyingResults     []row
		SprintStartingGridPositions []row
		SprintRaceResults           []row
		QualifyingResults           []row
		StartingGridPositions       []row
		RaceResults                 []row
		FastestLaps                 []row
		PitStops                    []row
		DriverStandings             []row
		ConstructorStandings        []row
	}
	if err := d.Decode(&r); err != nil {
		return err
	}
	for t, rows := range map[table][]row{
		practice[0]: r.FreePractice1Results, practice[1]: r.FreePractice2Results,
		practice[2]: r.FreePractice3Results, practice[3]: r.FreePractice4Results,
		sprintQualifying: r.SprintQualifyingResults, sprintGrid: r.SprintStartingGridPositions,
		sprintResults: r.SprintRaceResults, qualifying: r.QualifyingResults,
		startingGrid: r.StartingGridPositions, raceResults: r.RaceResults,
		fastestLaps: r.FastestLaps, pitStops: r.PitStops,
		driverStandings: r.DriverStandings, teamStandings: r.ConstructorStandings,
	} {
		rel.file(t, r.ID, rows)
	}
	rel.races = append(rel.races, r.race)
	return nil
}

func (rel *release) decodeSeason(d *json.Decoder) error {
	var s struct {
		Year                 int
		DriverStandings      []row
		ConstructorStandings []row
	}
	if err := d.Decode(&s); err != nil {
		return err
	}
	rel.file(finalDrivers, s.Year, s.DriverStandings)
	rel.file(finalTeams, s.Year, s.ConstructorStandings)
	return nil
}

// file numbers rows and files them under the id of their race or the year of their season.
func (rel *release) file(t table, key int, rows []row) {
	if len(rows) == 0 {
		return
	}
	for i := range rows {
		rows[i].n = i + 1
	}
	rel.rows[t][key] = rows
}

// countRows reports the tables that are nested in races and seasons.
func (rel *release) countRows() {
	rel.report.Tables = append(rel.report.Tables, Table{Name: chronologyTable.stem, Rows: len(rel.chronology)})
	for _, t := range append(raceTables, seasonTables...) {
		rows := 0
		for _, r := range rel.rows[t] {
			rows += len(r)
		}
		rel.report.Tables = append(rel.report.Tables, Table{Name: t.stem, Rows: rows})
	}
}
