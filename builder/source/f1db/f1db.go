// Package f1db reads releases of F1DB (https://github.com/f1db/f1db, CC BY 4.0), the open data
// set of Formula One since 1950, into season values. Foreign names and types stop here.
//
// It reads the f1db-json-splitted.zip of a release, or the folder with its files. Keys and files that
// older releases lack count as unknown values. A Report lists everything that is not imported.
package f1db

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"gridcast/builder/season"
	"gridcast/builder/source/media"
)

// Source is the attribution of all imported facts.
const Source = "F1DB, CC BY 4.0"

// Options selects the part of a release to import.
type Options struct {
	From, To int         // seasons, inclusive; 0: from the first, to the last
	Media    media.Media // colours and portraits, which F1DB does not have
	MaxBytes int64       // most bytes to unpack and read; 0: DefaultMaxBytes

	// Progress receives the number of bytes as they are read. It may be nil.
	Progress func(phase string, done, total int)
}

// asked reports whether the season of a year is to be imported.
func (o Options) asked(year int) bool { return year >= o.From && (o.To == 0 || year <= o.To) }

// DefaultMaxBytes is several times the size of an unpacked release.
const DefaultMaxBytes = 512 << 20

// Import reads the release at path and writes nothing. The error names the file and the row at fault.
func Import(path string, opts Options) (*season.Archive, Report, error) {
	facts, report, err := load(path, opts)
	if err == nil && len(report.Unread) > 0 {
		err = errors.New(report.Unread[0].Reason)
	}
	var archive *season.Archive
	if err == nil {
		archive, err = season.New(facts)
	}
	if err != nil {
		return nil, Report{}, fmt.Errorf("import f1db from %s: %w", path, err)
	}
	return archive, report, nil
}

