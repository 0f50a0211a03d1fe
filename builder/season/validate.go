package season

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"runtime"
	"slices"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"
)

// Validate checks the consistency of the facts: rows refer to known drivers, teams, engines and
// circuits, seasons and rounds ascend, and unique things occur once. The error names season, round, row
// and value.
func (f *Facts) Validate() error {
	_, err := f.validate()
	return err
}

// validate returns the things that each season refers to, of which it looks up each once.
func (f *Facts) validate() ([]firstSeen, error) {
	var err error
	f.CheckThings(func(_, _ string, fault error) { err = cmp.Or(err, fault) })
	if err = cmp.Or(err, f.Headshots.Validate()); err != nil {
		return nil, err
	}
	for _, driver := range f.Headshots.Drivers {
		if _, ok := f.Drivers[driver]; !ok {
			return nil, fmt.Errorf("headshots: unknown driver %q", driver)
		}
	}
	for i, l := range f.Lineages {
		for j, link := range l.Links {
			if _, ok := f.Teams[link.Team]; !ok {
				return nil, fmt.Errorf("lineage %d, link %d: unknown team %q", i+1, j+1, link.Team)
			}
			if link.To != 0 && link.To < link.From {
				return nil, fmt.Errorf("lineage %d, link %d: %q ends in %d before it begins in %d", i+1, j+1, link.Team, link.To, link.From)
			}
		}
	}
	for i := range f.Seasons {
		if i > 0 && f.Seasons[i].Year <= f.Seasons[i-1].Year {
			return nil, fmt.Errorf("season %d follows season %d", f.Seasons[i].Year, f.Seasons[i-1].Year)
		}
	}
	seen := make([]firstSeen, len(f.Seasons))
	return seen, sideBySide(len(f.Seasons), func(i int) error {
		seen[i] = f.Seasons[i].firstSeen()
		known := hasAll(f.Drivers, seen[i].drivers) && hasAll(f.Teams, seen[i].teams) && hasAll(f.Engines, seen[i].engines)
		if err := f.validateSeason(&f.Seasons[i], known); err != nil {
			return fmt.Errorf("season %d: %w", f.Seasons[i].Year, err)
		}
		return nil
	})
}

// hasAll reports whether a table has all things that were seen.
func hasAll[K ~string, V any](table map[K]V, seen map[K]time.Time) bool {
	for key := range seen {
		if _, ok := table[key]; !ok {
			return false
		}
	}
	return true
}

// sideBySide calls do for each of n seasons and returns the error of the earliest.
func sideBySide(n int, do func(i int) error) error {
	faults := make([]error, n)
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		group.Go(func() error {
			faults[i] = do(i)
			return nil
		})
	}
	_ = group.Wait() // no call returns an error
	return cmp.Or(faults...)
}

// CheckThings calls refuse for each driver, team, engine and circuit that Validate would refuse.
func (f *Facts) CheckThings(refuse func(kind, id string, err error)) {
	checkThings("driver", f.Drivers, func(d Driver) []string {
		return []string{string(d.ID), d.Name, d.FirstName, d.LastName, d.Abbreviation, d.Country}
	}, refuse)
	checkThings("team", f.Teams, func(t Team) []string { return []string{string(t.ID), t.Name, t.Country} }, refuse)
	checkThings("engine", f.Engines, func(e Engine) []string { return []string{string(e.ID), e.Name} }, refuse)
	checkThings("circuit", f.Circuits, func(c Circuit) []string {
		return []string{string(c.ID), c.Name, c.Locality, c.Country}
	}, refuse)
}

// checkThings checks the texts of things, of which the first is the identifier.
func checkThings[K ~string, V any](kind string, things map[K]V, texts func(V) []string, refuse func(kind, id string, err error)) {
	for _, id := range slices.Sorted(maps.Keys(things)) {
		all := texts(things[id])
		if err := plain(all...); err != nil {
			refuse(kind, string(id), fmt.Errorf("%s %q: %w", kind, id, err))
		} else if string(id) != all[0] || id == "" {
			refuse(kind, string(id), fmt.Errorf("%s %q is filed under %q", kind, all[0], id))
		}
	}
}

