package season

import (
	"slices"
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
	links    [][]time.Time          // by lineage and link; zero if the team never raced under the name
}

// firstSeen holds the first instant at which a row refers to each thing.
type firstSeen struct {
	drivers  map[DriverID]time.Time
	teams    map[TeamID]time.Time
	engines  map[EngineID]time.Time
	circuits map[CircuitID]time.Time
}

func newFirstSeen() firstSeen {
	return firstSeen{map[DriverID]time.Time{}, map[TeamID]time.Time{}, map[EngineID]time.Time{}, map[CircuitID]time.Time{}}
}

// newIndex reads the seasons, of which validate has seen the references, side by side: a command that reads needs little
// more than the archive.
func newIndex(f *Facts, inSeason []firstSeen) *index {
	n := len(f.Seasons)
	x := &index{
		complete: make([]time.Time, n), appeared: make([]map[TeamID]time.Time, n), colours: make([]map[TeamID]string, n),
	}
	_ = sideBySide(n, func(i int) error { // no call returns an error
		s := &f.Seasons[i]
		x.complete[i] = CalendarKnownAt(s.Year)
		for j := range s.Rounds {
			r := &s.Rounds[j]
			x.complete[i] = Later(x.complete[i], Later(r.GridKnownAt(), r.ResultKnownAt()))
		}
		x.appeared[i] = inSeason[i].teams
		x.colours[i] = coloursOf(s, x.appeared[i], x.complete[i])
		return nil
	})
	seen := newFirstSeen()
	for i := range n {
		noteAll(seen.drivers, inSeason[i].drivers)
		noteAll(seen.teams, inSeason[i].teams)
		noteAll(seen.engines, inSeason[i].engines)
		noteAll(seen.circuits, inSeason[i].circuits)
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

func (s *Season) firstSeen() firstSeen {
	seen := newFirstSeen()
	for i := range s.Rounds {
		note(seen.circuits, s.Rounds[i].Circuit, CalendarKnownAt(s.Year))
		s.Rounds[i].References(func(driver DriverID, team TeamID, engine EngineID, at time.Time) {
			note(seen.drivers, driver, at)
			note(seen.teams, team, at)
			note(seen.engines, engine, at)
		})
	}
	return seen
}

func noteAll[K ~string](first, more map[K]time.Time) {
	for key, at := range more {
		note(first, key, at)
	}
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

// registry lists things by the instant at which they became known.
type registry[K ~string, V any] []dated[K, V]

// dated is a thing, its key, and when it became known.
type dated[K ~string, V any] struct {
	at    time.Time
	key   K
	value V
}

func (r *registry[K, V]) fill(seen map[K]time.Time, things map[K]V) {
	for key, at := range seen {
		*r = append(*r, dated[K, V]{at, key, things[key]})
	}
	slices.SortFunc(*r, func(a, b dated[K, V]) int { return a.at.Compare(b.at) })
}

func (r registry[K, V]) asOf(t time.Time) map[K]V {
	n, _ := slices.BinarySearchFunc(r, t, func(d dated[K, V], t time.Time) int {
		if d.at.After(t) {
			return 1
		}
		return -1
	})
	known := make(map[K]V, n)
	for i := range r[:n] {
		known[r[i].key] = r[i].value
	}
	return known
}
