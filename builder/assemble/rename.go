package assemble

import (
	"maps"
	"slices"
	"time"

	"gridcast/builder/season"
)

// renames finds drivers with a new identifier throughout a document. In all rounds that both
// have, the rows of the new identifier are those of the old one: same session, team and place. A
// partial match is no rename; an operator can enter an alias for it.
func renames(current *season.Facts, d *Document) []Rename {
	gone, come := make(map[season.DriverID]rowsOf), make(map[season.DriverID]rowsOf)
	for i := range d.Facts.Seasons {
		theirSeason := &d.Facts.Seasons[i]
		ourSeason, ok := current.Season(theirSeason.Year)
		if !ok {
			continue
		}
		for j := range theirSeason.Rounds {
			theirs := &theirSeason.Rounds[j]
			ours, ok := ourSeason.Round(theirs.GrandPrix)
			if !ok {
				continue
			}
			collectRows(gone, theirSeason.Year, ours, theirs)
			collectRows(come, theirSeason.Year, theirs, ours)
		}
	}
	present := make(map[season.DriverID]bool)
	for i := range current.Seasons {
		for j := range current.Seasons[i].Rounds {
			drivers(&current.Seasons[i].Rounds[j], present)
		}
	}
	var found []Rename
	for _, from := range slices.Sorted(maps.Keys(gone)) {
		if _, ok := d.Facts.Drivers[from]; ok {
			continue // the document still has the old identifier
		}
		for _, to := range slices.Sorted(maps.Keys(come)) {
			if present[to] {
				continue // the new identifier already belongs to another driver
			}
			if len(gone[from]) >= minRenamedRows && maps.Equal(gone[from], come[to]) {
				found = append(found, Rename{d.Source, d.Revision, from, to})
			}
		}
	}
	return found
}

// minRenamedRows is the number of rows that must agree. A single row might be another driver in the same car.
const minRenamedRows = 2

// rowsOf holds the rows of a driver without the driver's name.
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

// collectRows collects the rows of a round by driver. It skips sessions that the other round does not have.
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

// renameDriver gives a driver another identifier in all rows. It copies a list before it writes to it.
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
			if r := &f.Seasons[i].Rounds[j]; season.Rename(r, from, to) {
				mergeStandings(r)
			}
		}
	}
}

// drivers adds the driver of every row of a round to a set.
func drivers(r *season.Round, into map[season.DriverID]bool) {
	r.References(func(driver season.DriverID, _ season.TeamID, _ season.EngineID, _ time.Time) {
		if driver != "" {
			into[driver] = true
		}
	})
}