func load(path string, opts Options) (season.Facts, Report, error) {
	info, err := os.Stat(path)
	if err != nil {
		return season.Facts{}, Report{}, err
	}
	if info.IsDir() {
		found, err := inFolder(path)
		if err != nil {
			return season.Facts{}, Report{}, err
		}
		return found.load(opts)
	}
	f, err := os.Open(path)
	if err != nil {
		return season.Facts{}, Report{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return loadZip(f, info.Size(), opts)
}

func loadZip(packed io.ReaderAt, size int64, opts Options) (season.Facts, Report, error) {
	found, err := inZip(packed, size)
	if err != nil {
		return season.Facts{}, Report{}, err
	}
	return found.load(opts)
}

func (f files) load(opts Options) (season.Facts, Report, error) {
	rel, err := read(f, opts)
	if err != nil {
		return season.Facts{}, Report{}, err
	}
	return convert(rel, opts)
}

// converter turns a release into facts. It keeps the things to which rows refer.
type converter struct {
	rel      *release
	opts     Options
	things   season.Facts // all things of the release
	names    map[season.GrandPrixID]string
	facts    season.Facts // with the things to which a row refers
	report   Report
	imported map[table]int   // rows taken
	unread   map[string]bool // files of things that cannot be read
}

// convert converts a release into facts. A part with a value that cannot be read is in the report and not in the facts.
func convert(rel *release, opts Options) (season.Facts, Report, error) {
	c := &converter{
		rel:      rel,
		opts:     opts,
		facts:    season.NewFacts(),
		report:   rel.report,
		imported: make(map[table]int),
		unread:   make(map[string]bool),
	}
	c.report.born = make(map[season.DriverID]string)
	c.facts.Source = Source
	c.readThings()
	c.checkRows()
	if err := c.seasons(); err != nil {
		return season.Facts{}, Report{}, err
	}
	c.forget()
	c.lineages()
	colours, headshots := c.opts.Media.Apply(&c.facts)
	if colours > 0 {
		c.report.skip("team colours", "teams not in these seasons", colours)
	}
	if headshots > 0 {
		c.report.skip("headshots", "drivers not in these seasons", headshots)
	}
	c.summarise()
	season.SortUnread(c.report.Unread)
	return c.facts, c.report, nil
}

// refuse leaves a part of a race out of the facts.
func (c *converter) refuse(r *race, section season.Section, err error) {
	c.report.Unread = append(c.report.Unread, season.Unread{Year: r.Year, GrandPrix: r.GrandPrix, Section: section, Reason: err.Error()})
}

// unnamed leaves out the names of a thing that cannot be read. Rows may refer to it, because the archive may know it.
func (c *converter) unnamed(file string, err error) {
	c.unread[file] = true
	c.report.Unread = append(c.report.Unread, season.Unread{Reason: err.Error()})
}

// kindTables are the tables of the things that package season knows by a kind.
var kindTables = map[string]table{"driver": driversTable, "team": constructorsTable, "engine": enginesTable, "circuit": circuitsTable}

// forget removes the things without readable names from the facts.
func (c *converter) forget() {
	c.facts.CheckThings(func(kind, id string, err error) {
		if file := kindTables[kind].place(id); !c.unread[file] {
			c.unnamed(file, fmt.Errorf("%s: %w", file, err))
		}
	})
	for kind, of := range kindTables {
		for file := range c.unread {
			if path.Dir(file) == of.stem {
				c.facts.Forget(kind, strings.TrimSuffix(path.Base(file), ".yml"))
			}
		}
	}
}

// at names the place of a row of a thing or of the list of races.
func (c *converter) at(t table, n int) string {
	return fmt.Sprintf("%s, row %d", t.file(), n)
}

func (c *converter) readThings() {
	c.things, c.names = season.NewFacts(), make(map[season.GrandPrixID]string)
	for _, file := range slices.Sorted(maps.Keys(c.rel.unread)) {
		c.unnamed(file, c.rel.unread[file])
		if folder := path.Dir(file); folder != grandsPrixTable.stem {
			c.addThing(folder, &thing{ID: strings.TrimSuffix(path.Base(file), ".yml")}, thing{})
		}
	}
	countries := make(map[string]thing)
	for i, row := range c.rel.things[countriesTable] {
		if row.ID == "" {
			c.unnamed("", fmt.Errorf("%s: no id", c.at(countriesTable, i+1)))
		}
		countries[row.ID] = row
	}
	for _, t := range thingTables {
		for i, row := range c.rel.things[t] {
			home, known := countries[cmp.Or(row.Nationality, row.Country)]
			if !known && t.homed() {
				c.unnamed(t.place(row.ID), fmt.Errorf("%s: unknown country %q", c.at(t, i+1), cmp.Or(row.Nationality, row.Country)))
			}
			c.addThing(t.stem, &row, home)
		}
	}
}

// addThing adds a thing of a folder of the repository to those to which rows may refer.
func (c *converter) addThing(folder string, t *thing, home thing) {
	switch folder {
	case driversTable.stem:
		id := season.DriverID(t.ID)
		c.things.Drivers[id] = season.Driver{
			ID: id, Name: t.Name, FirstName: t.FirstName, LastName: t.LastName, Abbreviation: t.Abbreviation, Country: home.Alpha,
		}
		c.report.born[id] = t.Born
	case constructorsTable.stem:
		id := season.TeamID(t.ID)
		c.things.Teams[id] = season.Team{ID: id, Name: t.Name, Country: home.Alpha}
	case enginesTable.stem:
		id := season.EngineID(t.ID)
		c.things.Engines[id] = season.Engine{ID: id, Name: t.Name}
	case circuitsTable.stem:
		id := season.CircuitID(t.ID)
		c.things.Circuits[id] = season.Circuit{ID: id, Name: t.FullName, Locality: t.Place, Country: home.Name}
	case grandsPrixTable.stem:
		c.names[season.GrandPrixID(t.ID)] = t.FullName
	}
}

// checkRows leaves out each table with a row that refers to nothing known, has a cell that cannot be read, or names
// another round than that of its race.
func (c *converter) checkRows() {
	type round struct{ year, number int }
	races, rounds, years := make(map[int]*race), make(map[round]*race), make(map[int]bool)
	for i := range c.rel.races {
		r := &c.rel.races[i]
		if other := races[r.ID]; other != nil {
			err := fmt.Errorf("%s: race %d is row %d already", c.at(racesTable, i+1), r.ID, slices.IndexFunc(c.rel.races, func(o race) bool { return o.ID == r.ID })+1)
			c.refuse(other, season.CalendarSection, err)
			c.refuse(r, season.CalendarSection, err)
			r.ID = -i - 1 // so that no row belongs to it
		}
		races[r.ID], rounds[round{r.Year, r.Round}], years[r.Year] = r, r, true
	}
	for _, t := range raceTables {
		for _, id := range slices.Sorted(maps.Keys(c.rel.rows[t])) { // a fault removes the rows of two races
			rows, faults := c.rel.rows[t][id], make(map[*race]error)
			if err := c.checkTable(t, id, rows); err != nil {
				faults[races[id]] = err
			}
			for i := range rows {
				own := rounds[round{rows[i].Year, rows[i].Round}]
				if of := races[id]; of == nil || rows[i].Round != 0 && own != of && (own != nil || of.Round != 0) {
					err := fmt.Errorf("%s, row %d: race %d is not round %d of %d", t.file(), rows[i].n, id, rows[i].Round, rows[i].Year)
					if faults[of] = err; own != nil {
						faults[own] = err
					}
				}
			}
			for r, err := range faults {
				if r == nil {
					c.report.skip(t.stem, "rows of unknown races", len(rows))
					delete(c.rel.rows[t], id)
					continue
				}
				c.refuse(r, t.section, err)
				delete(c.rel.rows[t], r.ID)
			}
		}
	}
	for _, t := range seasonTables {
		for year, rows := range c.rel.rows[t] {
			if !years[year] {
				c.report.skip(t.stem, "seasons without races", len(rows))
			} else if err := c.checkTable(t, year, rows); err != nil {
				c.report.Unread = append(c.report.Unread, season.Unread{Year: year, Section: t.section, Reason: err.Error()})
				delete(c.rel.rows[t], year)
			}
		}
	}
}

// checkTable returns the fault of the first row of a table that cannot be read.
func (c *converter) checkTable(t table, key int, rows []row) error {
	for i := range rows {
		if err := c.checkRow(t, &rows[i]); err != nil {
			return fmt.Errorf("%s, row %d: %w", cmp.Or(c.rel.files[t][key], t.file()), rows[i].n, err)
		}
	}
	return nil
}

// outcomes are the words in place of a position.
var outcomes = []season.Outcome{
	season.DidNotFinish, season.DidNotStart, season.Disqualified, season.NotClassified, season.DidNotQualify, season.DidNotPreQualify,
	season.DidNotPractise, season.ExcludedBeforeStart,
}

// pitLane is F1DB's word for a grid place in the pit lane.
const pitLane = "PL"

func (c *converter) checkRow(t table, r *row) error {
	_, driver := c.things.Drivers[r.Driver]
	_, team := c.things.Teams[r.Team]
	_, engine := c.things.Engines[r.Engine]
	place := r.Position > 0 || r.PositionText == "" || r.PositionText == pitLane && (t == startingGrid || t == sprintGrid) ||
		slices.Contains(outcomes, season.Outcome(r.PositionText))
	switch {
	case r.unread != nil:
		return r.unread
	case (t == teamStandings || t == finalTeams) && r.Team == "":
		return errors.New("no constructor")
	case t != teamStandings && t != finalTeams && !driver:
		return fmt.Errorf("unknown driver %q", r.Driver)
	case !team && r.Team != "":
		return fmt.Errorf("unknown constructor %q", r.Team)
	case !engine && r.Engine != "":
		return fmt.Errorf("unknown engine manufacturer %q", r.Engine)
	case (t == raceResults || t == sprintResults) && r.Position == 0 && r.PositionText == "":
		return errors.New("neither position nor reason for none")
	case r.PositionText == "" && (t == startingGrid || t == sprintGrid || t == qualifying || t == sprintQualifying):
		return errors.New("no position")
	case !place:
		return fmt.Errorf("position %q is neither a place nor one of %v", r.PositionText, outcomes)
	case r.Grid == 0 && r.GridText != "" && r.GridText != pitLane:
		return fmt.Errorf("gridPosition %q is neither a place nor %s", r.GridText, pitLane)
	case r.Penalty != "" && r.Penalty != toTheBack && !isCount(r.Penalty):
		return fmt.Errorf("gridPenalty %q is neither a number of places nor %s", r.Penalty, toTheBack)
	case r.LapsText != "" && !isCount(r.LapsText):
		return fmt.Errorf("laps %q is not a number", r.LapsText)
	case r.Number != "" && !isCount(r.Number):
		return fmt.Errorf("driverNumber %q is not a number", r.Number)
	}
	return nil
}

// isCount reports whether a text is a whole number from 0 on.
func isCount(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 0
}

// seasons converts the requested races, in order of year and round.
func (c *converter) seasons() error {
	order := make([]int, len(c.rel.races))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &c.rel.races[a], &c.rel.races[b]
		return cmp.Or(cmp.Compare(x.Year, y.Year), cmp.Compare(x.Round, y.Round))
	})
	type edition struct {
		year      int
		grandPrix season.GrandPrixID
	}
	editions := make(map[edition][]*race)
	for _, i := range order {
		r := &c.rel.races[i]
		of := edition{r.Year, r.GrandPrix}
		editions[of] = append(editions[of], r)
	}
	for _, i := range order {
		r := &c.rel.races[i]
		if !c.opts.asked(r.Year) {
			c.report.skip("races", "seasons not asked for", 1)
			continue
		}
		same := editions[edition{r.Year, r.GrandPrix}]
		if _, known := c.names[r.GrandPrix]; known && r != same[0] {
			c.refuse(r, season.CalendarSection, fmt.Errorf("%s: the grand prix %q is that of %s already",
				c.place(r, season.CalendarSection), r.GrandPrix, c.place(same[0], season.CalendarSection)))
			continue
		}
		round, ok := c.round(r)
		if !ok {
			continue
		}
		if len(same) > 1 { // no part of either counts, because one of them has a wrong name
			round = season.Round{GrandPrix: r.GrandPrix}
		}
		if last := len(c.facts.Seasons); last == 0 || c.facts.Seasons[last-1].Year != r.Year {
			c.facts.Seasons = append(c.facts.Seasons, season.Season{Year: r.Year})
		}
		s := &c.facts.Seasons[len(c.facts.Seasons)-1]
		s.Rounds = append(s.Rounds, round)
	}
	if len(c.facts.Seasons) == 0 {
		return fmt.Errorf("no races from %d to %d in the release", c.opts.From, c.opts.To)
	}
	for i := range c.facts.Seasons {
		c.finish(&c.facts.Seasons[i])
		// A wrong start in the source moves its round to another place and spoils nothing else.
		slices.SortStableFunc(c.facts.Seasons[i].Rounds, func(a, b season.Round) int { return a.StartsAt().Compare(b.StartsAt()) })
	}
	return nil
}

