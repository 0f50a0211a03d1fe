package assemble

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"gridcast/builder/season"
)

// Alias translates an identifier of the sources into an identifier of the archive. Aliases of drivers
// are in the ledger, because its events name drivers.
type Alias struct {
	Kind AliasKind `json:"kind"`
	From string    `json:"from"`
	To   string    `json:"to"`
}

// AliasKind is the kind of thing that an alias names.
type AliasKind string

// The kinds of aliases.
const (
	DriverAlias  AliasKind = "driver"
	TeamAlias    AliasKind = "team"
	CircuitAlias AliasKind = "circuit"
	EngineAlias  AliasKind = "engine"
	RoundAlias   AliasKind = "round" // a Grand Prix
)

// apply translates the rounds and colours of a document. It writes to the document's seasons and lists
// of rounds. A round keeps its name if the season already has a round of the new name.
func (a Alias) apply(f *season.Facts) {
	for i := range f.Seasons {
		s := &f.Seasons[i]
		if colour, ok := s.Colours[season.TeamID(a.From)]; ok && a.Kind == TeamAlias {
			s.Colours = maps.Clone(s.Colours)
			delete(s.Colours, season.TeamID(a.From))
			s.Colours[season.TeamID(a.To)] = cmp.Or(s.Colours[season.TeamID(a.To)], colour)
		}
		for j := range s.Rounds {
			r := &s.Rounds[j]
			switch {
			case a.Kind == CircuitAlias && string(r.Circuit) == a.From:
				r.Circuit = season.CircuitID(a.To)
			case a.Kind == RoundAlias && string(r.GrandPrix) == a.From:
				if _, exists := s.Round(season.GrandPrixID(a.To)); !exists {
					r.GrandPrix = season.GrandPrixID(a.To)
				}
			case a.Kind == EngineAlias && season.Rename(r, season.EngineID(a.From), season.EngineID(a.To)),
				a.Kind == TeamAlias && season.Rename(r, season.TeamID(a.From), season.TeamID(a.To)):
				mergeStandings(r)
			}
		}
	}
}

// aliasSheets returns the sheets of a document with the identifiers that its facts have after all aliases and renames.
func (a *assembly) aliasSheets(d *Document) []season.Sheet {
	sheets := slices.Clone(d.Sheets)
	for i := range sheets {
		s := &sheets[i]
		s.Rows = slices.Clone(s.Rows)
		for _, alias := range a.Named { // one after the other, as in the facts
			_, kept := d.Facts.Round(s.Year, s.GrandPrix)
			if alias.Kind == RoundAlias && string(s.GrandPrix) == alias.From && !kept {
				s.GrandPrix = season.GrandPrixID(alias.To)
			}
			for j := range s.Rows {
				switch row := &s.Rows[j]; {
				case alias.Kind == TeamAlias && string(row.Team) == alias.From:
					row.Team = season.TeamID(alias.To)
				case alias.Kind == EngineAlias && string(row.Engine) == alias.From:
					row.Engine = season.EngineID(alias.To)
				}
			}
		}
		for j := range s.Rows {
			row := &s.Rows[j]
			row.Driver = cmp.Or(a.Aliases[row.Driver], row.Driver)
			for _, r := range a.out.Renames {
				if row.Driver == r.From {
					row.Driver = r.To
				}
			}
		}
	}
	return sheets
}

// addAlias records that a team has another identifier from now on.
func addAlias(f *season.Facts, from, to season.TeamID) {
	aliases := maps.Clone(f.Aliases)
	if aliases == nil {
		aliases = make(map[season.TeamID]season.TeamID)
	}
	for earlier, current := range aliases {
		if current == from {
			aliases[earlier] = to
		}
	}
	aliases[from] = to
	delete(aliases, to)
	f.Aliases = aliases
}

// mergeStandings adds the rows of one competitor in the standings together, which had two names until now.
func mergeStandings(r *season.Round) {
	r.DriverStandings = merged(r.DriverStandings, func(a, b *season.DriverStanding) bool { return a.Driver == b.Driver },
		func(s *season.DriverStanding) (*int, *float64) { return &s.Position, &s.Points })
	r.TeamStandings = merged(r.TeamStandings, func(a, b *season.TeamStanding) bool { return a.Team == b.Team && a.Engine == b.Engine },
		func(s *season.TeamStanding) (*int, *float64) { return &s.Position, &s.Points })
}