// Forget removes the driver, team, engine or circuit with an identifier. Rows may still refer to it.
func (f *Facts) Forget(kind, id string) {
	switch kind {
	case "driver":
		delete(f.Drivers, DriverID(id))
	case "team":
		delete(f.Teams, TeamID(id))
	case "engine":
		delete(f.Engines, EngineID(id))
	case "circuit":
		delete(f.Circuits, CircuitID(id))
	}
}

// plain refuses texts with characters that could act on the terminal, the page or the spreadsheet of a reader:
// control characters, overrides of the writing direction, and markup.
func plain(texts ...string) error {
	for _, text := range texts {
		for _, c := range text {
			switch {
			case unicode.IsControl(c), c >= '\u202a' && c <= '\u202e', c >= '\u2066' && c <= '\u2069', c == '<', c == '>':
				return fmt.Errorf("the text %q has the character %U, which is not allowed", text, c)
			}
		}
	}
	return nil
}

var colour = regexp.MustCompile(`^#[0-9A-F]{6}$`)

// IsColour reports whether the text is a colour as facts have it: #RRGGBB in upper case.
func IsColour(text string) bool { return colour.MatchString(text) }

// validateSeason checks a season. known reports that the facts have all things that its rows refer to.
func (f *Facts) validateSeason(s *Season, known bool) error {
	if s.Year < 1000 || s.Year > 9999 {
		return fmt.Errorf("year %d has not four digits", s.Year)
	}
	for _, team := range slices.Sorted(maps.Keys(s.Colours)) {
		if _, ok := f.Teams[team]; !ok {
			return fmt.Errorf("colours: unknown team %q", team)
		}
		if value := s.Colours[team]; !IsColour(value) {
			return fmt.Errorf("colour of %q: %q is not of the form #RRGGBB", team, value)
		}
	}
	held, rows := make(map[GrandPrixID]int), checker{Facts: f, known: known, drives: map[DriverID]int{}, teams: map[entrant]bool{}}
	for i := range s.Rounds {
		r := &s.Rounds[i]
		if i > 0 && r.StartsAt().Before(s.Rounds[i-1].StartsAt()) {
			return fmt.Errorf("round %d, %s, starts before round %d, which stands before it", r.Number, r.GrandPrix, s.Rounds[i-1].Number)
		}
		if other, ok := held[r.GrandPrix]; ok {
			return fmt.Errorf("round %d: grand prix %q is round %d already", r.Number, r.GrandPrix, other)
		}
		held[r.GrandPrix] = r.Number
		err := cmp.Or(f.validateEntry(r), validateStart(s.Year, r), validateSessions(r))
		if err == nil {
			rows.checkRows(r, func(_ Section, fault error) { err = cmp.Or(err, fault) })
		}
		if err != nil {
			return fmt.Errorf("round %d: %w", r.Number, err)
		}
	}
	return nil
}

// CheckRound calls refuse for each part of a round that Validate would refuse. A round without a name or a date has no
// such part.
func (f *Facts) CheckRound(year int, r *Round, refuse func(Section, error)) {
	for section, check := range map[Section]func() error{
		CalendarSection: func() error { return f.validateEntry(r) },
		StartSection:    func() error { return validateStart(year, r) },
		SessionsSection: func() error { return validateSessions(r) },
	} {
		known := section == SessionsSection || section == CalendarSection && r.Name != "" || section == StartSection && !r.Date.IsZero()
		if err := check(); known && err != nil {
			refuse(section, err)
		}
	}
	c := checker{Facts: f, drives: map[DriverID]int{}, teams: map[entrant]bool{}}
	c.checkRows(r, refuse)
}

