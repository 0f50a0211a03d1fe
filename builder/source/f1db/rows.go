package f1db

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"gridcast/builder/season"
)

// ordered returns the rows of a race in display order, counts them as imported and keeps the things to
// which they refer.
func (c *converter) ordered(t table, rows []row) []row {
	c.imported[t] += len(rows)
	sorted := slices.SortedStableFunc(slices.Values(rows), func(a, b row) int { return cmp.Compare(a.Order, b.Order) })
	for i := range sorted {
		c.keep(&sorted[i])
	}
	return sorted
}

// keep copies the things to which a row refers into the archive.
func (c *converter) keep(r *row) {
	if r.Driver != "" {
		c.facts.Drivers[r.Driver] = c.things.Drivers[r.Driver]
	}
	if r.Team != "" {
		c.facts.Teams[r.Team] = c.things.Teams[r.Team]
	}
	if r.Engine != "" {
		c.facts.Engines[r.Engine] = c.things.Engines[r.Engine]
	}
}

// each converts the rows of a table of a race or a season. No rows give nil.
func each[T any](c *converter, t table, rows []row, convert func(r *row) T) []T {
	if len(rows) == 0 {
		return nil
	}
	list := make([]T, len(rows))
	for i, r := range c.ordered(t, rows) {
		list[i] = convert(&r)
	}
	return list
}

func (c *converter) timedLaps(t table, race int) []season.TimedLap {
	return each(c, t, c.rel.rows[t][race], func(r *row) season.TimedLap {
		return season.TimedLap{Driver: r.Driver, Team: r.Team, Time: millis(r.Time), Laps: r.Laps}
	})
}

func (c *converter) qualifying(t table, race int) []season.QualifyingRow {
	return each(c, t, c.rel.rows[t][race], func(r *row) season.QualifyingRow {
		return season.QualifyingRow{
			Driver: r.Driver, Team: r.Team, Position: r.Position, Time: millis(r.Time),
			Segments: [3]time.Duration{millis(r.Q1), millis(r.Q2), millis(r.Q3)},
		}
	})
}

// toTheBack is F1DB's word for a penalty without a number: start from the back.
const toTheBack = "SFB"

func (c *converter) grid(t table, race int) []season.GridSlot {
	return each(c, t, c.rel.rows[t][race], func(r *row) season.GridSlot {
		places, _ := strconv.Atoi(r.Penalty) // 0 for a penalty in words
		return season.GridSlot{Driver: r.Driver, Team: r.Team, Position: r.Position, Penalty: places, Back: r.Penalty == toTheBack}
	})
}

func (c *converter) results(t table, race int, entries []season.Entry) []season.Result {
	return each(c, t, c.rel.rows[t][race], func(r *row) season.Result {
		result := season.Result{
			Driver: r.Driver, Team: r.Team, Engine: r.Engine, Position: r.Position, Grid: r.Grid,
			Laps: r.Laps, Time: millis(r.Time), Points: r.Points, Reason: r.Reason, Shared: r.Shared,
		}
		if r.Position == 0 {
			result.Outcome = season.Outcome(r.PositionText)
		}
		number := c.number(r)
		if !slices.ContainsFunc(entries, func(e season.Entry) bool { return e.Driver == r.Driver && e.Number == number }) {
			result.Number = number
		}
		return result
	})
}

func (c *converter) fastestLaps(race int) []season.FastestLap {
	return each(c, fastestLaps, c.rel.rows[fastestLaps][race], func(r *row) season.FastestLap {
		return season.FastestLap{Driver: r.Driver, Lap: r.Lap, Time: millis(r.Time)}
	})
}

func (c *converter) pitStops(race int) []season.PitStop {
	stops := each(c, pitStops, c.rel.rows[pitStops][race], func(r *row) season.PitStop {
		return season.PitStop{Driver: r.Driver, Stop: r.Stop, Lap: r.Lap, Time: millis(r.Time)}
	})
	// F1DB once listed every stop of a race twice.
	seen := make(map[season.PitStop]bool, len(stops))
	return slices.DeleteFunc(stops, func(s season.PitStop) bool {
		twice := seen[s]
		seen[s] = true
		return twice
	})
}

func (c *converter) driverStandings(t table, rows []row) []season.DriverStanding {
	return each(c, t, rows, func(r *row) season.DriverStanding {
		return season.DriverStanding{Driver: r.Driver, Position: r.Position, Points: r.Points}
	})
}