// finish takes the final standings of a complete season from the tables of the season, because only
// they have the exclusions from a championship (1984, 2018).
func (c *converter) finish(s *season.Season) {
	if !s.Complete() {
		return
	}
	last := &s.Rounds[len(s.Rounds)-1]
	if rows := c.rel.rows[finalDrivers][s.Year]; len(rows) > 0 {
		last.DriverStandings = c.driverStandings(finalDrivers, rows)
	}
	if rows := c.rel.rows[finalTeams][s.Year]; len(rows) > 0 {
		last.TeamStandings = c.teamStandings(finalTeams, rows)
	}
}

func (c *converter) summarise() {
	seasons := c.facts.Seasons
	c.report.Seasons = len(seasons)
	c.report.From, c.report.To = seasons[0].Year, seasons[len(seasons)-1].Year
	for _, s := range seasons {
		c.report.Rounds += len(s.Rounds)
	}
	c.report.Results = c.imported[raceResults]
	imported := map[string]int{racesTable.stem: c.report.Rounds}
	for t, n := range c.imported {
		imported[t.stem] = n
	}
	used := map[table]int{
		driversTable: len(c.facts.Drivers), constructorsTable: len(c.facts.Teams), enginesTable: len(c.facts.Engines), circuitsTable: len(c.facts.Circuits),
	}
	for _, t := range thingTables {
		if n, counted := used[t]; counted {
			imported[t.stem] = n
			if unused := len(c.rel.things[t]) - n; unused > 0 {
				c.report.skip(t.stem, "no row refers to them", unused)
			}
		}
	}
	for i := range c.report.Tables {
		t := &c.report.Tables[i]
		if t.Name == countriesTable.stem || t.Name == grandsPrixTable.stem {
			t.Imported = t.Rows // looked up by name, not kept
			continue
		}
		t.Imported = imported[t.Name]
	}
}

// Report counts the imported and the skipped rows of a release.
type Report struct {
	From, To int // first and last season
	Seasons  int
	Rounds   int
	Results  int // rows of race results
	Tables   []Table
	Skipped  []Skip

	// Unread are the parts that were left out, because a value cannot be read. An import fails if there is one.
	Unread []season.Unread

	sheets []season.Sheet
	born   map[season.DriverID]string // birth dates
}

// Table counts the rows of a table that was read.
type Table struct {
	Name     string
	Rows     int // in the release
	Imported int // in the archive
}

// Skip is a part of the release that is not in the archive, or that the release lacks.
type Skip struct {
	What string // a file, a table, or kind of row
	Rows int    // 0 where nothing was counted
	Why  string
}

// skip adds to the count of the same thing skipped for the same reason.
func (r *Report) skip(what, why string, rows int) {
	for i := range r.Skipped {
		if r.Skipped[i].What == what && r.Skipped[i].Why == why {
			r.Skipped[i].Rows += rows
			return
		}
	}
	r.Skipped = append(r.Skipped, Skip{What: what, Rows: rows, Why: why})
}