// validateEntry checks the entry of a round in the calendar, but for its times.
func (f *Facts) validateEntry(r *Round) error {
	if r.GrandPrix == "" || r.Name == "" {
		return fmt.Errorf("grand prix %q, name %q: both are needed", r.GrandPrix, r.Name)
	}
	// Numbers are for display and may repeat: a source renumbers when it drops a round, and the archive keeps that round.
	if r.Number < 1 {
		return fmt.Errorf("round %d of %s: numbers begin with 1", r.Number, r.GrandPrix)
	}
	if err := plain(string(r.GrandPrix), r.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if !finite(r.CourseKm) {
		return fmt.Errorf("the course has %v km", r.CourseKm)
	}
	if _, ok := f.Circuits[r.Circuit]; !ok {
		return fmt.Errorf("unknown circuit %q", r.Circuit)
	}
	return nil
}

func validateStart(year int, r *Round) error {
	if r.Date.Year() != year {
		return fmt.Errorf("date %s is not in the year", r.Date.Format(time.DateOnly))
	}
	return validateDay(r.Date, r.Start)
}

func validateSessions(r *Round) error {
	known := make(map[SessionKind]bool)
	for _, s := range r.Sessions {
		if !slices.Contains(kinds, s.Kind) || known[s.Kind] {
			return fmt.Errorf("session %q is unknown or there twice", s.Kind)
		}
		known[s.Kind] = true
		if err := validateDay(s.Date, s.Start); err != nil {
			return fmt.Errorf("%s: %w", s.Kind, err)
		}
	}
	return nil
}

// validateDay checks that a day is one, and that the start falls on it if it is known.
func validateDay(date, start time.Time) error {
	switch {
	case date.IsZero() || !date.Equal(DayOf(date)):
		return fmt.Errorf("date %s is not midnight UTC of a day", date.Format(time.RFC3339))
	case !start.IsZero() && !DayOf(start).Equal(date):
		return fmt.Errorf("start %s is not on %s", start.Format(time.RFC3339), date.Format(time.DateOnly))
	}
	return nil
}

// DayOf is midnight UTC of the day of an instant.
func DayOf(t time.Time) time.Time {
	y, m, d := t.UTC().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// checker checks the rows of a season. It keeps its maps from table to table.
type checker struct {
	*Facts
	known  bool             // the facts have every driver, team and engine of the rows
	table  int              // counts the tables
	drives map[DriverID]int // the last table that once was called for
	teams  map[entrant]bool // in a table
}

type entrant struct {
	team   TeamID
	engine EngineID
	ranked bool // a team that was excluded and entered again has a row of each sort
}

// checkRows calls refuse with the first faulty row of each table.
func (c *checker) checkRows(r *Round, refuse func(Section, error)) {
	check := func(section Section, err error) {
		if err != nil {
			refuse(section, err)
		}
	}
	for i, kind := range practices {
		check(Section(kind), eachRow(c, string(kind), r.Practice[i], func(row *TimedLap) error {
			return c.refers(row.Driver, row.Team, "", row.Time, row.Laps)
		}))
	}
	qualifying := func(row *QualifyingRow) error {
		fastest := min(row.Time, row.Segments[0], row.Segments[1], row.Segments[2])
		return c.refers(row.Driver, row.Team, "", fastest, row.Position)
	}
	check(Section(Qualifying), eachRow(c, "qualifying", r.Qualifying, qualifying))
	check(Section(SprintQualifying), eachRow(c, "sprint qualifying", r.SprintQualifying, qualifying))
	check(EntriesSection, eachRow(c, "entries", r.Entries, func(row *Entry) error {
		return cmp.Or(c.refers(row.Driver, row.Team, row.Engine, 0, row.Number), c.once(row.Driver))
	}))
	check(GridSection, eachRow(c, "grid", r.Grid, func(row *GridSlot) error { return cmp.Or(c.validateSlot(row), c.once(row.Driver)) }))
	check(SprintGridSection, eachRow(c, "sprint grid", r.SprintGrid, func(row *GridSlot) error { return cmp.Or(c.validateSlot(row), c.once(row.Driver)) }))
	check(ResultSection, eachRow(c, "result", r.Results, c.validateResult))
	check(Section(Sprint), eachRow(c, "sprint result", r.SprintResults, c.validateResult))
	check(FastestLapsSection, eachRow(c, "fastest laps", r.FastestLaps, func(row *FastestLap) error {
		return c.refers(row.Driver, "", "", row.Time, row.Lap)
	}))
	check(PitStopsSection, eachRow(c, "pit stops", r.PitStops, func(row *PitStop) error {
		return c.refers(row.Driver, "", "", row.Time, min(row.Stop, row.Lap))
	}))
	check(DriverStandingsSection, eachRow(c, "driver standings", r.DriverStandings, func(row *DriverStanding) error {
		return cmp.Or(c.refers(row.Driver, "", "", 0, row.Position), finitePoints(row.Driver, row.Points), c.once(row.Driver))
	}))
	check(TeamStandingsSection, c.validateTeamStandings(r.TeamStandings))
}

// eachRow checks the rows of a table. The error names the first faulty row.
func eachRow[T any](c *checker, table string, rows []T, check func(*T) error) error {
	c.table++
	for i := range rows {
		if err := check(&rows[i]); err != nil {
			return fmt.Errorf("%s, row %d: %w", table, i+1, err)
		}
	}
	return nil
}

// once refuses a driver that the table has already.
func (c *checker) once(driver DriverID) error {
	if c.drives[driver] == c.table {
		return fmt.Errorf("driver %q is there twice", driver)
	}
	c.drives[driver] = c.table
	return nil
}

func (c *checker) validateSlot(row *GridSlot) error {
	return c.refers(row.Driver, row.Team, "", 0, min(row.Position, row.Penalty))
}

func (c *checker) validateResult(row *Result) error {
	if err := cmp.Or(c.refers(row.Driver, row.Team, row.Engine, row.Time, min(row.Position, row.Grid, row.Laps, row.Number)), finitePoints(row.Driver, row.Points)); err != nil {
		return err
	}
	if (row.Position == 0) == (row.Outcome == "") {
		return fmt.Errorf("%q has position %d and outcome %q", row.Driver, row.Position, row.Outcome)
	}
	if err := plain(row.Reason, string(row.Outcome)); err != nil {
		return fmt.Errorf("reason of %q: %w", row.Driver, err)
	}
	return nil
}

func (c *checker) validateTeamStandings(rows []TeamStanding) error {
	clear(c.teams)
	return eachRow(c, "team standings", rows, func(row *TeamStanding) error {
		key := entrant{row.Team, row.Engine, row.Position > 0}
		if _, ok := c.Teams[row.Team]; !ok {
			return fmt.Errorf("unknown team %q", row.Team)
		}
		if _, ok := c.Engines[row.Engine]; !ok && row.Engine != "" {
			return fmt.Errorf("unknown engine %q", row.Engine)
		}
		if c.teams[key] {
			return fmt.Errorf("team %q is there twice", row.Team)
		}
		c.teams[key] = true
		return finitePoints(row.Team, row.Points)
	})
}

// finite reports whether a number is neither infinite nor NaN. JSON has neither, and NaN differs from itself.
func finite(n float64) bool { return !math.IsNaN(n) && !math.IsInf(n, 0) }

func finitePoints[K ~string](of K, points float64) error {
	if !finite(points) {
		return fmt.Errorf("%q has %v points", of, points)
	}
	return nil
}

// refers checks the references of a row, which may be empty, and that no number is negative. least is
// the smallest number of the row.
func (c *checker) refers(driver DriverID, team TeamID, engine EngineID, time time.Duration, least int) error {
	if !c.known || driver == "" {
		if _, ok := c.Drivers[driver]; !ok {
			return fmt.Errorf("unknown driver %q", driver)
		}
		if _, ok := c.Teams[team]; !ok && team != "" {
			return fmt.Errorf("unknown team %q", team)
		}
		if _, ok := c.Engines[engine]; !ok && engine != "" {
			return fmt.Errorf("unknown engine %q", engine)
		}
	}
	if time < 0 || least < 0 {
		return fmt.Errorf("%q has a negative value: time %s, number %d", driver, time, least)
	}
	return nil
}
