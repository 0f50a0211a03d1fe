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
	"os"
	"slices"

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
	archive, report, err := load(path, opts)
	if err != nil {
		return nil, Report{}, fmt.Errorf("import f1db from %s: %w", path, err)
	}
	return archive, report, nil
}

func load(path string, opts Options) (*season.Archive, Report, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, Report{}, err
	}
	if info.IsDir() {
		found, err := inFolder(path)
		if err != nil {
			return nil, Report{}, err
		}
		return found.load(opts)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, Report{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return loadZip(f, info.Size(), opts)
}

func loadZip(packed io.ReaderAt, size int64, opts Options) (*season.Archive, Report, error) {
	found, err := inZip(packed, size)
	if err != nil {
		return nil, Report{}, err
	}
	return found.load(opts)
}

func (f files) load(opts Options) (*season.Archive, Report, error) {
	rel, err := read(f, opts)
	if err != nil {
		return nil, Report{}, err
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
	imported map[table]int // rows taken
}

func convert(rel *release, opts Options) (*season.Archive, Report, error) {
	c := &converter{
		rel:      rel,
		opts:     opts,
		facts:    season.NewFacts(),
		report:   rel.report,
		imported: make(map[table]int),
	}
	c.facts.Source, c.report.cars = Source, make(map[season.Car]int)
	if err := c.readThings(); err != nil {
		return nil, Report{}, err
	}
	if err := c.checkRows(); err != nil {
		return nil, Report{}, err
	}
	if err := c.seasons(); err != nil {
		return nil, Report{}, err
	}
	c.lineages()
	colours, headshots := c.opts.Media.Apply(&c.facts)
	if colours > 0 {
		c.report.skip("team colours", "teams not in these seasons", colours)
	}
	if headshots > 0 {
		c.report.skip("headshots", "drivers not in these seasons", headshots)
	}
	archive, err := season.New(c.facts)
	if err != nil {
		return nil, Report{}, err
	}
	c.summarise()
	return archive, c.report, nil
}

// at names the place of a row of a thing or of the list of races.
func (c *converter) at(t table, n int) string {
	return fmt.Sprintf("%s, row %d", t.file(), n)
}

func (c *converter) readThings() error {
	c.things, c.names = season.NewFacts(), make(map[season.GrandPrixID]string)
	countries := make(map[string]country)
	for i, row := range c.rel.countries {
		if row.ID == "" {
			return fmt.Errorf("%s: no id", c.at(countriesTable, i+1))
		}
		countries[row.ID] = row
	}
	home := func(t table, n int, id string) (country, error) {
		found, ok := countries[id]
		if !ok {
			return country{}, fmt.Errorf("%s: unknown country %q", c.at(t, n), id)
		}
		return found, nil
	}
	for i, row := range c.rel.drivers {
		from, err := home(driversTable, i+1, row.Country)
		if err != nil {
			return err
		}
		c.things.Drivers[row.ID] = season.Driver{
			ID: row.ID, Name: row.Name, FirstName: row.FirstName, LastName: row.LastName,
			Abbreviation: row.Abbreviation, Country: from.Alpha,
		}
	}
	for i, row := range c.rel.constructors {
		from, err := home(constructorsTable, i+1, row.Country)
		if err != nil {
			return err
		}
		c.things.Teams[row.ID] = season.Team{ID: row.ID, Name: row.Name, Country: from.Alpha}
	}
	for _, row := range c.rel.engines {
		c.things.Engines[row.ID] = season.Engine{ID: row.ID, Name: row.Name}
	}
	for i, row := range c.rel.circuits {
		in, err := home(circuitsTable, i+1, row.Country)
		if err != nil {
			return err
		}
		c.things.Circuits[row.ID] = season.Circuit{ID: row.ID, Name: row.Name, Locality: row.Place, Country: in.Name}
	}
	for _, row := range c.rel.grandsPrix {
		c.names[row.ID] = row.Name
	}
	return nil
}

// checkRows checks that every row belongs to a known race or season and refers to known things.
func (c *converter) checkRows() error {
	races := make(map[int]int, len(c.rel.races))
	years := make(map[int]bool)
	for i, r := range c.rel.races {
		if other, ok := races[r.ID]; ok {
			return fmt.Errorf("%s: race %d is row %d already", c.at(racesTable, i+1), r.ID, other+1)
		}
		races[r.ID], years[r.Year] = i, true
	}
	for _, t := range raceTables {
		for id, rows := range c.rel.rows[t] {
			if _, ok := races[id]; !ok {
				return fmt.Errorf("%s: unknown race %d", c.at(t, rows[0].n), id)
			}
			for _, r := range rows {
				if err := c.checkRow(t, r); err != nil {
					return err
				}
			}
		}
	}
	for _, t := range seasonTables {
		for year, rows := range c.rel.rows[t] {
			if !years[year] {
				c.report.skip(t.stem, "seasons without races", len(rows))
				continue
			}
			for _, r := range rows {
				if err := c.checkRow(t, r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (c *converter) checkRow(t table, r row) error {
	var fault error
	switch _, ok := c.things.Drivers[r.Driver]; {
	case t == teamStandings || t == finalTeams:
		if r.Team == "" {
			fault = errors.New("no constructor")
		}
	case !ok:
		fault = fmt.Errorf("unknown driver %q", r.Driver)
	}
	if _, ok := c.things.Teams[r.Team]; !ok && r.Team != "" {
		fault = fmt.Errorf("unknown constructor %q", r.Team)
	}
	if _, ok := c.things.Engines[r.Engine]; !ok && r.Engine != "" {
		fault = fmt.Errorf("unknown engine manufacturer %q", r.Engine)
	}
	if t == raceResults && r.Position == 0 && r.PositionText == "" {
		fault = errors.New("neither position nor reason for none")
	}
	if fault != nil {
		return fmt.Errorf("%s: %w", c.at(t, r.n), fault)
	}
	return nil
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
	for _, i := range order {
		r := &c.rel.races[i]
		if !c.opts.asked(r.Year) {
			c.report.skip("races", "seasons not asked for", 1)
			continue
		}
		round, err := c.round(r)
		if err != nil {
			return fmt.Errorf("%s: %w", c.at(racesTable, i+1), err)
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
	for _, things := range []struct {
		of        table
		all, used int
	}{
		{driversTable, len(c.rel.drivers), len(c.facts.Drivers)},
		{constructorsTable, len(c.rel.constructors), len(c.facts.Teams)},
		{enginesTable, len(c.rel.engines), len(c.facts.Engines)},
		{circuitsTable, len(c.rel.circuits), len(c.facts.Circuits)},
	} {
		imported[things.of.stem] = things.used
		if unused := things.all - things.used; unused > 0 {
			c.report.skip(things.of.stem, "no row refers to them", unused)
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
