package season

import (
	"fmt"
	"math"
	"time"
)

// validateRows checks every table of a round.
func (f *Facts) validateRows(r *Round) error {
	for i, kind := range practices {
		for j, row := range r.Practice[i] {
			if err := f.refers(row.Driver, row.Team, "", row.Time, row.Laps); err != nil {
				return fmt.Errorf("%s, row %d: %w", kind, j+1, err)
			}
		}
	}
	for _, table := range []struct {
		name string
		rows []QualifyingRow
	}{{"qualifying", r.Qualifying}, {"sprint qualifying", r.SprintQualifying}} {
		for i, row := range table.rows {
			fastest := min(row.Time, row.Segments[0], row.Segments[1], row.Segments[2])
			if err := f.refers(row.Driver, row.Team, "", fastest, row.Position); err != nil {
				return fmt.Errorf("%s, row %d: %w", table.name, i+1, err)
			}
		}
	}
	if err := f.validateEntries(r.Entries); err != nil {
		return err
	}
	if err := f.validateGrid("grid", r.Grid); err != nil {
		return err
	}
	if err := f.validateGrid("sprint grid", r.SprintGrid); err != nil {
		return err
	}
	if err := f.validateResults("result", r.Results); err != nil {
		return err
	}
	if err := f.validateResults("sprint result", r.SprintResults); err != nil {
		return err
	}
	for i, row := range r.FastestLaps {
		if err := f.refers(row.Driver, "", "", row.Time, row.Lap); err != nil {
			return fmt.Errorf("fastest laps, row %d: %w", i+1, err)
		}
	}
	for i, row := range r.PitStops {
		if err := f.refers(row.Driver, "", "", row.Time, min(row.Stop, row.Lap)); err != nil {
			return fmt.Errorf("pit stops, row %d: %w", i+1, err)
		}
	}
	return f.validateStandings(r)
}

func (f *Facts) validateEntries(rows []Entry) error {
	seen := make(map[DriverID]bool, len(rows))
	for i, row := range rows {
		if err := f.refers(row.Driver, row.Team, row.Engine, 0, row.Number); err != nil {
			return fmt.Errorf("entries, row %d: %w", i+1, err)
		}
		if seen[row.Driver] {
			return fmt.Errorf("entries, row %d: driver %q is there twice", i+1, row.Driver)
		}
		seen[row.Driver] = true
	}
	return nil
}

func (f *Facts) validateGrid(table string, rows []GridSlot) error {
	seen := make(map[DriverID]bool, len(rows))
	for i, row := range rows {
		if err := f.refers(row.Driver, row.Team, "", 0, min(row.Position, row.Penalty)); err != nil {
			return fmt.Errorf("%s, row %d: %w", table, i+1, err)
		}
		if seen[row.Driver] {
			return fmt.Errorf("%s, row %d: driver %q is there twice", table, i+1, row.Driver)
		}
		seen[row.Driver] = true
	}
	return nil
}

func (f *Facts) validateResults(table string, rows []Result) error {
	for i, row := range rows {
		if err := f.refers(row.Driver, row.Team, row.Engine, row.Time, min(row.Position, row.Grid, row.Laps)); err != nil {
			return fmt.Errorf("%s, row %d: %w", table, i+1, err)
		}
		if !finite(row.Points) {
			return fmt.Errorf("%s, row %d: %q has %v points", table, i+1, row.Driver, row.Points)
		}
		if (row.Position == 0) == (row.Outcome == "") {
			return fmt.Errorf("%s, row %d: %q has position %d and outcome %q", table, i+1, row.Driver, row.Position, row.Outcome)
		}
		if err := plain(row.Reason, string(row.Outcome)); err != nil {
			return fmt.Errorf("%s, row %d: reason of %q: %w", table, i+1, row.Driver, err)
		}
	}
	return nil
}

func (f *Facts) validateStandings(r *Round) error {
	drivers := make(map[DriverID]bool, len(r.DriverStandings))
	for i, row := range r.DriverStandings {
		if err := f.refers(row.Driver, "", "", 0, row.Position); err != nil {
			return fmt.Errorf("driver standings, row %d: %w", i+1, err)
		}
		if !finite(row.Points) {
			return fmt.Errorf("driver standings, row %d: %q has %v points", i+1, row.Driver, row.Points)
		}
		if drivers[row.Driver] {
			return fmt.Errorf("driver standings, row %d: driver %q is there twice", i+1, row.Driver)
		}
		drivers[row.Driver] = true
	}
	type entrant struct {
		team   TeamID
		engine EngineID
		ranked bool // a team that was excluded and entered again has a row of each sort
	}
	teams := make(map[entrant]bool, len(r.TeamStandings))
	for i, row := range r.TeamStandings {
		if _, ok := f.Teams[row.Team]; !ok {
			return fmt.Errorf("team standings, row %d: unknown team %q", i+1, row.Team)
		}
		if _, ok := f.Engines[row.Engine]; !ok && row.Engine != "" {
			return fmt.Errorf("team standings, row %d: unknown engine %q", i+1, row.Engine)
		}
		if !finite(row.Points) {
			return fmt.Errorf("team standings, row %d: %q has %v points", i+1, row.Team, row.Points)
		}
		key := entrant{row.Team, row.Engine, row.Position > 0}
		if teams[key] {
			return fmt.Errorf("team standings, row %d: team %q is there twice", i+1, row.Team)
		}
		teams[key] = true
	}
	return nil
}

// finite reports whether a number is neither infinite nor NaN. JSON has neither, and NaN differs from itself.
func finite(n float64) bool { return !math.IsNaN(n) && !math.IsInf(n, 0) }

// refers checks the references of a row, which may be empty, and that no number is negative. least is
// the smallest number of the row.
func (f *Facts) refers(driver DriverID, team TeamID, engine EngineID, time time.Duration, least int) error {
	if _, ok := f.Drivers[driver]; !ok {
		return fmt.Errorf("unknown driver %q", driver)
	}
	if _, ok := f.Teams[team]; !ok && team != "" {
		return fmt.Errorf("unknown team %q", team)
	}
	if _, ok := f.Engines[engine]; !ok && engine != "" {
		return fmt.Errorf("unknown engine %q", engine)
	}
	if time < 0 || least < 0 {
		return fmt.Errorf("%q has a negative value: time %s, number %d", driver, time, least)
	}
	return nil
}
