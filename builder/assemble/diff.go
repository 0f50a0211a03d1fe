package assemble

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/builder/season"
)

// Line is a difference between two rounds, for people.
type Line struct {
	About string `json:"about"` // a driver, a session, a field
	Was   string `json:"was,omitempty"`
	Is    string `json:"is,omitempty"`
}

// statement is one fact of a block, about a driver, a session or a field.
type statement struct {
	session string // of the block; empty if the block has only one
	about   string
	text    string // everything, for people
	// common is the same in the terms that every source has: places, but no times, laps or reasons.
	// It is empty where good sources differ.
	common string
	// place is 0 for a driver without one, and noPlaces in a table without places. Some sources give
	// the last places to such drivers: in qualifying those without a time, on the grid those in the pit lane.
	place int
	// laps is 0 where the row has none. It is no common term, because people enter no laps.
	laps int
}

const noPlaces = -1

// statements returns the facts of a block, in the order of the round.
func statements(b Block, r *season.Round) []statement {
	var all []statement
	field := func(about, text string) { all = append(all, statement{"", about, text, "", noPlaces, 0}) }
	qualifying := func(session, prefix string, rows []season.QualifyingRow) {
		for _, row := range rows {
			at := place(row.Position)
			all = append(all, statement{session, string(row.Driver), join(prefix+at, bestTime(row)), at, row.Position, 0})
		}
	}
	grid := func(session string, rows []season.GridSlot) {
		for _, row := range rows {
			at := slot(row.Position)
			all = append(all, statement{session, string(row.Driver), join(at, penalty(row)), at, row.Position, 0})
		}
	}
	classification := func(session string, rows []season.Result) {
		for _, row := range rows {
			all = append(all, statement{session, string(row.Driver), classified(row), finish(row), noPlaces, row.Laps})
		}
	}
	switch b {
	case Calendar:
		sprint, known := strconv.FormatBool(r.HasSprint()), ""
		if r.Circuit != "" {
			known = sprint // else it is no whole calendar entry
		}
		all = []statement{
			{about: "round", text: strconv.Itoa(r.Number)},
			{about: "name", text: r.Name},
			{about: "circuit", text: string(r.Circuit), common: string(r.Circuit), place: noPlaces},
			{about: "course", text: fmt.Sprintf("%g km, %d laps, street circuit %t", r.CourseKm, r.ScheduledLaps, r.Street)},
			{about: "sprint", text: sprint, common: known, place: noPlaces},
		}
	case Start:
		all = append(all, startOf("hour", "start", r.Date, r.Start))
	case Sessions:
		for _, s := range r.Sessions {
			if s.Cancelled {
				field(string(s.Kind), "cancelled")
				continue
			}
			all = append(all, startOf(string(s.Kind), string(s.Kind), s.Date, s.Start))
		}
	case Practice:
		for i, laps := range r.Practice {
			for _, row := range laps {
				field(string(row.Driver), fmt.Sprintf("practice %d %s", i+1, row.Time))
			}
		}
	case Entries:
		for _, row := range r.Entries {
			car := fmt.Sprintf("car %d", row.Number)
			all = append(all, statement{"", string(row.Driver), join(car, string(row.Team), string(row.Engine)), car + ", " + string(row.Team), noPlaces, 0})
		}
	case Qualifying:
		qualifying("", "", r.Qualifying)
	case Grid:
		grid("", r.Grid)
	case Sprint:
		qualifying("sprint qualifying", "qualifying ", r.SprintQualifying)
		grid("sprint grid", r.SprintGrid)
		classification("sprint", r.SprintResults)
	case Result:
		classification("", r.Results)
		for _, row := range r.DriverStandings {
			field("standing of "+string(row.Driver), fmt.Sprintf("%s, %g points", place(row.Position), row.Points))
		}
		for _, row := range r.TeamStandings {
			field("standing of "+string(row.Team)+" "+string(row.Engine), fmt.Sprintf("%s, %g points", place(row.Position), row.Points))
		}
	}
	return all
}

