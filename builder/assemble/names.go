package assemble

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"gridcast/builder/season"
)

// adoptNames takes over the names of drivers, teams, engines and circuits. The first document that
// names a thing and may replace names wins. Names pass no gate, because they are cosmetic.
func adoptNames(f *season.Facts, documents []Document) {
	f.Drivers, f.Teams, f.Engines, f.Circuits = maps.Clone(f.Drivers), maps.Clone(f.Teams), maps.Clone(f.Engines), maps.Clone(f.Circuits)
	for _, d := range slices.Backward(documents) {
		may := kinds[d.Kind]
		if !may.namesNew {
			continue
		}
		for id, driver := range d.Facts.Drivers {
			if named, ok := f.Drivers[id]; !ok || may.namesAll {
				driver.HeadshotURL = cmp.Or(driver.HeadshotURL, named.HeadshotURL)
				f.Drivers[id] = driver
			}
		}
		adopt(f.Teams, d.Facts.Teams, may.namesAll)
		adopt(f.Engines, d.Facts.Engines, may.namesAll)
		adopt(f.Circuits, d.Facts.Circuits, may.namesAll)
		for _, l := range d.Facts.Lineages {
			adoptLineage(f, l)
		}
	}
}

func adopt[K comparable, V any](into, from map[K]V, all bool) {
	for id, thing := range from {
		if _, named := into[id]; !named || all {
			into[id] = thing
		}
	}
}

// addEngines gives rows without an engine the engine of their team in the season. Without it they
// would belong to another constructor, because a constructor is a team and an engine.
func addEngines(r *season.Round, s *season.Season) {
	engines := make(map[season.TeamID]season.EngineID)
	for i := range s.Rounds {
		for _, row := range s.Rounds[i].Entries {
			if row.Engine != "" {
				engines[row.Team] = row.Engine
			}
		}
	}
	for _, rows := range []*[]season.Result{&r.Results, &r.SprintResults} {
		*rows = slices.Clone(*rows)
		for i, row := range *rows {
			(*rows)[i].Engine = cmp.Or(row.Engine, engines[row.Team])
		}
	}
	r.TeamStandings = slices.Clone(r.TeamStandings)
	for i, row := range r.TeamStandings {
		r.TeamStandings[i].Engine = cmp.Or(row.Engine, engines[row.Team])
	}
	r.Entries = slices.Clone(r.Entries)
	for i, row := range r.Entries {
		r.Entries[i].Engine = cmp.Or(row.Engine, engines[row.Team])
	}
}

// adoptLineage joins a lineage with the one that has a link to the same team from the same year.
func adoptLineage(f *season.Facts, l season.Lineage) {
	f.Lineages = slices.Clone(f.Lineages)
	for i := range f.Lineages {
		links := slices.Clone(f.Lineages[i].Links)
		if !slices.ContainsFunc(links, func(a season.Link) bool {
			return slices.ContainsFunc(l.Links, func(b season.Link) bool { return a.Team == b.Team && a.From == b.From })
		}) {
			continue
		}
		for _, link := range l.Links {
			at := slices.IndexFunc(links, func(a season.Link) bool { return a.Team == link.Team && a.From == link.From })
			if at < 0 {
				links = append(links, link)
			} else {
				links[at] = link
			}
		}
		slices.SortFunc(links, func(a, b season.Link) int {
			return cmp.Or(cmp.Compare(a.From, b.From), strings.Compare(string(a.Team), string(b.Team)))
		})
		f.Lineages[i].Links = links
		return
	}
	f.Lineages = append(f.Lineages, l)
}

// prune removes seasons without rounds, and drivers without a row.
func prune(f *season.Facts) {
	f.Seasons = slices.DeleteFunc(f.Seasons, func(s season.Season) bool { return len(s.Rounds) == 0 })
	named := make(map[season.DriverID]bool, len(f.Drivers))
	for i := range f.Seasons {
		for j := range f.Seasons[i].Rounds {
			drivers(&f.Seasons[i].Rounds[j], func(id season.DriverID) { named[id] = true })
		}
	}
	maps.DeleteFunc(f.Drivers, func(id season.DriverID, _ season.Driver) bool { return !named[id] })
}

// headshots keeps the headshots of the archive's drivers, under their current identifiers.
func (a *assembly) headshots() {
	out := &a.out
	wanted := out.Facts.Headshots
	if a.Headshots != nil {
		wanted = *a.Headshots
	}
	current := make(map[season.DriverID]season.DriverID)
	maps.Copy(current, a.Aliases)
	for _, r := range out.Renames {
		current[r.From] = r.To
	}
	out.Facts.Headshots = season.Headshots{Template: wanted.Template}
	for _, driver := range wanted.Drivers {
		for to, renamed := current[driver]; renamed && to != driver; to, renamed = current[driver] {
			driver = to
		}
		if _, ok := out.Facts.Drivers[driver]; ok && !slices.Contains(out.Facts.Headshots.Drivers, driver) {
			out.Facts.Headshots.Drivers = append(out.Facts.Headshots.Drivers, driver)
		}
	}
}
