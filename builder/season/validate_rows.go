package season

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

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

func (c *checker) validateRows(r *Round) (fault error) {
	c.checkRows(r, func(_ Part, err error) { fault = cmp.Or(fault, err) })
	return fault
}

// checkRows calls refuse with the first faulty row of each table.
func (c *checker) checkRows(r *Round, refuse func(Part, error)) {
	check := func(part Part, err error) {
		if err != nil {
			refuse(part, err)
		}
	}
	for i, kind := range practices {
		check(Part(kind), eachRow(c, string(kind), r.Practice[i], func(row *TimedLap) error {
			return c.refers(row.Driver, row.Team, "", row.Time, row.Laps)
		}))
	}
	qualifying := func(row *QualifyingRow) error {
		fastest := min(row.Time, row.Segments[0], row.Segments[1], row.Segments[2])
		return c.refers(row.Driver, row.Team, "", fastest, row.Position)
	}
	check(Part(Qualifying), eachRow(c, "qualifying", r.Qualifying, qualifying))
	check(Part(SprintQualifying), eachRow(c, "sprint qualifying", r.SprintQualifying, qualifying))
	check(EntriesPart, eachRow(c, "entries", r.Entries, func(row *Entry) error {
		return cmp.Or(c.refers(row.Driver, row.Team, row.Engine, 0, row.Number), c.once(row.Driver))
	}))
	check(GridPart, eachRow(c, "grid", r.Grid, func(row *GridSlot) error { return cmp.Or(c.validateSlot(row), c.once(row.Driver)) }))
	check(SprintGridPart, eachRow(c, "sprint grid", r.SprintGrid, func(row *GridSlot) error { return cmp.Or(c.validateSlot(row), c.once(row.Driver)) }))
	check(ResultPart, eachRow(c, "result", r.Results, c.validateResult))
	check(Part(Sprint), eachRow(c, "sprint result", r.SprintResults, c.validateResult))
	check(FastestLapsPart, eachRow(c, "fastest laps", r.FastestLaps, func(row *FastestLap) error {
		return c.refers(row.Driver, "", "", row.Time, row.Lap)
	}))
	check(PitStopsPart, eachRow(c, "pit stops", r.PitStops, func(row *PitStop) error {
		return c.refers(row.Driver, "", "", row.Time, min(row.Stop, row.Lap))
	}))
	check(DriverStandingsPart, eachRow(c, "driver standings", r.DriverStandings, func(row *DriverStanding) error {
		return cmp.Or(c.refers(row.Driver, "", "", 0, row.Position), finitePoints(row.Driver, row.Points), c.once(row.Driver))
	}))
	check(TeamStandingsPart, c.validateTeamStandings(r.TeamStandings))
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
