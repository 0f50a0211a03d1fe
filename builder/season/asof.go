package season

import (
	"slices"
	"time"
)

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
		Drivers:  a.index.drivers.asOf(t),
		Teams:    a.index.teams.asOf(t),
		Engines:  a.index.engines.asOf(t),
		Circuits: a.index.circuits.asOf(t),
		Aliases:  a.facts.Aliases,
	}}
	for _, driver := range a.facts.Headshots.Drivers {
		if _, ok := v.Drivers[driver]; ok {
			v.Headshots.Drivers = append(v.Headshots.Drivers, driver)
		}
	}
	if len(v.Headshots.Drivers) == 0 == (len(a.facts.Headshots.Drivers) == 0) { // an empty list stands for every driver
		v.Headshots.Template = a.facts.Headshots.Template
	}
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
