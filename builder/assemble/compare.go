package assemble

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"gridcast/builder/season"
)

// claim is a table of what a round says of a block in terms that every source has: by a driver or
// a session, one line. Times, laps and reasons differ between good sources; places do not.
type claim struct {
	table string
	lines map[string]string
	// places of a table in which some sources give those without a place the last ones: in
	// qualifying who set no time, on the grid who starts from the pit lane. Those have 0.
	places map[string]int
}

// claims returns the tables of a block that the round has.
func claims(b Block, r *season.Round) []claim {
	var all []claim
	add := func(c claim) {
		if len(c.lines) > 0 {
			all = append(all, c)
		}
	}
	switch b {
	case Calendar:
		if r.Circuit != "" {
			add(claim{lines: map[string]string{"circuit": string(r.Circuit), "sprint": strconv.FormatBool(r.Sprint)}})
		}
	case Start:
		if !r.Provisional() {
			add(claim{table: "hour", lines: words(Start, r)})
		}
	case Sessions:
		for _, s := range r.Sessions {
			if !s.Start.IsZero() {
				add(claim{table: string(s.Kind), lines: map[string]string{string(s.Kind): s.Start.UTC().Format("2006-01-02 15:04 UTC")}})
			}
		}
	case Entries:
		add(linesOf("", r.Entries, func(e season.Entry) (season.DriverID, string, int) {
			return e.Driver, fmt.Sprintf("car %d, %s", e.Number, e.Team), unplaced
		}))
	case Qualifying:
		add(linesOf("", r.Qualifying, qualified))
	case Grid:
		add(linesOf("", r.Grid, lined))
	case Sprint:
		add(linesOf("sprint qualifying", r.SprintQualifying, qualified))
		add(linesOf("sprint grid", r.SprintGrid, lined))
		add(linesOf("sprint", r.SprintResults, finished))
	case Result:
		add(linesOf("", r.Results, finished))
	}
	return all
}

// unplaced is the place of a row in a table without places.
const unplaced = -1

func linesOf[T any](table string, rows []T, read func(T) (season.DriverID, string, int)) claim {
	c := claim{table, make(map[string]string, len(rows)), make(map[string]int)}
	for _, row := range rows {
		driver, line, at := read(row)
		c.lines[string(driver)] = line
		if at != unplaced {
			c.places[string(driver)] = at
		}
	}
	return c
}

func qualified(row season.QualifyingRow) (season.DriverID, string, int) {
	return row.Driver, place(row.Position), row.Position
}

func lined(row season.GridSlot) (season.DriverID, string, int) {
	return row.Driver, slot(row.Position), row.Position
}

// finished is a row of a classification: the place and the points, or why there is no place where
// that is a decision of the stewards.
func finished(row season.Result) (season.DriverID, string, int) {
	switch {
	case row.Position > 0:
		return row.Driver, fmt.Sprintf("P%d, %g points", row.Position, row.Points), unplaced
	case row.Outcome == season.Disqualified:
		return row.Driver, "disqualified", unplaced
	}
	return row.Driver, "unplaced", unplaced
}

// agrees reports whether two tables say the same of a driver or a session.
func (c claim) agrees(other claim, about string) bool {
	if c.lines[about] == other.lines[about] {
		return true
	}
	mine, ok := c.places[about]
	theirs, both := other.places[about]
	switch {
	case !ok && !both, mine != 0 && theirs != 0:
		return false
	case !ok || !both: // some do not list them at all
		return mine == 0 && theirs == 0
	case mine != 0:
		return other.agrees(c, about)
	}
	return theirs > slices.Max(slices.Collect(maps.Values(c.places)))
}

// sameOrder reports whether two rounds have the same drivers in the same places of a session. A
// person types no times; a source that has them as well says the same.
func sameOrder(b Block, x, y *season.Round) bool {
	if b != Qualifying && b != Grid && b != Sprint && b != Result {
		return false
	}
	return slices.EqualFunc(claims(b, x), claims(b, y), func(x, y claim) bool { return x.table == y.table && maps.Equal(x.lines, y.lines) })
}

// disagreement returns where two rounds contradict each other about a block: ours as what was,
// theirs as what is. Tables that only one of them has are no contradiction.
func disagreement(b Block, ours, theirs *season.Round) []Line {
	tables := make(map[string]claim)
	for _, c := range claims(b, ours) {
		tables[c.table] = c
	}
	var lines []Line
	for _, c := range claims(b, theirs) {
		known, ok := tables[c.table]
		if !ok {
			continue
		}
		all := maps.Clone(known.lines)
		maps.Copy(all, c.lines)
		for _, about := range slices.Sorted(maps.Keys(all)) {
			if known.agrees(c, about) {
				continue
			}
			line := Line{About: about, Was: known.lines[about], Is: c.lines[about]}
			if b == Sprint {
				line.About = c.table + " of " + about
			}
			lines = append(lines, line)
		}
	}
	return lines
}