// startOf is the statement of a start; an unknown hour is not compared.
func startOf(session, about string, date, start time.Time) statement {
	if start.IsZero() {
		return statement{session, about, date.Format(time.DateOnly) + ", hour unknown", "", noPlaces, 0}
	}
	return statement{session, about, instant(start), instant(start), noPlaces, 0}
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// join joins the parts that are not empty.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

func place(position int) string {
	if position == 0 {
		return "unplaced"
	}
	return fmt.Sprintf("P%d", position)
}

func slot(position int) string {
	if position == 0 {
		return "pit lane"
	}
	return fmt.Sprintf("slot %d", position)
}

func penalty(row season.GridSlot) string {
	switch {
	case row.Back:
		return "penalty: to the back"
	case row.Penalty > 0:
		return fmt.Sprintf("penalty: %d places", row.Penalty)
	}
	return ""
}

func bestTime(row season.QualifyingRow) string {
	if t := deciding(row); t != 0 {
		return t.String()
	}
	return ""
}

func classified(row season.Result) string {
	position := place(row.Position)
	if row.Position == 0 && row.Outcome != "" {
		position = string(row.Outcome)
	}
	return join(position, fmt.Sprintf("%g points", row.Points), fmt.Sprintf("%d laps", row.Laps), string(row.Team))
}

// finish is a row of a classification in common terms. Without a position it names only the outcome
// that the stewards decide on.
func finish(row season.Result) string {
	switch {
	case row.Position > 0:
		return fmt.Sprintf("P%d, %g points", row.Position, row.Points)
	case row.Outcome == season.Disqualified:
		return "disqualified"
	}
	return "unplaced"
}

// diff returns in which lines a block of two rounds differs: first those of after, then those that
// only before has.
func diff(b Block, before, after *season.Round) []Line {
	old, now := texts(b, before), texts(b, after)
	var lines []Line
	for _, about := range slices.Sorted(maps.Keys(now)) {
		if old[about] != now[about] {
			lines = append(lines, Line{about, old[about], now[about]})
		}
	}
	for _, about := range slices.Sorted(maps.Keys(old)) {
		if _, ok := now[about]; !ok {
			lines = append(lines, Line{about, old[about], ""})
		}
	}
	return lines
}

// texts returns the text of a block by its subjects.
func texts(b Block, r *season.Round) map[string]string {
	all := make(map[string]string)
	for _, s := range statements(b, r) {
		if all[s.about] != "" {
			s.text = all[s.about] + "; " + s.text
		}
		all[s.about] = s.text
	}
	return all
}

// table is a session of a block in common terms, by driver or session.
type table struct {
	session string
	lines   map[string]string
	places  map[string]int
	laps    map[string]int
}

// tables returns the sessions of a block that a round has in common terms.
func tables(b Block, r *season.Round) []table {
	var all []table
	for _, s := range statements(b, r) {
		if s.common == "" {
			continue
		}
		if n := len(all); n == 0 || all[n-1].session != s.session {
			all = append(all, table{s.session, make(map[string]string), make(map[string]int), make(map[string]int)})
		}
		t := all[len(all)-1]
		t.lines[s.about], t.places[s.about], t.laps[s.about] = s.common, s.place, s.laps
	}
	return all
}

// agrees reports whether two tables agree on a driver or a session.
func (t table) agrees(other table, about string) bool {
	if t.lines[about] == other.lines[about] {
		return true
	}
	ours, ok := t.places[about]
	theirs, both := other.places[about]
	switch {
	case ours != 0 && theirs != 0:
		return false
	case !ok || !both: // some sources do not list drivers without a place
		return ours == 0 && theirs == 0
	case ours != 0:
		return other.agrees(t, about)
	}
	return theirs > slices.Max(slices.Collect(maps.Values(t.places)))
}

// sameOrder reports whether two rounds have the same drivers in the same places of a session. People
// enter no times, so a source with times agrees with them.
func sameOrder(b Block, x, y *season.Round) bool {
	return outcome(b) && slices.EqualFunc(tables(b, x), tables(b, y), func(x, y table) bool {
		return x.session == y.session && maps.Equal(x.lines, y.lines)
	})
}

// contradictions returns where two rounds differ in common terms. A session that only one of them has
// is no contradiction.
func contradictions(b Block, ours, theirs *season.Round) []Line {
	known := make(map[string]table)
	for _, t := range tables(b, ours) {
		known[t.session] = t
	}
	var lines []Line
	for _, t := range tables(b, theirs) {
		our, ok := known[t.session]
		if !ok {
			continue
		}
		all := maps.Clone(our.lines)
		maps.Copy(all, t.lines)
		for _, about := range slices.Sorted(maps.Keys(all)) {
			line := Line{about, our.lines[about], t.lines[about]}
			if our.agrees(t, about) {
				was, is := our.laps[about], t.laps[about]
				if was == is || was == 0 || is == 0 {
					continue
				}
				line.Was, line.Is = fmt.Sprintf("%s, %d laps", line.Was, was), fmt.Sprintf("%s, %d laps", line.Is, is)
			}
			if b == Sprint {
				line.About = t.session + " of " + about
			}
			lines = append(lines, line)
		}
	}
	return lines
}
