package racecontrol

import (
	"cmp"
	"slices"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// Pair is what two classifications say of one driver.
type Pair struct {
	Driver season.DriverID
	Before *ledger.Row // nil: not in it
	After  *ledger.Row // nil: not in it
}

// Changed says whether they differ.
func (p Pair) Changed() bool {
	return p.Before == nil || p.After == nil || *p.Before != *p.After
}

// Points is by how much his points change.
func (p Pair) Points() float64 {
	var diff float64
	if p.After != nil {
		diff += p.After.Points
	}
	if p.Before != nil {
		diff -= p.Before.Points
	}
	return diff
}

// Compare pairs the rows of two classifications: in the order of after, then those that only
// before has. The rows of a driver who has several are paired in their order.
func Compare(before, after []ledger.Row) []Pair {
	rest := map[season.DriverID][]*ledger.Row{}
	for i := range before {
		rest[before[i].Driver] = append(rest[before[i].Driver], &before[i])
	}
	var pairs []Pair
	for i := range after {
		p := Pair{Driver: after[i].Driver, After: &after[i]}
		if rows := rest[p.Driver]; len(rows) > 0 {
			p.Before, rest[p.Driver] = rows[0], rows[1:]
		}
		pairs = append(pairs, p)
	}
	for i := range before {
		if rows := rest[before[i].Driver]; len(rows) > 0 && rows[0] == &before[i] {
			pairs = append(pairs, Pair{Driver: before[i].Driver, Before: rows[0]})
			rest[before[i].Driver] = rows[1:]
		}
	}
	return pairs
}

// TeamPoints is by how much the points of a team change.
type TeamPoints struct {
	Team   season.TeamID
	Points float64
}

// CompareTeams returns the teams whose points change, who gains most first.
func CompareTeams(before, after []ledger.Row) []TeamPoints {
	points := map[season.TeamID]float64{}
	for _, row := range before {
		points[row.Team] -= row.Points
	}
	for _, row := range after {
		points[row.Team] += row.Points
	}
	var teams []TeamPoints
	for team, diff := range points {
		if diff != 0 {
			teams = append(teams, TeamPoints{team, diff})
		}
	}
	slices.SortFunc(teams, func(a, b TeamPoints) int {
		return cmp.Or(cmp.Compare(b.Points, a.Points), cmp.Compare(a.Team, b.Team))
	})
	return teams
}

func changed(before, after []ledger.Row) bool {
	for _, p := range Compare(before, after) {
		if p.Changed() {
			return true
		}
	}
	return false
}

// Differs says that the source's present classification is not the one that counts.
func (r *Round) Differs() bool {
	source := r.Source()
	return source != nil && r.Result != nil && changed(r.Valid(), source)
}

// PickedFor returns the place for which the frozen pick has the driver, 0 if for none.
func (r *Round) PickedFor(driver season.DriverID) int {
	if r.Pick == nil {
		return 0
	}
	for i, picked := range []season.DriverID{r.Pick.P1, r.Pick.P2, r.Pick.P3} {
		if picked == driver {
			return i + 1
		}
	}
	return 0
}
