package season

import (
	"fmt"
	"slices"
	"time"
)

// Facts are seasons, and the drivers, teams, engines and circuits of their rows.
type Facts struct {
	Source    string                `json:"source"` // the source of the import, for attribution
	Drivers   map[DriverID]Driver   `json:"drivers"`
	Teams     map[TeamID]Team       `json:"teams"`
	Engines   map[EngineID]Engine   `json:"engines"`
	Circuits  map[CircuitID]Circuit `json:"circuits"`
	Lineages  []Lineage             `json:"lineages"`
	Headshots Headshots             `json:"headshots"`
	// Aliases holds the present identifiers of teams by the ones that they had, because the ledger keeps those.
	Aliases map[TeamID]TeamID `json:"aliases"`
	Seasons []Season          `json:"-"` // by ascending year; each is a separate line of a file
}

// NewFacts returns empty facts to which drivers, teams, engines and circuits can be added.
func NewFacts() Facts {
	return Facts{Drivers: map[DriverID]Driver{}, Teams: map[TeamID]Team{}, Engines: map[EngineID]Engine{}, Circuits: map[CircuitID]Circuit{}}
}

// Archive holds all facts, of the past and of a known future. It is immutable.
type Archive struct {
	facts Facts
	index *index
}

// New returns an archive of the facts, which the caller must not change afterwards. It returns
// the first fault that Validate finds.
func New(facts Facts) (*Archive, error) {
	facts = facts.AssumeHours()
	seen, err := facts.validate()
	if err != nil {
		return nil, fmt.Errorf("make archive: %w", err)
	}
	return &Archive{facts: facts, index: newIndex(&facts, seen)}, nil
}

// Facts returns all facts, also of the future. Use it to store and inspect an archive, and AsOf for
// everything that is published or predicted.
func (a *Archive) Facts() Facts { return a.facts }

// Round returns the round of a Grand Prix in a year.
func (f *Facts) Round(year int, gp GrandPrixID) (*Round, bool) {
	if s, ok := f.Season(year); ok {
		return s.Round(gp)
	}
	return nil, false
}

// Season returns the season of a year.
func (f *Facts) Season(year int) (*Season, bool) {
	for i := len(f.Seasons) - 1; i >= 0; i-- { // callers mostly want a late one
		if f.Seasons[i].Year == year {
			return &f.Seasons[i], true
		}
	}
	return nil, false
}

// View holds the facts that were known at an instant. It has a driver, team, engine or circuit as soon
// as a known fact refers to it.
type View struct {
	At time.Time
	Facts
}

// CalendarKnownAt is the instant at which the calendar of a season is known: 1 October of the year before.
func CalendarKnownAt(year int) time.Time {
	return time.Date(year-1, time.October, 1, 0, 0, 0, 0, time.UTC)
}

// BeginsAt is the first instant of a season's year.
func BeginsAt(year int) time.Time { return time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC) }

// AsOf returns the facts that were known at t, inclusive:
//
//   - the calendar of a season from CalendarKnownAt;
//   - practice, qualifying and sprint from their ends (SessionKnownAt);
//   - entries and grid from GridKnownAt;
//   - result, fastest laps, pit stops and the standings after it from ResultKnownAt. Sprint
//     points join the standings with the race.
//
// A team's colour is known from its first session of that season, a link of a lineage from the first
// race under that name.
func (a *Archive) AsOf(t time.Time) *View {
	v := &View{At: t, Facts: Facts{
		Drivers:  seenBy(t, a.index.seen.drivers, a.facts.Drivers),
		Teams:    seenBy(t, a.index.seen.teams, a.facts.Teams),
		Engines:  seenBy(t, a.index.seen.engines, a.facts.Engines),
		Circuits: seenBy(t, a.index.seen.circuits, a.facts.Circuits),
		Aliases:  a.facts.Aliases,
	}}
	v.Headshots = a.facts.Headshots.Of(v.Drivers)
	v.Seasons = make([]Season, 0, len(a.facts.Seasons))
	for i := range a.facts.Seasons {
		s := &a.facts.Seasons[i]
		switch {
		case t.Before(CalendarKnownAt(s.Year)):
			continue
		case t.Before(a.index.complete[i]):
			v.Seasons = append(v.Seasons, s.asOf(t, a.index.appeared[i]))
		default:
			all := *s
			all.Colours = a.index.colours[i]
			v.Seasons = append(v.Seasons, all)
		}
	}
	for i := range a.facts.Lineages {
		if l := a.facts.Lineages[i].asOf(t, a.index.links[i]); len(l.Links) > 0 {
			v.Lineages = append(v.Lineages, l)
		}
	}
	return v
}

func (s *Season) asOf(t time.Time, appeared map[TeamID]time.Time) Season {
	known := Season{Year: s.Year, Rounds: slices.Clone(s.Rounds)}
	for i := range known.Rounds {
		known.Rounds[i].withhold(t)
	}
	known.Colours = coloursOf(s, appeared, t)
	return known
}

// coloursOf returns the colours of the teams that have appeared in the season by t.
func coloursOf(s *Season, appeared map[TeamID]time.Time, t time.Time) map[TeamID]string {
	var known map[TeamID]string
	for team, colour := range s.Colours {
		if at, ok := appeared[team]; !ok || at.After(t) {
			continue
		}
		if known == nil {
			known = make(map[TeamID]string, len(s.Colours))
		}
		known[team] = colour
	}
	return known
}

// asOf keeps the links known at t. The end of a link is known in the year after it.
func (l *Lineage) asOf(t time.Time, known []time.Time) Lineage {
	var out Lineage
	for i, link := range l.Links {
		if known[i].IsZero() || known[i].After(t) {
			continue
		}
		if link.To >= t.UTC().Year() {
			link.To = 0
		}
		out.Links = append(out.Links, link)
	}
	return out
}

// index holds the instants at which facts without a date became known. It saves AsOf a search through
// every row.
type index struct {
	seen     firstSeen
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
		seen: newFirstSeen(), complete: make([]time.Time, n), appeared: make([]map[TeamID]time.Time, n), colours: make([]map[TeamID]string, n),
	}
	_ = sideBySide(n, func(i int) error { // no call returns an error
		s := &f.Seasons[i]
		x.complete[i] = CalendarKnownAt(s.Year)
		for j := range s.Rounds {
			x.complete[i] = Later(x.complete[i], s.Rounds[j].knownAt())
		}
		x.appeared[i] = inSeason[i].teams
		x.colours[i] = coloursOf(s, x.appeared[i], x.complete[i])
		return nil
	})
	for i := range n {
		noteAll(x.seen.drivers, inSeason[i].drivers)
		noteAll(x.seen.teams, inSeason[i].teams)
		noteAll(x.seen.engines, inSeason[i].engines)
		noteAll(x.seen.circuits, inSeason[i].circuits)
	}
	for i := range f.Lineages {
		x.links = append(x.links, linksKnown(f, &f.Lineages[i], x.appeared))
	}
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

// seenBy returns the things that a row refers to by t.
func seenBy[K ~string, V any](t time.Time, seen map[K]time.Time, things map[K]V) map[K]V {
	known := make(map[K]V, len(seen))
	for key, at := range seen {
		if !at.After(t) {
			known[key] = things[key]
		}
	}
	return known
}
