package almanac

import (
	"cmp"
	"fmt"
	"slices"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// Rows returns the archive's own result in the form a verified one has.
func Rows(results []season.Result) []ledger.Row {
	rows := make([]ledger.Row, len(results))
	for i, r := range results {
		rows[i] = ledger.Row{Driver: r.Driver, Team: r.Team, Engine: r.Engine, Position: r.Position, Points: r.Points, Shared: r.Shared}
	}
	return rows
}

// Podium returns the drivers on the first three places; where a place was shared the first in
// the source's order, and nobody where nobody holds it.
func Podium(rows []ledger.Row) season.Podium {
	var podium season.Podium
	for _, row := range rows {
		if row.Position >= 1 && row.Position <= 3 && podium[row.Position-1] == "" {
			podium[row.Position-1] = row.Driver
		}
	}
	return podium
}

// Picked returns the podium that a pick predicts.
func Picked(p *ledger.FrozenPick) season.Podium { return season.Podium{p.P1, p.P2, p.P3} }

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

// Points is by how much the driver's points change.
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

// PlaceAndPoints says what a classification has for a driver; nil: they are not in it.
func PlaceAndPoints(row *ledger.Row) string {
	switch {
	case row == nil:
		return "not in it"
	case row.Position == 0:
		return fmt.Sprintf("no place, %g points", row.Points)
	default:
		return fmt.Sprintf("place %d, %g points", row.Position, row.Points)
	}
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
