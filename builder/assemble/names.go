package assemble

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
			adoptLineage(f, l, d.Facts.Teams)
		}
	}
}

// judgeCodes keeps the former name of a driver if the new one changes a code that the archive has given,
// unless a person has accepted that. named are the drivers before the documents named them.
func (a *assembly) judgeCodes(named map[season.DriverID]season.Driver) {
	facts := &a.out.Facts
	renamed := make(map[season.DriverID]bool)
	for id, before := range named {
		if after := facts.Drivers[id]; after.Abbreviation != before.Abbreviation || after.LastName != before.LastName {
			renamed[id] = true
		}
	}
	if len(renamed) == 0 {
		return
	}
	was, is := season.View{Facts: *facts}, season.View{Facts: *facts}
	was.Drivers = named
	changes := make(map[season.DriverID][]CodeChange)
	for i := range facts.Seasons {
		year := facts.Seasons[i].Year
		before, after := was.Codes(year), is.Codes(year)
		for id := range renamed {
			if before[id] != "" && before[id] != after[id] {
				changes[id] = append(changes[id], CodeChange{Year: year, Driver: id, From: before[id], To: after[id]})
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(changes)) {
		list, before, after := changes[id], named[id], facts.Drivers[id]
		last := list[len(list)-1]
		p := Proposal{Year: last.Year, Driver: id, Block: Names, Lines: []Line{
			{"code", last.From, last.To}, {"name", before.Name, after.Name}, {"abbreviation", before.Abbreviation, after.Abbreviation},
		}}
		p.ID = idOf(fmt.Appendf(nil, "%s\n%s\n%s\n%s\n%s\n", CodeGate, id, after.Name, after.LastName, after.Abbreviation))
		for _, d := range slices.Backward(a.Documents) {
			if _, ok := d.Facts.Drivers[id]; ok && kinds[d.Kind].namesAll {
				p.Source, p.Revision = d.Source, d.Revision
			}
		}
		if a.Accepted[p.ID] && !a.refusedByLedger(&p) {
			p.Accepted = true
			a.out.Applied = append(a.out.Applied, p)
			for _, change := range list {
				change.Proposal = p.ID
				a.out.Recoded = append(a.out.Recoded, change)
			}
			continue
		}
		seasons := strconv.Itoa(last.Year)
		if len(list) > 1 {
			seasons = fmt.Sprintf("%d seasons, the last %d", len(list), last.Year)
		}
		p.refuse(CodeGate, "the published code %s of %s would become %s in %s", last.From, before.Name, last.To, seasons)
		a.out.Held = append(a.out.Held, p)
		facts.Drivers[id] = before
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

// adoptLineage joins a lineage with the one that has a link to the same team from the same year. Of a team that the document
// names, only the document's links count, because it may have corrected one.
func adoptLineage(f *season.Facts, l season.Lineage, named map[season.TeamID]season.Team) {
	f.Lineages = slices.Clone(f.Lineages)
	for i := range f.Lineages {
		ours := f.Lineages[i].Links
		if !slices.ContainsFunc(ours, func(a season.Link) bool {
			return slices.ContainsFunc(l.Links, func(b season.Link) bool { return a.Team == b.Team && a.From == b.From })
		}) {
			continue
		}
		links := slices.Clone(l.Links)
		for _, link := range ours {
			if _, ok := named[link.Team]; !ok {
				links = append(links, link)
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
			drivers(&f.Seasons[i].Rounds[j], named)
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
	renamed := season.Headshots{Template: wanted.Template}
	for _, driver := range wanted.Drivers {
		for to, renamed := current[driver]; renamed && to != driver; to, renamed = current[driver] {
			driver = to
		}
		if !slices.Contains(renamed.Drivers, driver) {
			renamed.Drivers = append(renamed.Drivers, driver)
		}
	}
	out.Facts.Headshots = renamed.Of(out.Facts.Drivers)
}
