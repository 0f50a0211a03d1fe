package assemble

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gridcast/builder/names"
	"gridcast/builder/season"
)

// judgeIdentity refuses a block with an identifier that the archive does not have and that may be another name of a known
// driver, team, engine or circuit: one that is absent from the same table and shares a lasting attribute. It also
// refuses a table after qualifying in which a car has another driver. A person merges the two, or accepts the block.
func (j *judgement) judgeIdentity(p *Proposal, after *season.Round) {
	if j.may.archiveNames {
		return
	}
	refuse := func(kind AliasKind, id, known, shared string) {
		option := ""
		if kind != DriverAlias {
			option = fmt.Sprintf(" --kind %s", kind)
		}
		p.refuse(IdentityGate, "%s %s is new and has the %s of %s, which is absent here: it may be %s (gridcast source alias %s %s%s --reason TEXT merges them, gridcast source accept %s --reason TEXT takes it as another)",
			kind, id, shared, known, known, id, known, option, p.ID)
	}
	if p.Block == Calendar {
		if known, shared := j.circuitLike(after); known != "" {
			refuse(CircuitAlias, string(after.Circuit), string(known), shared)
		}
		return
	}
	seen := make(map[string]bool) // of this block
	first := func(kind AliasKind, id string) bool {
		before := seen[string(kind)+id]
		seen[string(kind)+id] = true
		return !before
	}
	for _, t := range tablesOf(p.Block, after) {
		rows := rowsIn(&t.round)
		for _, driver := range slices.Sorted(maps.Keys(rows.drivers)) {
			known, shared := j.driverLike(driver, t.section, rows)
			switch {
			case known == "" || !first(DriverAlias, string(driver)):
			case j.known().drivers[driver] != "":
				p.refuse(IdentityGate, "%s has the %s of %s; that driver was in qualifying and is absent here: gridcast source accept %s --reason TEXT if the car changed its driver",
					driver, shared, known, p.ID)
			default:
				refuse(DriverAlias, string(driver), string(known), shared)
			}
		}
		for _, team := range slices.Sorted(maps.Keys(rows.teams)) {
			if known, shared := j.teamLike(team, rows); known != "" && first(TeamAlias, string(team)) {
				refuse(TeamAlias, string(team), string(known), shared)
			}
			engine := rows.teams[team]
			if was := j.thingsFrom(j.season.Year).teams[team]; engine != "" && was != "" && was != engine && !j.known().engines[engine] && !rows.engines[was] && first(EngineAlias, string(engine)) {
				refuse(EngineAlias, string(engine), string(was), "team "+string(team))
			}
		}
	}
}

// tableSection is a round with one table.
type tableSection struct {
	section season.Section
	round   season.Round
}

// sectionOf holds the sections that have another name than their field.
var sectionOf = map[string]season.Section{
	"results": season.ResultSection, "sprint results": season.Section(season.Sprint), "sprint qualifying": season.Section(season.SprintQualifying),
}

// tablesOf returns the tables of a block.
func tablesOf(b Block, r *season.Round) (tables []tableSection) {
	if b == Practice {
		for i, laps := range r.Practice {
			tables = append(tables, tableSection{season.Section(fmt.Sprintf("practice-%d", i+1)), season.Round{Practice: [4][]season.TimedLap{laps}}})
		}
		return tables
	}
	for _, f := range fields {
		if f.block == b {
			t := tableSection{section: cmp.Or(sectionOf[f.name], season.Section(f.name))}
			f.copy(&t.round, r)
			tables = append(tables, t)
		}
	}
	return tables
}

// things are the drivers with their team, the teams with their engine, the engines and the circuits of rounds.
type things struct {
	drivers  map[season.DriverID]season.TeamID
	teams    map[season.TeamID]season.EngineID
	engines  map[season.EngineID]bool
	circuits map[season.CircuitID]bool
	numbers  map[season.DriverID]int
}

// unknownTeam marks a driver in a table without teams.
const unknownTeam season.TeamID = "?"