func (c *converter) teamStandings(t table, rows []row) []season.TeamStanding {
	return each(c, t, rows, func(r *row) season.TeamStanding {
		return season.TeamStanding{Team: r.Team, Engine: r.Engine, Position: r.Position, Points: r.Points}
	})
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// entries returns the entries of a race in order of car number, so that the order reveals nothing of
// the result.
//
// After the race the entries are the drivers of the result, also without a start (DNS). It leaves out
// drivers without a qualification (DNQ, DNPQ, DNP), drivers excluded before the start (EX), and drivers
// that took over a car, because nobody knew of them on the day before. Before the race the entries
// are the drivers of the grid and of qualifying.
//
// A driver's car is that of the grid, else of qualifying, else the lowest number in the result: a
// driver may have used several cars in a race.
func (c *converter) entries(race int) []season.Entry {
	grid, qualified, raced := c.rel.rows[startingGrid][race], c.rel.rows[qualifying][race], c.rel.rows[raceResults][race]
	cars := make(map[season.DriverID]*row)
	for _, rows := range [][]row{grid, qualified} {
		for i := range rows {
			if _, ok := cars[rows[i].Driver]; !ok {
				cars[rows[i].Driver] = &rows[i]
			}
		}
	}
	drivers := make(map[season.DriverID]*row)
	if len(raced) == 0 {
		drivers = cars
	}
	for i := range raced {
		r := &raced[i]
		if car, ok := cars[r.Driver]; ok {
			if takesPart(r) {
				drivers[r.Driver] = car
			}
			continue
		}
		if other, ok := drivers[r.Driver]; takesPart(r) && !r.Shared && (!ok || c.number(r) < c.number(other)) {
			drivers[r.Driver] = r
		}
	}
	if len(drivers) == 0 {
		return nil
	}
	list := make([]season.Entry, 0, len(drivers))
	for _, r := range drivers {
		number := c.number(r)
		for _, t := range raceTables {
			for i := range c.rel.rows[t][race] {
				if other := &c.rel.rows[t][race][i]; number == 0 && other.Driver == r.Driver {
					number = c.number(other)
				}
			}
		}
		list = append(list, season.Entry{Driver: r.Driver, Team: r.Team, Engine: r.Engine, Number: number})
	}
	slices.SortFunc(list, func(a, b season.Entry) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Driver, b.Driver))
	})
	return list
}

// takesPart reports whether the driver of a row might have started.
func takesPart(r *row) bool {
	outside := []season.Outcome{season.DidNotQualify, season.DidNotPreQualify, season.DidNotPractise, season.ExcludedBeforeStart}
	return !slices.Contains(outside, season.Outcome(r.PositionText))
}

// number returns the number on the car, 0 if the release lacks it.
func (c *converter) number(r *row) int {
	n, _ := strconv.Atoi(r.Number) // digits, by checkRow
	return n
}

// lineages converts the chronologies of teams. A release repeats a chronology for every team in it.
// The archive keeps one, with the teams that take part in its seasons. It leaves out a chronology with a name that ends
// before it begins.
func (c *converter) lineages() {
	byParent := make(map[season.TeamID][]link)
	for _, l := range c.rel.chronology {
		if _, ok := c.facts.Teams[l.Team]; ok {
			byParent[l.Parent] = append(byParent[l.Parent], l)
		}
	}
	for parent, links := range byParent {
		if i := slices.IndexFunc(links, func(l link) bool { return l.To != 0 && l.To < l.From }); i >= 0 {
			file := chronologyTable.file()
			if c.rel.files != nil {
				file = constructorsTable.place(string(parent))
			}
			u := season.Unread{Reason: fmt.Sprintf("%s: %q ends in %d before it begins in %d", file, links[i].Team, links[i].To, links[i].From)}
			if !slices.Contains(c.report.Unread, u) { // of another team in it
				c.report.Unread = append(c.report.Unread, u)
			}
			continue
		}
		slices.SortFunc(links, func(a, b link) int {
			return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Order, b.Order))
		})
		var lineage season.Lineage
		for _, l := range links {
			lineage.Links = append(lineage.Links, season.Link{Team: l.Team, From: l.From, To: l.To})
		}
		same := func(other season.Lineage) bool { return slices.Equal(other.Links, lineage.Links) }
		if len(links) > 1 && !slices.ContainsFunc(c.facts.Lineages, same) {
			c.facts.Lineages = append(c.facts.Lineages, lineage)
		}
	}
	slices.SortFunc(c.facts.Lineages, func(a, b season.Lineage) int {
		return slices.CompareFunc(a.Links, b.Links, func(x, y season.Link) int {
			return cmp.Or(cmp.Compare(x.From, y.From), cmp.Compare(x.Team, y.Team), cmp.Compare(x.To, y.To))
		})
	})
	c.imported[chronologyTable] = 0
	for _, l := range c.facts.Lineages {
		c.imported[chronologyTable] += len(l.Links)
	}
}
