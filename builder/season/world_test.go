package season_test

import (
	"sync"
	"testing"
	"time"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/season"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/must"
)

// allSeasons are the seasons since 1950, read once for all tests.
var allSeasons struct {
	once    sync.Once
	archive *season.Archive
	err     error
}

func whole(t testing.TB) *season.Archive {
	t.Helper()
	must.Long(t, "reads all seasons")
	path := sourcetest.Path(t, sourcetest.F1DB2026)
	allSeasons.once.Do(func() { allSeasons.archive, _, allSeasons.err = f1db.Import(path, f1db.Options{}) })
	if allSeasons.err != nil {
		t.Fatal(allSeasons.err)
	}
	return allSeasons.archive
}

func embedded(t testing.TB) *season.Archive {
	t.Helper()
	return archivetest.Embedded(t)
}

// between returns an archive of some of the seasons of another.
func between(t testing.TB, a *season.Archive, from, to int) *season.Archive {
	t.Helper()
	f := a.Facts()
	var seasons []season.Season
	for _, s := range f.Seasons {
		if s.Year >= from && s.Year <= to {
			seasons = append(seasons, s)
		}
	}
	f.Seasons = seasons
	return must.Get(season.New(f))(t)
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return t
}

// part is a part of a round that becomes known at one instant. The test has the rules a second time,
// written from the documentation.
type part struct {
	name  string
	at    time.Time
	known func(*season.Round) bool
	clear func(*season.Round)
}

func parts(r *season.Round) []part {
	start := r.Start
	if start.IsZero() {
		start = time.Date(r.Date.Year(), r.Date.Month(), r.Date.Day(), 13, 0, 0, 0, time.UTC)
	}
	ends := make(map[season.SessionKind]time.Time)
	ends[season.Qualifying] = time.Date(r.Date.Year(), r.Date.Month(), r.Date.Day()-1, 14, 0, 0, 0, time.UTC)
	for _, s := range r.Sessions {
		switch {
		case !s.Start.IsZero():
			ends[s.Kind] = s.Start.Add(time.Hour)
		case s.Kind == season.Qualifying:
			ends[s.Kind] = s.Date.Add(14 * time.Hour)
		}
	}
	qualified := ends[season.Qualifying]
	if _, ok := ends[season.Sprint]; !ok && r.Sprint && r.Date.Year() < 2024 { // sprints followed qualifying
		ends[season.Sprint] = qualified.Add(time.Hour)
	}
	end := func(kind season.SessionKind) time.Time {
		if t, ok := ends[kind]; ok {
			return t
		}
		return qualified
	}
	grid := qualified
	if t := end(season.Sprint); t.After(grid) {
		grid = t
	}
	before := func(t time.Time) time.Time {
		if t.After(grid) {
			return grid
		}
		return t
	}
	finish := start.Add(2 * time.Hour)
	for _, row := range r.Results {
		if row.Position == 1 {
			if row.Time > 0 {
				finish = start.Add(row.Time)
			}
			break
		}
	}
	practice := func(i int, kind season.SessionKind) part {
		return part{
			string(kind), before(end(kind)),
			func(r *season.Round) bool { return r.Practice[i] != nil },
			func(r *season.Round) { r.Practice[i] = nil },
		}
	}
	return []part{
		practice(0, season.Practice1), practice(1, season.Practice2),
		practice(2, season.Practice3), practice(3, season.Practice4),
		{
			"sprint qualifying", before(end(season.SprintQualifying)),
			func(r *season.Round) bool { return r.SprintQualifying != nil || r.SprintGrid != nil },
			func(r *season.Round) { r.SprintQualifying, r.SprintGrid = nil, nil },
		},
		{
			"sprint", end(season.Sprint),
			func(r *season.Round) bool { return r.SprintResults != nil },
			func(r *season.Round) { r.SprintResults = nil },
		},
		{
			"qualifying", qualified,
			func(r *season.Round) bool { return r.Qualifying != nil },
			func(r *season.Round) { r.Qualifying = nil },
		},
		{
			"grid", grid,
			func(r *season.Round) bool { return r.Entries != nil || r.Grid != nil },
			func(r *season.Round) { r.Entries, r.Grid = nil, nil },
		},
		{
			"result", finish,
			func(r *season.Round) bool {
				return r.Results != nil || r.FastestLaps != nil || r.PitStops != nil || r.DriverStandings != nil || r.TeamStandings != nil
			},
			func(r *season.Round) {
				r.Results, r.FastestLaps, r.PitStops, r.DriverStandings, r.TeamStandings = nil, nil, nil, nil, nil
			},
		},
	}
}

// boundaries are the instants at which a fact of the season becomes known, in no order.
func boundaries(s *season.Season) []time.Time {
	list := []time.Time{time.Date(s.Year-1, 10, 1, 0, 0, 0, 0, time.UTC)}
	for i := range s.Rounds {
		for _, p := range parts(&s.Rounds[i]) {
			list = append(list, p.at)
		}
	}
	return list
}