func merged[T any](rows []T, same func(a, b *T) bool, of func(*T) (position *int, points *float64)) []T {
	var whole []T
	for i := range rows {
		position, points := of(&rows[i])
		at := slices.IndexFunc(whole, func(other T) bool {
			placed, _ := of(&other)
			return same(&other, &rows[i]) && (*placed > 0) == (*position > 0) // a team that was excluded has a row of each sort
		})
		if at < 0 {
			whole = append(whole, rows[i])
			continue
		}
		_, sum := of(&whole[at])
		*sum += *points
	}
	if len(whole) == len(rows) {
		return rows
	}
	slices.SortStableFunc(whole, func(a, b T) int {
		x, p := of(&a)
		y, q := of(&b)
		return cmp.Or(cmp.Compare(min(*y, 1), min(*x, 1)), cmp.Compare(*q, *p))
	})
	for i := range whole {
		if position, _ := of(&whole[i]); *position > 0 {
			*position = i + 1
		}
	}
	return whole
}

// renames finds drivers with a new identifier throughout a document. In all rounds that both
// have, the rows of the new identifier are those of the old one: same session, team and place. A
// partial match is no rename; an operator can enter an alias for it.
func renames(current *season.Facts, d *Document) (found []Rename) {
	present, came := make(map[season.DriverID]bool), make(map[season.DriverID]bool)
	for i := range current.Seasons {
		for j := range current.Seasons[i].Rounds {
			drivers(&current.Seasons[i].Rounds[j], present)
		}
	}
	gone := maps.Clone(present)
	maps.DeleteFunc(gone, func(id season.DriverID, _ bool) bool { _, ok := d.Facts.Drivers[id]; return ok })
	if len(gone) == 0 {
		return nil // the document still has the old identifiers
	}
	was, is := make(map[season.DriverID][]outing), make(map[season.DriverID][]outing)
	for i := range d.Facts.Seasons {
		s := &d.Facts.Seasons[i]
		for j := range s.Rounds {
			theirs := &s.Rounds[j]
			if ours, ok := current.Round(s.Year, theirs.GrandPrix); ok {
				drivers(theirs, came)
				outings(was, s.Year, ours, theirs)
				outings(is, s.Year, theirs, ours)
			}
		}
	}
	maps.DeleteFunc(came, func(id season.DriverID, _ bool) bool { return present[id] }) // it already belongs to another driver
	for _, from := range slices.Sorted(maps.Keys(gone)) {
		for _, to := range slices.Sorted(maps.Keys(came)) {
			if len(was[from]) >= minRenamedRows && slices.Equal(was[from], is[to]) {
				found = append(found, Rename{d.Source, d.Revision, from, to})
			}
		}
	}
	return found
}

// minRenamedRows is the number of rows that must agree. A single row might be another driver in the same car.
const minRenamedRows = 2

// outing is a row of a driver without the driver's name.
type outing struct {
	year     int
	gp       season.GrandPrixID
	session  string
	team     season.TeamID
	position int
}

// outings collects the rows of a round by driver. It skips sessions that the other round does not have.
func outings(into map[season.DriverID][]outing, year int, r, other *season.Round) {
	add := func(session string, others int, driver season.DriverID, team season.TeamID, position int) {
		if others > 0 {
			into[driver] = append(into[driver], outing{year, r.GrandPrix, session, team, position})
		}
	}
	for _, row := range r.Results {
		add("race", len(other.Results), row.Driver, row.Team, row.Position)
	}
	for _, row := range r.SprintResults {
		add("sprint", len(other.SprintResults), row.Driver, row.Team, row.Position)
	}
	for _, row := range r.Qualifying {
		add("qualifying", len(other.Qualifying), row.Driver, row.Team, row.Position)
	}
	for _, row := range r.Grid {
		add("grid", len(other.Grid), row.Driver, row.Team, row.Position)
	}
}

// renameDriver gives a driver another identifier in all rows, and a name under it. It copies a list before it writes to it.
func renameDriver(f *season.Facts, from, to season.DriverID) {
	_, named := f.Drivers[to]
	if d, ok := f.Drivers[from]; ok && !named {
		f.Drivers = maps.Clone(f.Drivers)
		d.ID = to
		f.Drivers[to] = d
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
		if driver != "" && !into[driver] { // most rows name a driver that the set has
			into[driver] = true
		}
	})
}
