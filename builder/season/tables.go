package season

import (
	"cmp"
	"hash/maphash"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// table is one of the tables of a round. Whatever goes through all tables goes through this list.
type table struct {
	section Section
	known   func(*Round) time.Time // the instant at which it is known
	rows    func(*Round) tableRows
}

var tables = []table{
	practice(0), practice(1), practice(2), practice(3),
	tableOf(Section(SprintQualifying), sprintGridKnownAt, func(r *Round) *[]QualifyingRow { return &r.SprintQualifying }),
	tableOf(SprintGridSection, sprintGridKnownAt, func(r *Round) *[]GridSlot { return &r.SprintGrid }),
	tableOf(Section(Sprint), (*Round).SprintKnownAt, func(r *Round) *[]Result { return &r.SprintResults }),
	tableOf(Section(Qualifying), (*Round).QualifyingKnownAt, func(r *Round) *[]QualifyingRow { return &r.Qualifying }),
	tableOf(EntriesSection, (*Round).GridKnownAt, func(r *Round) *[]Entry { return &r.Entries }),
	tableOf(GridSection, (*Round).GridKnownAt, func(r *Round) *[]GridSlot { return &r.Grid }),
	tableOf(ResultSection, (*Round).ResultKnownAt, func(r *Round) *[]Result { return &r.Results }),
	tableOf(FastestLapsSection, (*Round).ResultKnownAt, func(r *Round) *[]FastestLap { return &r.FastestLaps }),
	tableOf(PitStopsSection, (*Round).ResultKnownAt, func(r *Round) *[]PitStop { return &r.PitStops }),
	tableOf(DriverStandingsSection, (*Round).ResultKnownAt, func(r *Round) *[]DriverStanding { return &r.DriverStandings }),
	tableOf(TeamStandingsSection, (*Round).ResultKnownAt, func(r *Round) *[]TeamStanding { return &r.TeamStandings }),
}

func practice(i int) table {
	return tableOf(Section(practices[i]), func(r *Round) time.Time { return r.SessionKnownAt(practices[i]) }, func(r *Round) *[]TimedLap { return &r.Practice[i] })
}

func sprintGridKnownAt(r *Round) time.Time { return r.SessionKnownAt(SprintQualifying) }

// The columns of a row that identify things; nil: its table has no such column.
func (l *TimedLap) ids() (*DriverID, *TeamID, *EngineID)      { return &l.Driver, &l.Team, nil } //nolint:unparam // as in other tables
func (q *QualifyingRow) ids() (*DriverID, *TeamID, *EngineID) { return &q.Driver, &q.Team, nil } //nolint:unparam // as in other tables
func (g *GridSlot) ids() (*DriverID, *TeamID, *EngineID)      { return &g.Driver, &g.Team, nil } //nolint:unparam // as in other tables
func (e *Entry) ids() (*DriverID, *TeamID, *EngineID)         { return &e.Driver, &e.Team, &e.Engine }

func (r *Result) ids() (*DriverID, *TeamID, *EngineID)         { return &r.Driver, &r.Team, &r.Engine }
func (l *FastestLap) ids() (*DriverID, *TeamID, *EngineID)     { return &l.Driver, nil, nil }     //nolint:unparam // as in other tables
func (p *PitStop) ids() (*DriverID, *TeamID, *EngineID)        { return &p.Driver, nil, nil }     //nolint:unparam // as in other tables
func (s *DriverStanding) ids() (*DriverID, *TeamID, *EngineID) { return &s.Driver, nil, nil }     //nolint:unparam // as in other tables
func (s *TeamStanding) ids() (*DriverID, *TeamID, *EngineID)   { return nil, &s.Team, &s.Engine } //nolint:unparam // as in other tables

// tableRows are the rows of one table of one round.
type tableRows interface {
	len() int
	ids(row int) (*DriverID, *TeamID, *EngineID)
	clear()
	own() // copies the rows, before a write
	write(h *maphash.Hash)
}

type rowsIn[T comparable, P interface {
	*T
	ids() (*DriverID, *TeamID, *EngineID)
}] struct{ rows *[]T }

func (t rowsIn[T, P]) len() int                                    { return len(*t.rows) }
func (t rowsIn[T, P]) ids(row int) (*DriverID, *TeamID, *EngineID) { return P(&(*t.rows)[row]).ids() }
func (t rowsIn[T, P]) clear()                                      { *t.rows = nil }
func (t rowsIn[T, P]) own()                                        { *t.rows = slices.Clone(*t.rows) }

// write tells no rows from an empty table, as JSON does.
func (t rowsIn[T, P]) write(h *maphash.Hash) {
	maphash.WriteComparable(h, *t.rows == nil)
	maphash.WriteComparable(h, len(*t.rows))
	for i := range *t.rows {
		maphash.WriteComparable(h, (*t.rows)[i])
	}
}

func tableOf[T comparable, P interface {
	*T
	ids() (*DriverID, *TeamID, *EngineID)
}](section Section, known func(*Round) time.Time, rows func(*Round) *[]T) table {
	return table{section, known, func(r *Round) tableRows { return rowsIn[T, P]{rows(r)} }}
}

// References calls visit for each row of the round, with the instant at which its table is known. A table without
// drivers, teams or engines leaves them empty.
func (r *Round) References(visit func(driver DriverID, team TeamID, engine EngineID, known time.Time)) {
	for _, t := range tables {
		rows := t.rows(r)
		if rows.len() == 0 {
			continue
		}
		known := t.known(r)
		for i := range rows.len() {
			driver, team, engine := rows.ids(i)
			visit(valueOf(driver), valueOf(team), valueOf(engine), known)
		}
	}
}

func valueOf[K ~string](id *K) K {
	if id == nil {
		return ""
	}
	return *id
}

// Rename gives a driver, a team or an engine another identifier in all rows of the round, and reports whether a row of the
// standings had the former one. It copies a table before it writes to it.
func Rename[K DriverID | TeamID | EngineID](r *Round, from, to K) (standings bool) {
	for _, t := range tables {
		rows, owned := t.rows(r), false
		for i := range rows.len() {
			if id := pick[K](rows.ids(i)); id == nil || *id != from {
				continue
			}
			if !owned {
				rows.own()
				owned = true
			}
			*pick[K](rows.ids(i)) = to
			standings = standings || t.section == DriverStandingsSection || t.section == TeamStandingsSection
		}
	}
	return standings
}

// pick returns the identifier of a kind.
func pick[K any](driver *DriverID, team *TeamID, engine *EngineID) (id *K) {
	switch id := any(&id).(type) {
	case **DriverID:
		*id = driver
	case **TeamID:
		*id = team
	case **EngineID:
		*id = engine
	}
	return id
}

// withhold removes the tables that were not known at t, and keeps the place in the calendar.
func (r *Round) withhold(t time.Time) {
	if !t.Before(r.knownAt()) {
		return
	}
	full := *r // the instants depend on the result, which r may lose below
	for _, table := range tables {
		if table.known(&full).After(t) {
			table.rows(r).clear()
		}
	}
}

// Clear removes a part from a round. It does nothing for an unknown part.
func (r *Round) Clear(section Section) {
	switch section {
	case CalendarSection:
		r.Number, r.Name, r.Circuit, r.Street, r.CourseKm, r.ScheduledLaps, r.Sprint = 0, "", "", false, 0, 0, false
	case StartSection:
		r.Date, r.Start = time.Time{}, time.Time{}
	case SessionsSection:
		r.Sessions = nil
	}
	for _, t := range tables {
		if t.section == section {
			t.rows(r).clear()
		}
	}
}

// Sheet is a table of a round as its source has it, with the columns that facts do not keep. Package assemble holds
// them against the facts.
type Sheet struct {
	Year      int
	GrandPrix GrandPrixID
	Section   Section
	File      string // of the source, for people
	Rows      []SheetRow
	Unknown   []string // values of a result that cannot be read and count as unknown, for people
}

// Row returns the first row of a driver, empty if there is none.
func (s *Sheet) Row(driver DriverID) SheetRow {
	for _, row := range s.Rows {
		if row.Driver == driver {
			return row
		}
	}
	return SheetRow{}
}

// SheetRow is a row of a sheet. Values that the source lacks are zero.
type SheetRow struct {
	Driver   DriverID
	Team     TeamID
	Engine   EngineID
	Number   int           // on the car
	Place    string        // a number, an outcome, or PL for the pit lane
	Time     time.Duration // the one that decides the place
	Gap      string        // to the first row: +5.515, +1 lap
	Interval string        // to the row before
	Laps     int
	NoLaps   bool   // the cell of Laps is empty
	Reason   string // of a retirement
	Grid     string // a number or PL
}

// Section names a table of a round, or some cells of its calendar entry.
type Section string

// The sections of a round. The tables of sessions have the names of their SessionKind.
const (
	CalendarSection        Section = "calendar"
	StartSection           Section = "start"
	SessionsSection        Section = "sessions"
	EntriesSection         Section = "entries"
	GridSection            Section = "grid"
	SprintGridSection      Section = "sprint grid"
	ResultSection          Section = "result"
	FastestLapsSection     Section = "fastest laps"
	PitStopsSection        Section = "pit stops"
	DriverStandingsSection Section = "driver standings"
	TeamStandingsSection   Section = "team standings"
)

// Unread is a section of a document that its source left out, because a value in it cannot be read. The others count.
type Unread struct {
	Year      int
	GrandPrix GrandPrixID // empty for a driver, a team, an engine or a circuit
	Section   Section
	Reason    string // file, row, value and the allowed values, for people
}

// SortUnread sorts by season, round, section and reason.
func SortUnread(sections []Unread) {
	slices.SortStableFunc(sections, func(a, b Unread) int {
		return cmp.Or(cmp.Compare(a.Year, b.Year), cmp.Compare(a.GrandPrix, b.GrandPrix), cmp.Compare(a.Section, b.Section), cmp.Compare(a.Reason, b.Reason))
	})
}

var lapTime = regexp.MustCompile(`^(?:(?:(\d{1,2}):)?(\d{1,2}):)?(\d{1,2})(?:\.(\d{1,3}))?$`)

// ParseLapTime reads the time of a lap or a race as sources and people write it: 59.123, 1:29.179 or 1:23:06.801. It
// returns false for other text.
func ParseLapTime(text string) (time.Duration, bool) {
	parts := lapTime.FindStringSubmatch(text)
	if parts == nil {
		return 0, false
	}
	var d time.Duration
	for i, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		n, _ := strconv.Atoi(parts[i+1]) // digits by the pattern, or empty
		d += time.Duration(n) * unit
	}
	fraction, _ := strconv.Atoi((parts[4] + "000")[:3])
	return d + time.Duration(fraction)*time.Millisecond, true
}
