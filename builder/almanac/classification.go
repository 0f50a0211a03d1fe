package almanac

import (
	"cmp"
	"fmt"
	"slices"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// Rows returns the archive's own result in the form of a verified one, without the details: see WithDetails.
func Rows(results []season.Result) []ledger.Row {
	rows := make([]ledger.Row, len(results))
	for i, r := range results {
		rows[i] = ledger.Row{Driver: r.Driver, Team: r.Team, Engine: r.Engine, Position: r.Position, Points: r.Points, Shared: r.Shared}
	}
	return rows
}

// WithDetails returns the rows with their missing details from a source, by driver. A detail that a row has stays.
// Times and gaps come only from rows with the same place in both: after a penalty, the source's belong to
// another classification.
func (r *Round) WithDetails(rows []ledger.Row, source []season.Result) []ledger.Row {
	of := map[season.DriverID][]*season.Result{} // several of a driver with several cars
	for i := range source {
		of[source[i].Driver] = append(of[source[i].Driver], &source[i])
	}
	whole := slices.Clone(rows)
	order := make([]*ledger.Row, len(whole)) // by position, so that the winner comes first
	for i := range whole {
		order[i] = &whole[i]
	}
	slices.SortStableFunc(order, func(a, b *ledger.Row) int { return season.ComparePlaces(a.Position, b.Position) })
	var winner *season.Result
	for _, row := range order {
		var add ledger.Details
		if entry := r.Facts.Entry(row.Driver); entry != nil {
			add.Number = entry.Number
		}
		if known := of[row.Driver]; len(known) > 0 {
			result := known[0]
			of[row.Driver] = known[1:]
			add.Number, add.Grid, add.Reason = cmp.Or(result.Number, add.Number), result.Grid, result.Reason
			// No source has the laps of a driver in another's car, and some lack those of a disqualified one.
			lapsKnown := result.Laps > 0 || !result.Shared && result.Outcome != season.Disqualified
			if lapsKnown {
				add.Laps = &result.Laps
			}
			switch agreed := result.Position == row.Position; {
			case row.Position == 0:
				add.Status = result.Outcome
			case !agreed:
			case row.Position == 1 && winner == nil:
				winner, add.TimeMS = result, result.Time.Milliseconds()
			case winner == nil || winner.Time == 0:
			case result.Time >= winner.Time:
				add.GapMS = (result.Time - winner.Time).Milliseconds()
			case lapsKnown && winner.Laps > result.Laps:
				add.GapLaps = winner.Laps - result.Laps
			}
		}
		d := &row.Details
		d.Number, d.Status, d.Grid, d.Laps = cmp.Or(d.Number, add.Number), cmp.Or(d.Status, add.Status), cmp.Or(d.Grid, add.Grid), cmp.Or(d.Laps, add.Laps)
		d.Reason = cmp.Or(d.Reason, add.Reason)
		if d.TimeMS == 0 && d.GapMS == 0 && d.GapLaps == 0 {
			d.TimeMS, d.GapMS, d.GapLaps = add.TimeMS, add.GapMS, add.GapLaps
		}
	}
	return whole
}

// Podium returns the drivers on the first three places. Of a shared place it returns the first in
// the source's order; it leaves a place without a driver empty.
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

// Pair holds a driver's rows in two classifications.
type Pair struct {
	Driver season.DriverID
	Before *ledger.Row // nil: not in it
	After  *ledger.Row // nil: not in it
}

// Changed reports whether they differ.
func (p Pair) Changed() bool {
	return p.Before == nil || p.After == nil || !p.Before.Same(*p.After)
}

// Points returns the change of the driver's points.
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

// Compare pairs the rows of two classifications: in the order of after, then the rows that only
// before has. It pairs the rows of a driver with several in their order.
//
// Package assemble compares facts instead: any part of a round, as texts by subject, before a judgement.
// Callers of Compare need the rows, because they count points and publish both sides.
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
		if row := &before[i]; slices.Contains(rest[row.Driver], row) {
			pairs = append(pairs, Pair{Driver: row.Driver, Before: row})
		}
	}
	return pairs
}

// PlaceAndPoints describes a driver's row of a classification; nil: the driver is not in it.
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

// TeamPoints is the change of a team's points.
type TeamPoints struct {
	Team   season.TeamID
	Points float64
}

// CompareTeams returns the teams whose points change, the largest gain first.
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
	return slices.ContainsFunc(Compare(before, after), Pair.Changed)
}
