package assemble

import (
	"maps"
	"slices"

	"gridcast/builder/season"
)

// Alias says that what sources call From is what the archive calls To. Drivers have theirs in the
// ledger, which speaks of them.
type Alias struct {
	Kind AliasKind `json:"kind"`
	From string    `json:"from"`
	To   string    `json:"to"`
}

// AliasKind is what an alias is of.
type AliasKind string

// The kinds of aliases.
const (
	DriverAlias  AliasKind = "driver"
	TeamAlias    AliasKind = "team"
	CircuitAlias AliasKind = "circuit"
	RoundAlias   AliasKind = "round" // a Grand Prix
)

// apply has the facts of a document, of which the seasons and their lists of rounds are its own, call
// everything as the archive does. A round keeps its name where the season has the other one too.
func (a Alias) apply(f *season.Facts) {
	switch a.Kind {
	case CircuitAlias:
		f.Circuits = maps.Clone(f.Circuits)
		delete(f.Circuits, season.CircuitID(a.From))
	case TeamAlias:
		f.Teams = maps.Clone(f.Teams)
		delete(f.Teams, season.TeamID(a.From))
		f.Lineages = slices.DeleteFunc(slices.Clone(f.Lineages), func(l season.Lineage) bool {
			return slices.ContainsFunc(l.Links, func(link season.Link) bool { return string(link.Team) == a.From })
		})
	}
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
				if _, taken := s.Round(season.GrandPrixID(a.To)); !taken {
					r.GrandPrix = season.GrandPrixID(a.To)
				}
			case a.Kind == TeamAlias:
				renameTeam(r, season.TeamID(a.From), season.TeamID(a.To))
			}
		}
	}
}

// renameTeam gives a team another identifier in all rows. Lists that name the old one are copied
// before they are written.
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
