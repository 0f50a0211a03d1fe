package almanac

import (
	"slices"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// withTeams returns the revisions of a result with the present identifiers of teams.
func withTeams(revisions []ledger.Verification, aliases map[season.TeamID]season.TeamID) []ledger.Verification {
	if len(aliases) == 0 || len(revisions) == 0 {
		return revisions
	}
	renamed := slices.Clone(revisions)
	for i := range renamed {
		for _, rows := range []*[]ledger.Row{&renamed[i].Rows, &renamed[i].Sprint} {
			*rows = slices.Clone(*rows)
			for j := range *rows {
				if current, ok := aliases[(*rows)[j].Team]; ok {
					(*rows)[j].Team = current
				}
			}
		}
	}
	return renamed
}
