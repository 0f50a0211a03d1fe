package f1db

import (
	"cmp"
	"slices"
	"strconv"

	"gridcast/builder/season"
)

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
