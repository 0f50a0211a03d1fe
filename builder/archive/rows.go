package archive

import "gridcast/builder/season"

func (e *tableEncoder) practice(rows []season.TimedLap) table {
	return table{
		Rows:   len(rows),
		Driver: column(rows, func(r *season.TimedLap) int { return e.drivers.of(r.Driver) }),
		Team:   column(rows, func(r *season.TimedLap) int { return e.teams.of(r.Team) }),
		Time:   column(rows, func(r *season.TimedLap) int { return e.millis(r.Time) }),
		Laps:   column(rows, func(r *season.TimedLap) int { return r.Laps }),
	}
}

func (d *tableDecoder) practice(t table) []season.TimedLap {
	rows := newRows[season.TimedLap](d, t)
	spread(d, rows, t.Driver, func(r *season.TimedLap, n int) { r.Driver = name(d, d.names.Drivers, n) })
	spread(d, rows, t.Team, func(r *season.TimedLap, n int) { r.Team = name(d, d.names.Teams, n) })
	spread(d, rows, t.Time, func(r *season.TimedLap, ms int) { r.Time = duration(ms) })
	spread(d, rows, t.Laps, func(r *season.TimedLap, n int) { r.Laps = n })
	return rows
}

func (e *tableEncoder) qualifying(rows []season.QualifyingRow) table {
	segment := func(i int) []int {
		return column(rows, func(r *season.QualifyingRow) int { return e.millis(r.Segments[i]) })
	}
	return table{
		Rows:     len(rows),
		Driver:   column(rows, func(r *season.QualifyingRow) int { return e.drivers.of(r.Driver) }),
		Team:     column(rows, func(r *season.QualifyingRow) int { return e.teams.of(r.Team) }),
		Position: column(rows, func(r *season.QualifyingRow) int { return r.Position }),
		Time:     column(rows, func(r *season.QualifyingRow) int { return e.millis(r.Time) }),
		Segment1: segment(0),
		Segment2: segment(1),
		Segment3: segment(2),
	}
}

func (d *tableDecoder) qualifying(t table) []season.QualifyingRow {
	rows := newRows[season.QualifyingRow](d, t)
	spread(d, rows, t.Driver, func(r *season.QualifyingRow, n int) { r.Driver = name(d, d.names.Drivers, n) })
	spread(d, rows, t.Team, func(r *season.QualifyingRow, n int) { r.Team = name(d, d.names.Teams, n) })
	spread(d, rows, t.Position, func(r *season.QualifyingRow, n int) { r.Position = n })
	spread(d, rows, t.Time, func(r *season.QualifyingRow, ms int) { r.Time = duration(ms) })
	for i, segment := range [][]int{t.Segment1, t.Segment2, t.Segment3} {
		spread(d, rows, segment, func(r *season.QualifyingRow, ms int) { r.Segments[i] = duration(ms) })
	}
	return rows
}

func (e *tableEncoder) entries(rows []season.Entry) table {
	return table{
		Rows:   len(rows),
		Driver: column(rows, func(r *season.Entry) int { return e.drivers.of(r.Driver) }),
		Team:   column(rows, func(r *season.Entry) int { return e.teams.of(r.Team) }),
		Engine: column(rows, func(r *season.Entry) int { return e.engines.of(r.Engine) }),
		Number: column(rows, func(r *season.Entry) int { return r.Number }),
	}
}

func (d *tableDecoder) entries(t table) []season.Entry {
	rows := newRows[season.Entry](d, t)
	spread(d, rows, t.Driver, func(r *season.Entry, n int) { r.Driver = name(d, d.names.Drivers, n) })
	spread(d, rows, t.Team, func(r *season.Entry, n int) { r.Team = name(d, d.names.Teams, n) })
	spread(d, rows, t.Engine, func(r *season.Entry, n int) { r.Engine = name(d, d.names.Engines, n) })
	spread(d, rows, t.Number, func(r *season.Entry, n int) { r.Number = n })
	return rows
}

func (e *tableEncoder) grid(rows []season.GridSlot) table {
	return table{
		Rows:     len(rows),
		Driver:   column(rows, func(r *season.GridSlot) int { return e.drivers.of(r.Driver) }),
		Team:     column(rows, func(r *season.GridSlot) int { return e.teams.of(r.Team) }),
		Position: column(rows, func(r *season.GridSlot) int { return r.Position }),
	}
}

func (d *tableDecoder) grid(t table) []season.GridSlot {
	rows := newRows[season.GridSlot](d, t)
	spread(d, rows, t.Driver, func(r *season.GridSlot, n int) { r.Driver = name(d, d.names.Drivers, n) })
	spread(d, rows, t.Team, func(r *season.GridSlot, n int) { r.Team = name(d, d.names.Teams, n) })
	spread(d, rows, t.Position, func(r *season.GridSlot, n int) { r.Position = n })
	return rows
}

func (e *tableEncoder) results(rows []season.Result) table {
	return table{
		Rows:     len(rows),
		Driver:   column(rows, func(r *season.Result) int { return e.drivers.of(r.Driver) }),
		Team:     column(rows, func(r *season.Result) int { return e.teams.of(r.Team) }),
		Engine:   column(rows, func(r *season.Result) int { return e.engines.of(r.Engine) }),
		Position: column(rows, func(r *season.Result) int { return r.Position }),
		Outcome:  column(rows, func(r *season.Result) season.Outcome { return r.Outcome }),
		Grid:     column(rows, func(r *season.Result) int { return r.Grid }),
		Laps:     column(rows, func(r *season.Result) int { return r.Laps }),
		Time:     column(rows, func(r *season.Result) int { return e.millis(r.Time) }),
		Points:   column(rows, func(r *season.Result) float64 { return r.Points }),
		Reason:   column(rows, func(r *season.Result) int { return e.reasons.of(r.Reason) }),
		Shared:   column(rows, func(r *season.Result) bool { return r.Shared }),
	}
}

