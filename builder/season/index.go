package season

import (
	"maps"
	"sync"
	"time"
)

// index holds the instants at which facts without a date became known. It saves AsOf a search through
// every row.
type index struct {
	drivers  registry[DriverID, Driver]
	teams    registry[TeamID, Team]
	engines  registry[EngineID, Engine]
	circuits registry[CircuitID, Circuit]
	complete []time.Time            // by season: the instant from which all of it is known
	appeared []map[TeamID]time.Time // by season: first appearance of a team in it
	colours  []map[TeamID]string    // by season: the colours of all its teams
	starts   []map[DriverID]int     // by season: race starts in the seasons before it
	links    [][]time.Time          // by lineage and link; zero if the team never raced under the name
	digests  []func() Digest        // by season: of all of it, computed when first asked for
}

// firstSeen holds the first instant at which a row refers to each thing.
type firstSeen struct {
	drivers  map[DriverID]time.Time
	teams    map[TeamID]time.Time
	engines  map[EngineID]time.Time
	circuits map[CircuitID]time.Time
}

func newIndex(f *Facts) *index {
	seen := firstSeen{
		drivers:  make(map[DriverID]time.Time),
		teams:    make(map[TeamID]time.Time),
		engines:  make(map[EngineID]time.Time),
		circuits: make(map[CircuitID]time.Time),
	}
	x := &index{}
	starts := map[DriverID]int{}
	for i := range f.Seasons {
		s := &f.Seasons[i]
		x.starts = append(x.starts, maps.Clone(starts))
		inSeason := firstSeen{seen.drivers, make(map[TeamID]time.Time), seen.engines, seen.circuits}
		complete := CalendarKnownAt(s.Year)
		for j := range s.Rounds {
			r := &s.Rounds[j]
			for _, row := range r.Results {
				starts[row.Driver] += 0 // adds the driver, because countStarts counts only drivers that have an entry
			}
			r.countStarts(starts)
			note(seen.circuits, r.Circuit, CalendarKnownAt(s.Year))
			inSeason.round(r)
			complete = later(complete, later(r.GridKnownAt(), r.ResultKnownAt()))
		}
		for team, at := range inSeason.teams {
			note(seen.teams, team, at)
		}
		x.complete = append(x.complete, complete)
		x.appeared = append(x.appeared, inSeason.teams)
		x.colours = append(x.colours, coloursOf(s, inSeason.teams, complete))
		whole := Season{Year: s.Year, Rounds: s.Rounds, Colours: x.colours[i]}
		x.digests = append(x.digests, sync.OnceValue(func() Digest { return whole.digest(f) }))
	}
	for i := range f.Lineages {
		x.links = append(x.links, linksKnown(f, &f.Lineages[i], x.appeared))
	}
	x.drivers.fill(seen.drivers, f.Drivers)
	x.teams.fill(seen.teams, f.Teams)
	x.engines.fill(seen.engines, f.Engines)
	x.circuits.fill(seen.circuits, f.Circuits)
	return x
}

// linksKnown returns for each link the first appearance of its team in one of its years.
func linksKnown(f *Facts, l *Lineage, appeared []map[TeamID]time.Time) []time.Time {
	known := make([]time.Time, len(l.Links))
	for i, link := range l.Links {
		for j := range f.Seasons {
			year := f.Seasons[j].Year
			if year < link.From || link.To != 0 && year > link.To {
				continue
			}
			if at, ok := appeared[j][link.Team]; ok {
				known[i] = at
				break
			}
		}
	}
	return known
}

// round notes all things that the rows of a round refer to, at the instants at which the rows are known.
func (s firstSeen) round(r *Round) {
	for i, kind := range practices {
		for _, row := range r.Practice[i] {
			s.row(row.Driver, row.Team, "", r.SessionKnownAt(kind))
		}
	}
	for _, row := range r.SprintQualifying {
		s.row(row.Driver, row.Team, "", r.SessionKnownAt(SprintQualifying))
	}
	for _, row := range r.SprintGrid {
		s.row(row.Driver, row.Team, "", r.SessionKnownAt(SprintQualifying))
	}
	for _, row := range r.SprintResults {
		s.row(row.Driver, row.Team, row.Engine, r.SprintKnownAt())
	}
	for _, row := range r.Qualifying {
		s.row(row.Driver, row.Team, "", r.QualifyingKnownAt())
	}
	for _, row := range r.Entries {
		s.row(row.Driver, row.Team, row.Engine, r.GridKnownAt())
	}
	for _, row := range r.Grid {
		s.row(row.Driver, row.Team, "", r.GridKnownAt())
	}
	result := r.ResultKnownAt()
	for _, row := range r.Results {
		s.row(row.Driver, row.Team, row.Engine, result)
	}
	for _, row := range r.DriverStandings {
		note(s.drivers, row.Driver, result)
	}
	for _, row := range r.TeamStandings {
		note(s.teams, row.Team, result)
		note(s.engines, row.Engine, result)
	}
}

func (s firstSeen) row(driver DriverID, team TeamID, engine EngineID, at time.Time) {
	note(s.drivers, driver, at)
	note(s.teams, team, at)
	note(s.engines, engine, at)
}

// note keeps the earliest instant. It ignores an empty key, such as the engine of a row without one.
func note[K ~string](first map[K]time.Time, key K, at time.Time) {
	if key == "" {
		return
	}
	if known, ok := first[key]; !ok || at.Before(known) {
		first[key] = at
	}
}
