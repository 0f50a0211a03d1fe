package ingest

import (
	"gridcast/builder/almanac"
	"gridcast/builder/assemble"
	"gridcast/builder/stewards"
)

// DriversEntry is the entry of a list of drivers: the entries, the qualifying or the grid of a round.
// If the roster does not know the entries of the round, the drivers of the list are assumed to be
// the entries until a source names them.
func DriversEntry(r *almanac.Round, block assemble.Block, roster *stewards.Roster, list *stewards.List) ManualEntry {
	part := PartialRound{GrandPrix: r.Facts.GrandPrix}
	switch block {
	case assemble.Entries:
		part.Entries = list.Entries()
	case assemble.Qualifying:
		part.Qualifying = list.Qualifying()
	case assemble.Grid:
		part.Grid = list.Grid()
	}
	id := assemble.BlockID{Year: r.Year, GrandPrix: r.Facts.GrandPrix, Block: block}
	entry := ManualEntry{Statements: []Statement{{BlockID: id, Entered: part}}}
	for _, driver := range list.New {
		entry.Drivers = with(entry.Drivers, driver.ID, driver)
	}
	for _, team := range list.NewTeams {
		entry.Teams = with(entry.Teams, team.ID, team)
	}
	if block != assemble.Entries && !roster.Listed {
		id.Block = assemble.Entries
		entry.Statements = append(entry.Statements, Statement{BlockID: id, Entered: PartialRound{GrandPrix: r.Facts.GrandPrix, Entries: list.Entries()}, Assumed: true})
	}
	return entry
}
