package assemble

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gridcast/builder/season"
)

// Gate is a rule that a changed block must pass before it is used. It is a label of metrics.
type Gate string

// The gates.
const (
	PositionsGate Gate = "positions"     // unique, and without a gap
	OnceGate      Gate = "once"          // a driver and a car once in a session
	OutcomeGate   Gate = "outcome"       // a driver without a position has no points
	PointsGate    Gate = "points"        // by position, as the regulations of the year give them
	VerifiedGate  Gate = "verified"      // nobody of a result that is known disappears
	StartGate     Gate = "start"         // a start moves only as far as a source may move it
	EarlyGate     Gate = "early"         // nothing is known of a session before it can have begun
	RenameGate    Gate = "renamed_round" // a new Grand Prix where and when another one vanished
	ShrinkGate    Gate = "shrunken"      // a season does not lose rounds wholesale
	DisputeGate   Gate = "disputed"      // a person's facts, or another source, say otherwise
	TermsGate     Gate = "terms"         // facts under terms that the operator has not accepted
)

// Gates returns all gates.
func Gates() []Gate {
	return []Gate{
		PositionsGate, OnceGate, OutcomeGate, PointsGate, VerifiedGate, StartGate, EarlyGate, RenameGate, ShrinkGate, DisputeGate, TermsGate,
	}
}

// Refusal says why a block waits for a person.
type Refusal struct {
	Gate   Gate   `json:"gate"`
	Reason string `json:"reason"`
}

// How a source may move a start that is known: further than this waits for a person or for a second
// source. In May 2026 Miami was brought forward by three hours, eight hours ahead; in November 2025
// Las Vegas was moved to the day before by mistake, when it was over by that.
const (
	maxMove   = 48 * time.Hour
	minNotice = time.Hour
)

// candidate is a changed block on its way through the gates.
type candidate struct {
	year     int
	block    Block
	was, is  *season.Round // as they stand, and as they would
	new      bool          // the round was not known at all
	decided  Decided
	rounds   []season.Round // of the year as they stand
	now      time.Time
	seconded bool // another source says the same
	byHand   bool // a person says it
}

// judge returns why a block may not be used as it is; none if it may.
func (c *candidate) judge() []Refusal {
	var refused []Refusal
	refuse := func(g Gate, format string, args ...any) {
		refused = append(refused, Refusal{g, fmt.Sprintf(format, args...)})
	}
	r := c.is
	switch c.block {
	case Start:
		c.judgeStart(refuse)
	case Qualifying:
		c.judgeEarly(refuse, "qualifying", r.QualifyingStartsAt())
		judgeRows(refuse, "qualifying", r.Qualifying, false, func(row season.QualifyingRow) (season.DriverID, int) { return row.Driver, row.Position })
	case Entries:
		judgeRows(refuse, "entries", r.Entries, false, func(row season.Entry) (season.DriverID, int) { return row.Driver, 0 })
		cars := make(map[int]season.DriverID)
		for _, row := range r.Entries {
			if other, ok := cars[row.Number]; ok && row.Number != 0 {
				refuse(OnceGate, "car %d is that of %s and of %s", row.Number, other, row.Driver)
			}
			cars[row.Number] = row.Driver
		}
	case Grid:
		judgeRows(refuse, "grid", r.Grid, true, func(row season.GridSlot) (season.DriverID, int) { return row.Driver, row.Position })
	case Sprint:
		for _, session := range []struct {
			kind season.SessionKind
			rows int
		}{{season.SprintQualifying, len(r.SprintQualifying)}, {season.Sprint, len(r.SprintResults)}} {
			if s, ok := r.Session(session.kind); ok && !s.Start.IsZero() && session.rows > 0 {
				c.judgeEarly(refuse, string(session.kind), s.Start)
			}
		}
		judgeRows(refuse, "sprint qualifying", r.SprintQualifying, false, func(row season.QualifyingRow) (season.DriverID, int) { return row.Driver, row.Position })
		judgeRows(refuse, "sprint grid", r.SprintGrid, true, func(row season.GridSlot) (season.DriverID, int) { return row.Driver, row.Position })
		judgeClassification(refuse, "sprint", r.SprintResults, sprintPoints(c.year))
	case Result:
		c.judgeEarly(refuse, "race", c.lightsOut())
		judgeClassification(refuse, "race", r.Results, racePoints(c.year, r.GrandPrix))
		known := slices.Clone(c.decided.Verified)
		for _, row := range c.was.Results {
			if !slices.Contains(known, row.Driver) {
				known = append(known, row.Driver)
			}
		}
		for _, driver := range known {
			if !slices.ContainsFunc(r.Results, func(row season.Result) bool { return row.Driver == driver }) {
				refuse(VerifiedGate, "%s is in the result that is known and not in this one", driver)
			}
		}
	}
	return refused
}

// lightsOut is the start that is valid: the ledger's, else the archive's.
func (c *candidate) lightsOut() time.Time {
	if !c.decided.Start.IsZero() {
		return c.decided.Start
	}
	return c.was.StartsAt()
}

func (c *candidate) judgeEarly(refuse func(Gate, string, ...any), what string, start time.Time) {
	if c.now.Before(start) {
		refuse(EarlyGate, "%s starts at %s, %s from now: either it was brought forward, or this is not its outcome",
			what, start.UTC().Format("2006-01-02 15:04 UTC"), start.Sub(c.now).Round(time.Minute))
	}
}

