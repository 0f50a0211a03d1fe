package almanac

import (
	"slices"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// Entered returns the view with the results that only the ledger has: those that a person entered, of rounds whose result
// no source has. Each counts from its verification on, and a correction from its own. Where the archive lacks them too, the
// view gets the entries and the grid of such a result, and the tables of both championships after it. Everything that
// predicts or simulates reads such a view, so that a race entered by hand counts as one from a source.
func Entered(v *season.View, s *ledger.Fold) *season.View {
	entered := *v
	entered.Seasons = slices.Clone(v.Seasons)
	for i := range v.Seasons {
		var rounds []season.Round // a copy, once a round changes
		for j := range v.Seasons[i].Rounds {
			facts := &v.Seasons[i].Rounds[j]
			if facts.Finished() {
				continue
			}
			key, _ := s.Key(v.Seasons[i].Year, facts.GrandPrix)
			record, _ := s.Record(key) // empty for a round without a key
			n := len(record.Revisions)
			for n > 0 && record.Revisions[n-1].At.After(v.At) {
				n--
			}
			if n == 0 {
				continue
			}
			if rounds == nil {
				rounds = slices.Clone(v.Seasons[i].Rounds)
			}
			enter(&rounds[j], &record.Revisions[n-1].Classification)
		}
		if rounds == nil {
			continue
		}
		entered.Seasons[i].Rounds = rounds
		tabulate(&entered, &entered.Seasons[i], s)
	}
	return &entered
}

// enter puts a verified result into a round of which the archive has none.
func enter(r *season.Round, c *ledger.Classification) {
	r.Results = resultsOf(c.Rows)
	if len(r.SprintResults) == 0 && c.Sprint != nil {
		r.SprintResults = resultsOf(c.Sprint)
	}
	if len(r.Grid) == 0 {
		for _, row := range c.Rows {
			if row.Grid > 0 {
				r.Grid = append(r.Grid, season.GridSlot{Driver: row.Driver, Team: row.Team, Position: row.Grid})
			}
		}
		season.SortGrid(r.Grid)
	}
	if len(r.Entries) == 0 {
		for _, row := range c.Rows {
			r.Entries = append(r.Entries, season.Entry{Driver: row.Driver, Team: row.Team, Engine: row.Engine, Number: row.Number})
		}
	}
}

// resultsOf returns verified rows in the form of the archive.
func resultsOf(rows []ledger.Row) []season.Result {
	results := make([]season.Result, len(rows))
	for i, row := range rows {
		if results[i] = (season.Result{
			Driver: row.Driver, Team: row.Team, Engine: row.Engine, Position: row.Position, Outcome: row.Status, Grid: row.Grid,
			Points: row.Points, Reason: row.Reason, Shared: row.Shared, Number: row.Number,
		}); row.Laps != nil {
			results[i].Laps = *row.Laps
		}
		if row.Position == 0 && row.Status == "" {
			results[i].Outcome = season.NotClassified
		}
	}
	winner := slices.IndexFunc(rows, func(row ledger.Row) bool { return row.TimeMS > 0 })
	for i, row := range rows {
		if winner >= 0 && row.TimeMS+row.GapMS > 0 {
			results[i].Time = time.Duration(rows[winner].TimeMS+row.GapMS) * time.Millisecond
		}
	}
	return results
}

// tabulate gives the rounds of a season that have a result and no tables the published ones.
func tabulate(v *season.View, facts *season.Season, s *ledger.Fold) {
	if facts.Year < firstSums {
		return // not all results count
	}
	rounds := join(v, s, facts)
	for _, r := range rounds {
		if r.Result = nil; r.Facts.Finished() {
			r.Result = &ledger.Classification{Rows: Rows(r.Facts.Results), Sprint: r.SourceSprint()}
		}
	}
	sofar := counted(facts.Year, rounds)
	decided := decisionsOf(facts.Year, rounds, s)
	decided = slices.DeleteFunc(decided, func(d ChampionshipDecision) bool { return d.At.After(v.At) })
	for i, r := range sofar {
		round, _ := facts.Round(r.Facts.GrandPrix)
		if len(round.DriverStandings) == 0 {
			for _, row := range driverStandings(v, facts, rounds, sofar[:i+1], decided) {
				round.DriverStandings = append(round.DriverStandings, season.DriverStanding{Driver: row.Driver.ID, Position: row.Position, Points: row.Points})
			}
		}
		if len(round.TeamStandings) == 0 {
			for _, row := range constructorStandings(v, facts, rounds, sofar[:i+1], decided) {
				round.TeamStandings = append(round.TeamStandings, season.TeamStanding{Team: row.Team.ID, Engine: row.Maker, Position: row.Position, Points: row.Points})
			}
		}
	}
}
