package assemble

import (
	"maps"
	"slices"

	"gridcast/builder/season"
)

// renames finds the drivers whom a document calls by another identifier throughout: in every round
// that both know, each row that was the old one's is now the new one's, in the same session, for the
// same team and in the same place, and neither stands where the other does. Anything less is no
// rename, and waits for a person to say so.
func renames(current *season.Facts, d *Document) []Rename {
	gone, come := make(map[season.DriverID]rowsOf), make(map[season.DriverID]rowsOf)
	for i := range d.Facts.Seasons {
		said := &d.Facts.Seasons[i]
		known := seasonOf(current, said.Year, false)
		if known == nil {
			continue
		}
		for j := range said.Rounds {
			is := &said.Rounds[j]
			was, ok := known.Round(is.GrandPrix)
			if !ok {
				continue
			}
			collectRows(gone, said.Year, was, is)
			collectRows(come, said.Year, is, was)
		}
	}
	known := make(map[season.DriverID]bool)
	for i := range current.Seasons {
		for j := range current.Seasons[i].Rounds {
			drivers(&current.Seasons[i].Rounds[j], func(id season.DriverID) { known[id] = true })
		}
	}
	var found []Rename
	for _, from := range slices.Sorted(maps.Keys(gone)) {
		if _, ok := d.Facts.Drivers[from]; ok {
			continue // the document still knows them
		}
		for _, to := range slices.Sorted(maps.Keys(come)) {
			if known[to] {
				continue // they are somebody already
			}
			if len(gone[from]) >= minRenamedRows && maps.Equal(gone[from], come[to]) {
				found = append(found, Rename{d.Source, d.Revision, from, to})
			}
		}
	}
	return found
}

// minRenamedRows is how many rows must agree: one alone might be another driver in the same car.
const minRenamedRows = 2

// rowsOf are rows of a driver: where they stand, and what they say but for who it is.
type rowsOf map[rowPlace]rowValue

type rowPlace struct {
	year    int
	gp      season.GrandPrixID
	session string
}

type rowValue struct {
	team     season.TeamID
	position int
}

// collectRows files the rows of a round, of sessions that the other knows too, by driver.
func collectRows(into map[season.DriverID]rowsOf, year int, r, other *season.Round) {
	add := func(session string, driver season.DriverID, team season.TeamID, position int) {
		if into[driver] == nil {
			into[driver] = make(rowsOf)
		}
		into[driver][rowPlace{year, r.GrandPrix, session}] = rowValue{team, position}
	}
	if len(other.Results) > 0 {
		for _, row := range r.Results {
			add("race", row.Driver, row.Team, row.Position)
		}
	}
	if len(other.Qualifying) > 0 {
		for _, row := range r.Qualifying {
			add("qualifying", row.Driver, row.Team, row.Position)
		}
	}
	if len(other.Grid) > 0 {
		for _, row := range r.Grid {
			add("grid", row.Driver, row.Team, row.Position)
		}
	}
	if len(other.SprintResults) > 0 {
		for _, row := range r.SprintResults {
			add("sprint", row.Driver, row.Team, row.Position)
		}
	}
}

// renameDriver gives a driver another identifier in all rows. Lists that name the old one are
// copied before they are written.
func renameDriver(f *season.Facts, from, to season.DriverID) {
	if d, ok := f.Drivers[from]; ok {
		f.Drivers = maps.Clone(f.Drivers)
		delete(f.Drivers, from)
		if _, ok := f.Drivers[to]; !ok {
			d.ID = to
			f.Drivers[to] = d
		}
	}
	for i := range f.Seasons {
		for j := range f.Seasons[i].Rounds {
			r := &f.Seasons[i].Rounds[j]
			rename(&r.Entries, from, to, func(row *season.Entry) *season.DriverID { return &row.Driver })
			for k := range r.Practice {
				rename(&r.Practice[k], from, to, func(row *season.TimedLap) *season.DriverID { return &row.Driver })
			}
			rename(&r.Qualifying, from, to, func(row *season.QualifyingRow) *season.DriverID { return &row.Driver })
			rename(&r.SprintQualifying, from, to, func(row *season.QualifyingRow) *season.DriverID { return &row.Driver })
			rename(&r.SprintGrid, from, to, func(row *season.GridSlot) *season.DriverID { return &row.Driver })
			rename(&r.SprintResults, from, to, func(row *season.Result) *season.DriverID { return &row.Driver })
			rename(&r.Grid, from, to, func(row *season.GridSlot) *season.DriverID { return &row.Driver })
			rename(&r.Results, from, to, func(row *season.Result) *season.DriverID { return &row.Driver })
			rename(&r.FastestLaps, from, to, func(row *season.FastestLap) *season.DriverID { return &row.Driver })
			rename(&r.PitStops, from, to, func(row *season.PitStop) *season.DriverID { return &row.Driver })
			rename(&r.DriverStandings, from, to, func(row *season.DriverStanding) *season.DriverID { return &row.Driver })
		}
	}
}

func rename[T any, ID ~string](rows *[]T, from, to ID, id func(*T) *ID) {
	copied := false
	for i := range *rows {
		if *id(&(*rows)[i]) != from {
			continue
		}
		if !copied {
			*rows, copied = slices.Clone(*rows), true
		}
		*id(&(*rows)[i]) = to
	}
}

// drivers calls visit for every driver whom a row of the round names, as often as rows do.
func drivers(r *season.Round, visit func(season.DriverID)) {
	for _, row := range r.Entries {
		visit(row.Driver)
	}
	for _, laps := range r.Practice {
		for _, row := range laps {
			visit(row.Driver)
		}
	}
	for _, rows := range [][]season.QualifyingRow{r.Qualifying, r.SprintQualifying} {
		for _, row := range rows {
			visit(row.Driver)
		}
	}
	for _, rows := range [][]season.GridSlot{r.Grid, r.SprintGrid} {
		for _, row := range rows {
			visit(row.Driver)
		}
	}
	for _, rows := range [][]season.Result{r.Results, r.SprintResults} {
		for _, row := range rows {
			visit(row.Driver)
		}
	}
	for _, row := range r.FastestLaps {
		visit(row.Driver)
	}
	for _, row := range r.PitStops {
		visit(row.Driver)
	}
	for _, row := range r.DriverStandings {
		visit(row.Driver)
	}
}
