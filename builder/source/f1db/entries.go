package f1db

import (
	"cmp"
	"slices"
	"strconv"

	"gridcast/builder/season"
)

// entries returns who takes part in a race, in order of car number, so that the order says
// nothing of the result.
//
// Once there is a result, those are the drivers in it except the ones who did not qualify
// (DNQ, DNPQ, DNP), were excluded before the start (EX), or only took over the car of another
// during the race: on the day before nobody knew of them. Who did not start (DNS) had entered.
// Before the result they are the grid and those who took part in qualifying.
//
// A driver's car is the one on the grid, else that of qualifying, else that of the result with
// the lowest number: in a race they may have driven several.
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
		list = append(list, season.Entry{Driver: r.Driver, Team: r.Team, Engine: r.Engine, Number: c.number(r)})
	}
	slices.SortFunc(list, func(a, b season.Entry) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Driver, b.Driver))
	})
	return list
}

// takesPart reports whether a row of a result is that of a driver who might have started.
func takesPart(r *row) bool {
	if r.Position > 0 {
		return true
	}
	switch season.Outcome(r.PositionText) {
	case season.DidNotQualify, season.DidNotPreQualify, season.DidNotPractise, season.ExcludedBeforeStart:
		return false
	}
	return true
}

// number is the number on the car, 0 if the release does not know it.
func (c *converter) number(r *row) int {
	n, err := strconv.Atoi(r.Number)
	if err != nil && r.Number != "" {
		c.report.skip("car numbers", "not a number", 0)
	}
	return max(n, 0)
}