// judgeStart judges a move of lights out. A round that was not known, or whose hour was not, has no
// start that anybody was told of.
func (c *candidate) judgeStart(refuse func(Gate, string, ...any)) {
	if c.new || c.seconded {
		return
	}
	from, to := c.lightsOut(), c.is.StartsAt()
	if from.Equal(to) {
		return // the ledger has it already
	}
	move := to.Sub(from)
	if c.was.Provisional() && c.decided.Start.IsZero() && move.Abs() <= maxMove && c.now.Before(to) {
		return
	}
	if c.decided.StartHeld && !c.byHand {
		refuse(DisputeGate, "a person set the start to %s", from.UTC().Format("2006-01-02 15:04 UTC"))
	}
	if move.Abs() > maxMove && !c.decided.Postponed {
		refuse(StartGate, "moved by %s, a source may move it by %s", move.Round(time.Minute), maxMove)
	}
	if notice := to.Sub(c.now); notice < minNotice {
		refuse(StartGate, "to %s, which is %s from now: a source may move it to %s ahead at the earliest",
			to.UTC().Format("2006-01-02 15:04 UTC"), notice.Round(time.Minute), minNotice)
	}
	for i := range c.rounds {
		other := &c.rounds[i]
		if other.GrandPrix == c.is.GrandPrix || c.decided.Postponed {
			continue
		}
		if at := other.StartsAt(); at.After(from) != at.After(to) {
			refuse(StartGate, "across the %s at %s", other.Name, at.UTC().Format("2006-01-02 15:04 UTC"))
		}
	}
}

// judgeRows asks that every driver is there once, and that positions are unique and without a gap.
// Position 0 is none. On a grid, drivers who start from the pit lane may leave their slots empty.
func judgeRows[T any](refuse func(Gate, string, ...any), what string, rows []T, emptySlots bool, read func(T) (season.DriverID, int)) {
	drivers, positions := make(map[season.DriverID]bool), make(map[int]season.DriverID)
	highest := 0
	for _, row := range rows {
		driver, position := read(row)
		if drivers[driver] {
			refuse(OnceGate, "%s has %s twice", what, driver)
		}
		drivers[driver] = true
		if position == 0 {
			continue
		}
		if other, ok := positions[position]; ok {
			refuse(PositionsGate, "%s has P%d twice, %s and %s", what, position, other, driver)
		}
		positions[position], highest = driver, max(highest, position)
	}
	if emptySlots && highest <= len(rows) {
		return
	}
	for position := 1; position < highest; position++ {
		if _, ok := positions[position]; !ok {
			refuse(PositionsGate, "%s has P%d but nobody in P%d", what, highest, position)
			return
		}
	}
}

func judgeClassification(refuse func(Gate, string, ...any), what string, rows []season.Result, tables [][]float64) {
	judgeRows(refuse, what, rows, false, func(row season.Result) (season.DriverID, int) { return row.Driver, row.Position })
	for _, row := range rows {
		if row.Position == 0 && row.Points != 0 {
			refuse(OutcomeGate, "%s: %s is %s and has %g points", what, row.Driver, row.Outcome, row.Points)
		}
	}
	if len(rows) == 0 || len(tables) == 0 || slices.ContainsFunc(tables, func(table []float64) bool { return pointsFault(rows, table) == "" }) {
		return
	}
	refuse(PointsGate, "%s: %s", what, pointsFault(rows, tables[0]))
}

// fastestLapPoint marks a table of years in which the fastest lap gave a point to a driver in the
// first ten: its last element.
const fastestLapPoint = -1

// pointsFault returns in words what does not fit the table; empty if all does.
func pointsFault(rows []season.Result, table []float64) string {
	bonus := 0
	if n := len(table); n > 0 && table[n-1] == fastestLapPoint {
		table, bonus = table[:n-1], 1
	}
	var wrong []string
	for _, row := range rows {
		if row.Position == 0 {
			continue
		}
		want := 0.0
		if row.Position <= len(table) {
			want = table[row.Position-1]
		}
		switch difference := row.Points - want; {
		case math.Abs(difference) < 1e-9:
		case difference == 1 && bonus > 0 && row.Position <= 10:
			bonus--
		default:
			wrong = append(wrong, fmt.Sprintf("P%d %s has %g points, want %g", row.Position, row.Driver, row.Points, want))
		}
	}
	return strings.Join(wrong, "; ")
}

// racePoints are the tables of points that a race of a year may give, the usual one first; none
// for years whose points this package does not know. Sources: the Sporting Regulations of the FIA
// Formula One World Championship, article 6, of each year: the table of 2010; double points at the
// last race of 2014; a point for the fastest lap in the first ten from 2019 to 2024; half points for
// a race of less than three quarters up to 2021; from 2022 a table for each quarter of the distance.
func racePoints(year int, gp season.GrandPrixID) [][]float64 {
	if year < 2010 {
		return nil
	}
	full := []float64{25, 18, 15, 12, 10, 8, 6, 4, 2, 1}
	scaled := func(factor float64) []float64 {
		table := slices.Clone(full)
		for i := range table {
			table[i] *= factor
		}
		return table
	}
	tables := [][]float64{full}
	switch {
	case year == 2014 && gp == "abu-dhabi":
		return [][]float64{scaled(2)}
	case year <= 2021:
		tables = append(tables, scaled(0.5))
	default:
		tables = append(tables,
			[]float64{19, 14, 12, 9, 8, 6, 5, 3, 2, 1},
			[]float64{13, 10, 8, 6, 5, 4, 3, 2, 1},
			[]float64{6, 4, 3, 2, 1})
	}
	if year >= 2019 && year <= 2024 {
		for i := range tables {
			tables[i] = append(tables[i], fastestLapPoint)
		}
	}
	return tables
}

// sprintPoints is racePoints for the sprint: three places in 2021, eight since 2022.
func sprintPoints(year int) [][]float64 {
	switch {
	case year < 2021:
		return nil
	case year == 2021:
		return [][]float64{{3, 2, 1}}
	}
	return [][]float64{{8, 7, 6, 5, 4, 3, 2, 1}}
}
