package predict

import "gridcast/builder/season"

// lineages finds the first team of a lineage, by which a car is known through all changes of
// name. It remembers what it found.
type lineages struct {
	view  *season.View
	roots map[teamYear]season.TeamID
}

type teamYear struct {
	team season.TeamID
	year int
}

func newLineages(v *season.View) lineages {
	return lineages{v, map[teamYear]season.TeamID{}}
}

// root returns the first team of the lineage that the team belonged to in that year.
func (l lineages) root(team season.TeamID, year int) season.TeamID {
	key := teamYear{team, year}
	if root, ok := l.roots[key]; ok {
		return root
	}
	root := l.view.Root(team, year)
	l.roots[key] = root
	return root
}