func (d *tableDecoder) results(t table) []season.Result {
	rows := newRows[season.Result](d, t)
	spread(d, rows, t.Driver, func(r *season.Result, n int) { r.Driver = name(d, d.names.Drivers, n) })
	spread(d, rows, t.Team, func(r *season.Result, n int) { r.Team = name(d, d.names.Teams, n) })
	spread(d, rows, t.Engine, func(r *season.Result, n int) { r.Engine = name(d, d.names.Engines, n) })
	spread(d, rows, t.Position, func(r *season.Result, n int) { r.Position = n })
	spread(d, rows, t.Outcome, func(r *season.Result, o season.Outcome) { r.Outcome = o })
	spread(d, rows, t.Grid, func(r *season.Result, n int) { r.Grid = n })
	spread(d, rows, t.Laps, func(r *season.Result, n int) { r.Laps = n })
	spread(d, rows, t.Time, func(r *season.Result, ms int) { r.Time = duration(ms) })
	spread(d, rows, t.Points, func(r *season.Result, points float64) { r.Points = points })
	spread(d, rows, t.Reason, func(r *season.Result, n int) { r.Reason = name(d, d.names.Reasons, n) })
	spread(d, rows, t.Shared, func(r *season.Result, shared bool) { r.Shared = shared })
	return rows
}

func (e *tableEncoder) fastestLaps(rows []season.FastestLap) table {
	return table{
		Rows:   len(rows),
		Driver: column(rows, func(r *season.FastestLap) int { return e.drivers.of(r.Driver) }),
		Lap:    column(rows, func(r *season.FastestLap) int { return r.Lap }),
		Time:   column(rows, func(r *season.FastestLap) int { return e.millis(r.Time) }),
	}
}

func (d *tableDecoder) fastestLaps(t table) []season.FastestLap {
	rows := newRows[season.FastestLap](d, t)
	spread(d, rows, t.Driver, func(r *season.FastestLap, n int) { r.Driver = name(d, d.names.Drivers, n) })
	spread(d, rows, t.Lap, func(r *season.FastestLap, n int) { r.Lap = n })
	spread(d, rows, t.Time, func(r *season.FastestLap, ms int) { r.Time = duration(ms) })
	return rows
}

func (e *tableEncoder) pitStops(rows []season.PitStop) table {
	return table{
		Rows:   len(rows),
		Driver: column(rows, func(r *season.PitStop) int { return e.drivers.of(r.Driver) }),
		Stop:   column(rows, func(r *season.PitStop) int { return r.Stop }),
		Lap:    column(rows, func(r *season.PitStop) int { return r.Lap }),
		Time:   column(rows, func(r *season.PitStop) int { return e.millis(r.Time) }),
	}
}

func (d *tableDecoder) pitStops(t table) []season.PitStop {
	rows := newRows[season.PitStop](d, t)
	spread(d, rows, t.Driver, func(r *season.PitStop, n int) { r.Driver = name(d, d.names.Drivers, n) })
	spread(d, rows, t.Stop, func(r *season.PitStop, n int) { r.Stop = n })
	spread(d, rows, t.Lap, func(r *season.PitStop, n int) { r.Lap = n })
	spread(d, rows, t.Time, func(r *season.PitStop, ms int) { r.Time = duration(ms) })
	return rows
}

func (e *tableEncoder) driverStandings(rows []season.DriverStanding) table {
	return table{
		Rows:     len(rows),
		Driver:   column(rows, func(r *season.DriverStanding) int { return e.drivers.of(r.Driver) }),
		Position: column(rows, func(r *season.DriverStanding) int { return r.Position }),
		Points:   column(rows, func(r *season.DriverStanding) float64 { return r.Points }),
	}
}

func (d *tableDecoder) driverStandings(t table) []season.DriverStanding {
	rows := newRows[season.DriverStanding](d, t)
	spread(d, rows, t.Driver, func(r *season.DriverStanding, n int) { r.Driver = name(d, d.names.Drivers, n) })
	spread(d, rows, t.Position, func(r *season.DriverStanding, n int) { r.Position = n })
	spread(d, rows, t.Points, func(r *season.DriverStanding, points float64) { r.Points = points })
	return rows
}

func (e *tableEncoder) teamStandings(rows []season.TeamStanding) table {
	return table{
		Rows:     len(rows),
		Team:     column(rows, func(r *season.TeamStanding) int { return e.teams.of(r.Team) }),
		Engine:   column(rows, func(r *season.TeamStanding) int { return e.engines.of(r.Engine) }),
		Position: column(rows, func(r *season.TeamStanding) int { return r.Position }),
		Points:   column(rows, func(r *season.TeamStanding) float64 { return r.Points }),
	}
}

func (d *tableDecoder) teamStandings(t table) []season.TeamStanding {
	rows := newRows[season.TeamStanding](d, t)
	spread(d, rows, t.Team, func(r *season.TeamStanding, n int) { r.Team = name(d, d.names.Teams, n) })
	spread(d, rows, t.Engine, func(r *season.TeamStanding, n int) { r.Engine = name(d, d.names.Engines, n) })
	spread(d, rows, t.Position, func(r *season.TeamStanding, n int) { r.Position = n })
	spread(d, rows, t.Points, func(r *season.TeamStanding, points float64) { r.Points = points })
	return rows
}
