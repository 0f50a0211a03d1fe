package assemble

import (
	"maps"

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
			s.Colours[season.TeamID(a.To)] = colour
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
			case a.Kind == TeamAlias:
				renameTeam(r, season.TeamID(a.From), season.TeamID(a.To))
			}
		}
	}
}

// renameTeam gives a team another identifier in all rows. It copies a list before it writes to it.
func renameTeam(r *season.Round, from, to season.TeamID) {
	rename(&r.Entries, from, to, func(row *season.Entry) *season.TeamID { return &row.Team })
	for k := range r.Practice {
		rename(&r.Practice[k], from, to, func(row *season.TimedLap) *season.TeamID { return &row.Team })
	}
	rename(&r.Qualifying, from, to, func(row *season.QualifyingRow) *season.TeamID { return &row.Team })
	rename(&r.SprintQualifying, from, to, func(row *season.QualifyingRow) *season.TeamID { return &row.Team })
	rename(&r.SprintGrid, from, to, func(row *season.GridSlot) *season.TeamID { return &row.Team })
	rename(&r.SprintResults, from, to, func(row *season.Result) *season.TeamID { return &row.Team })
	rename(&r.Grid, from, to, func(row *season.GridSlot) *season.TeamID { return &row.Team })
	rename(&r.Results, from, to, func(row *season.Result) *season.TeamID { return &row.Team })
	rename(&r.TeamStandings, from, to, func(row *season.TeamStanding) *season.TeamID { return &row.Team })
}