func rowsIn(rounds ...*season.Round) *things {
	t := &things{
		make(map[season.DriverID]season.TeamID), make(map[season.TeamID]season.EngineID), make(map[season.EngineID]bool),
		make(map[season.CircuitID]bool), make(map[season.DriverID]int),
	}
	for _, r := range rounds {
		t.circuits[r.Circuit] = true
		r.References(func(driver season.DriverID, team season.TeamID, engine season.EngineID, _ time.Time) {
			switch {
			case driver != "" && team != "":
				t.drivers[driver] = team
			case driver != "" && t.drivers[driver] == "":
				t.drivers[driver] = unknownTeam
			}
			t.teams[team] = cmp.Or(engine, t.teams[team])
			t.engines[engine] = true
		})
		for _, e := range r.Entries {
			t.numbers[e.Driver] = e.Number
		}
	}
	return t
}

// known returns all things with a row in the facts in use, and the ones of blocks that a person has accepted.
func (j *judgement) known() *things { return j.thingsFrom(0) }

// active returns those of this season and the last one.
func (j *judgement) active() *things { return j.thingsFrom(j.season.Year - 1) }

func (j *judgement) thingsFrom(year int) *things {
	if t := j.things[year]; t != nil {
		return t
	}
	var rounds []*season.Round
	for i := range j.out.Facts.Seasons {
		for k := range j.out.Facts.Seasons[i].Rounds {
			if j.out.Facts.Seasons[i].Year >= year {
				rounds = append(rounds, &j.out.Facts.Seasons[i].Rounds[k])
			}
		}
	}
	for i := range j.document.Facts.Seasons {
		s := &j.document.Facts.Seasons[i]
		for k := range s.Rounds {
			for _, b := range blocks {
				if s.Year >= year && len(j.Accepted) > 0 && j.Accepted[identity(s.Year, s.Rounds[k].GrandPrix, b, &s.Rounds[k])] {
					part := Only(b, &s.Rounds[k])
					rounds = append(rounds, &part)
				}
			}
		}
	}
	j.things[year] = rowsIn(rounds...)
	return j.things[year]
}

// driverLike returns the known driver that a driver of a table may be, and their shared attribute.
func (j *judgement) driverLike(driver season.DriverID, section season.Section, rows *things) (season.DriverID, string) {
	number, team := j.car(driver, section)
	after := slices.Contains([]season.Section{season.GridSection, season.ResultSection, season.Section(season.Sprint), season.SprintGridSection}, section)
	_, seen := j.known().drivers[driver]
	for _, row := range j.sheet(season.Section(season.Qualifying)).Rows {
		if _, here := rows.drivers[row.Driver]; after && !here && number != 0 && row.Number == number && row.Team == team && !slices.ContainsFunc(j.theirs.Qualifying, func(q season.QualifyingRow) bool { return q.Driver == driver }) {
			return row.Driver, fmt.Sprintf("car %d of %s", number, team)
		}
	}
	if seen {
		return "", ""
	}
	ours, theirs := j.out.Facts.Drivers, j.document.Facts.Drivers
	name, born := theirs[driver].Name, j.document.Born
	for _, known := range slices.Sorted(maps.Keys(j.known().drivers)) {
		if _, here := rows.drivers[known]; here {
			continue
		}
		active, shared := j.active(), ""
		_, races := active.drivers[known]
		sameName := alike(name, ours[known].Name)
		switch {
		case name != "" && names.Slug(name) == names.Slug(ours[known].Name), races && sameName:
			shared = "name"
		case !races:
		case number != 0 && active.numbers[known] == number && active.drivers[known] == team:
			shared = fmt.Sprintf("car %d of %s", number, team)
		case born[driver] != "" && born[driver] == born[known]:
			shared = "birth date"
		case born[driver] != "" && born[known] != "": // another one
		case theirs[driver].Abbreviation != "" && theirs[driver].Abbreviation == ours[known].Abbreviation:
			shared = "code"
		}
		if shared != "" && !j.replaced(func(t *things) bool { return t.drivers[known] != "" }, func(t *things) bool { return t.drivers[driver] != "" }, false) {
			return known, shared
		}
	}
	return "", ""
}

