package f1db

import (
	"cmp"
	"slices"

	"gridcast/builder/season"
)

// lineages converts the chronologies of teams. A release repeats a chronology for every team in it.
// The archive keeps one, with the teams that take part in its seasons.
func (c *converter) lineages() {
	byParent := make(map[season.TeamID][]link)
	for _, l := range c.rel.chronology {
		if _, ok := c.facts.Teams[l.Team]; ok {
			byParent[l.Parent] = append(byParent[l.Parent], l)
		}
	}
	for _, links := range byParent {
		slices.SortFunc(links, func(a, b link) int {
			return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Order, b.Order))
		})
		var lineage season.Lineage
		for _, l := range links {
			lineage.Links = append(lineage.Links, season.Link{Team: l.Team, From: l.From, To: l.To})
		}
		same := func(other season.Lineage) bool { return slices.Equal(other.Links, lineage.Links) }
		if len(links) > 1 && !slices.ContainsFunc(c.facts.Lineages, same) {
			c.facts.Lineages = append(c.facts.Lineages, lineage)
		}
	}
	slices.SortFunc(c.facts.Lineages, func(a, b season.Lineage) int {
		return slices.CompareFunc(a.Links, b.Links, func(x, y season.Link) int {
			return cmp.Or(cmp.Compare(x.From, y.From), cmp.Compare(x.Team, y.Team), cmp.Compare(x.To, y.To))
		})
	})
	c.imported[chronologyTable] = 0
	for _, l := range c.facts.Lineages {
		c.imported[chronologyTable] += len(l.Links)
	}
}
