package season

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Sheet is a table of a round as its source has it, with the columns that facts do not keep. Package assemble holds
// them against the facts.
type Sheet struct {
	Year      int
	GrandPrix GrandPrixID
	Part      Part
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

// Part names a table of a round, or a part of its calendar entry.
type Part string

// The parts of a round. The tables of sessions have the names of their SessionKind.
const (
	CalendarPart        Part = "calendar"
	StartPart           Part = "start"
	SessionsPart        Part = "sessions"
	EntriesPart         Part = "entries"
	GridPart            Part = "grid"
	SprintGridPart      Part = "sprint grid"
	ResultPart          Part = "result"
	FastestLapsPart     Part = "fastest laps"
	PitStopsPart        Part = "pit stops"
	DriverStandingsPart Part = "driver standings"
	TeamStandingsPart   Part = "team standings"
)

// Unread is a part of a document that its source left out, because a value in it cannot be read. The other parts count.
type Unread struct {
	Year      int
	GrandPrix GrandPrixID // empty for a driver, a team, an engine or a circuit
	Part      Part
	Reason    string // file, row, value and the allowed values, for people
}

// SortUnread sorts parts by season, round, part and reason.
func SortUnread(parts []Unread) {
	slices.SortStableFunc(parts, func(a, b Unread) int {
		return cmp.Or(cmp.Compare(a.Year, b.Year), cmp.Compare(a.GrandPrix, b.GrandPrix), cmp.Compare(a.Part, b.Part), cmp.Compare(a.Reason, b.Reason))
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