// car returns the number and the team of a driver in a table of the document, else in its entries of the round.
func (j *judgement) car(driver season.DriverID, section season.Section) (int, season.TeamID) {
	for _, row := range j.sheet(section).Rows {
		if row.Driver == driver && row.Number != 0 {
			return row.Number, row.Team
		}
	}
	if e := j.theirs.Entry(driver); e != nil {
		return e.Number, e.Team
	}
	return 0, ""
}

// teamLike returns the known team that a team of a table may be, and their shared attribute.
func (j *judgement) teamLike(team season.TeamID, rows *things) (season.TeamID, string) {
	if _, ok := j.known().teams[team]; ok {
		return "", ""
	}
	drivers, now, from := 0, j.thingsFrom(j.season.Year), make(map[season.TeamID]int)
	for driver, of := range rows.drivers {
		if of == team {
			drivers++
			from[now.drivers[driver]]++
		}
	}
	for _, known := range slices.Sorted(maps.Keys(j.active().teams)) {
		if _, here := rows.teams[known]; here {
			continue
		}
		_, races := now.teams[known]
		switch {
		case alike(j.document.Facts.Teams[team].Name, j.out.Facts.Teams[known].Name):
			return known, "name"
		case races && from[known] > 0 && 2*from[known] >= drivers:
			return known, "drivers"
		case races && drivers == 0 && rows.teams[team] != "" && rows.teams[team] == now.teams[known]:
			return known, "engine"
		}
	}
	return "", ""
}

// circuitLike returns the known circuit that the circuit of a round may be, and their shared attribute.
func (j *judgement) circuitLike(after *season.Round) (season.CircuitID, string) {
	circuits := j.known().circuits
	if after.Circuit == "" || circuits[after.Circuit] {
		return "", ""
	}
	ours, theirs := j.out.Facts.Circuits, j.document.Facts.Circuits[after.Circuit]
	for _, id := range slices.Sorted(maps.Keys(circuits)) {
		known, shared := ours[id], ""
		switch {
		case names.Slug(theirs.Name) == names.Slug(known.Name):
			shared = "name"
		case theirs.Locality != "" && names.Slug(theirs.Locality) == names.Slug(known.Locality) && theirs.Country == known.Country:
			shared = "place"
		case id == j.ours.Circuit && theirs.Country != "" && theirs.Country == known.Country:
			shared = "round"
		}
		if shared != "" && !j.replaced(func(t *things) bool { return t.circuits[id] }, func(t *things) bool { return t.circuits[after.Circuit] }, true) {
			return id, shared
		}
	}
	return "", ""
}

// replaced reports whether the document has a new identifier wherever the archive has the known one, and the known one
// nowhere: the source has renamed it throughout. Without earlier, a row before the document's seasons is a reason to
// doubt it, because it would stay behind under the former identifier.
func (j *judgement) replaced(known, added func(*things) bool, earlier bool) bool {
	found := false
	for i := range j.Current.Seasons {
		ours := &j.Current.Seasons[i]
		theirs, covered := j.document.Facts.Season(ours.Year)
		for k := range ours.Rounds {
			if !known(rowsIn(&ours.Rounds[k])) {
				continue
			}
			if !covered {
				if earlier {
					continue
				}
				return false
			}
			r, ok := theirs.Round(ours.Rounds[k].GrandPrix)
			if found = true; !ok || known(rowsIn(r)) || !added(rowsIn(r)) {
				return false
			}
		}
	}
	return found
}

// alike reports whether all words of one name are among those of the other, as in Kimi Antonelli and Andrea Kimi Antonelli.
func alike(a, b string) bool {
	x, y := strings.Split(names.Slug(a), "-"), strings.Split(names.Slug(b), "-")
	if len(x) > len(y) {
		x, y = y, x
	}
	return x[0] != "" && !slices.ContainsFunc(x, func(word string) bool { return !slices.Contains(y, word) })
}
