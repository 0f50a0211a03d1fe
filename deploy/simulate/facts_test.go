package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/deploy/must"
)

// begin is the first instant of the simulated week, in race time.
var begin = time.Date(2024, 5, 13, 0, 0, 0, 0, time.UTC)

// weekLength is the simulated time. The races are held on its second, fourth and sixth day.
const weekLength = 7 * 24 * time.Hour

// field are the six drivers.
var field = []season.DriverID{"max-verstappen", "sergio-perez", "lando-norris", "oscar-piastri", "charles-leclerc", "carlos-sainz-jr"}

// small is the season of all seeds, made once.
var small struct {
	once    sync.Once
	truth   *season.Archive // three rounds of 2024 within a week, the last with a sprint, and one of 2023
	opening archive.Stored  // the archive of the beginning: the calendar of 2024 and no session
}

func makeSmall(t testing.TB) {
	t.Helper()
	facts := archivetest.Seasons(t, 2023, 2024)
	maps.DeleteFunc(facts.Drivers, func(id season.DriverID, _ season.Driver) bool { return !slices.Contains(field, id) })
	days := map[season.GrandPrixID]int{"emilia-romagna": 1, "monaco": 3, "austria": 5}
	old, now := &facts.Seasons[0], &facts.Seasons[1]
	old.Rounds = slices.Clone(old.Rounds[:1])
	for i := range old.Rounds {
		old.Rounds[i] = shrink(old.Rounds[i])
	}
	now.Rounds = slices.DeleteFunc(now.Rounds, func(r season.Round) bool { _, ok := days[r.GrandPrix]; return !ok })
	for i := range now.Rounds {
		r := shrink(now.Rounds[i])
		day := begin.AddDate(0, 0, days[r.GrandPrix])
		shift := day.Sub(r.Date)
		r.Number, r.Date, r.Start, r.Sessions = i+1, day, r.Start.Add(shift), slices.Clone(r.Sessions)
		for j := range r.Sessions {
			s := &r.Sessions[j]
			s.Date = s.Date.Add(shift)
			if !s.Start.IsZero() {
				s.Start = s.Start.Add(shift)
			}
		}
		now.Rounds[i] = r
	}
	small.truth = must.Get(season.New(facts))(t)
	early := facts
	early.Seasons = slices.Clone(facts.Seasons)
	early.Seasons[1].Rounds = slices.Clone(now.Rounds)
	for i := range now.Rounds {
		early.Seasons[1].Rounds[i] = archivetest.Scheduled(&now.Rounds[i])
	}
	small.opening = archivetest.Stored(t, early)
}

// shrink returns a round with the six drivers alone, placed anew.
func shrink(r season.Round) season.Round {
	keep := func(d season.DriverID) bool { return slices.Contains(field, d) }
	r.Entries = kept(r.Entries, func(e season.Entry) bool { return keep(e.Driver) })
	for i := range r.Practice {
		r.Practice[i] = kept(r.Practice[i], func(l season.TimedLap) bool { return keep(l.Driver) })
	}
	for _, rows := range []*[]season.QualifyingRow{&r.Qualifying, &r.SprintQualifying} {
		*rows = kept(*rows, func(q season.QualifyingRow) bool { return keep(q.Driver) })
		for i := range *rows {
			(*rows)[i].Position = i + 1
		}
	}
	grids := map[*[]season.GridSlot]map[season.DriverID]int{}
	for _, slots := range []*[]season.GridSlot{&r.Grid, &r.SprintGrid} {
		*slots = kept(*slots, func(g season.GridSlot) bool { return keep(g.Driver) })
		grids[slots] = map[season.DriverID]int{}
		for i := range *slots {
			(*slots)[i].Position, (*slots)[i].Penalty, (*slots)[i].Back = i+1, 0, false
			grids[slots][(*slots)[i].Driver] = i + 1
		}
	}
	r.Results = classified(kept(r.Results, func(x season.Result) bool { return keep(x.Driver) }), grids[&r.Grid], season.Scale(2024, false))
	r.SprintResults = classified(kept(r.SprintResults, func(x season.Result) bool { return keep(x.Driver) }), grids[&r.SprintGrid], season.Scale(2024, true))
	r.FastestLaps = kept(r.FastestLaps, func(l season.FastestLap) bool { return keep(l.Driver) })
	r.PitStops = kept(r.PitStops, func(s season.PitStop) bool { return keep(s.Driver) })
	r.DriverStandings, r.TeamStandings = nil, nil
	return r
}

func kept[T any](rows []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(rows), func(row T) bool { return !keep(row) })
}

// classified places rows in their order.
func classified(rows []season.Result, grid map[season.DriverID]int, scale []float64) []season.Result {
	place := 0
	for i := range rows {
		r := &rows[i]
		r.Grid, r.Points = grid[r.Driver], 0
		if r.Position > 0 {
			r.Points = scale[place]
			place++
			r.Position = place
		}
	}
	return rows
}

// mutation changes the facts of a source for a while.
type mutation struct {
	name        string
	from, until time.Time
	change      func(*season.Season)
}

// swapped exchanges the drivers of the first two of a result, as a late penalty does.
func swapped(round int) func(*season.Season) {
	return func(s *season.Season) {
		if rows := s.Rounds[round].Results; len(rows) > 1 {
			rows = slices.Clone(rows)
			a, b := &rows[0], &rows[1]
			a.Driver, b.Driver, a.Team, b.Team, a.Engine, b.Engine, a.Number, b.Number, a.Grid, b.Grid = b.Driver, a.Driver, b.Team, a.Team, b.Engine, a.Engine, b.Number, a.Number, b.Grid, a.Grid
			s.Rounds[round].Results = rows
		}
	}
}

// mutations are the kinds of mistakes and corrections of a source.
var mutations = map[string]func(round int, by time.Duration) func(*season.Season){
	"first two swapped": func(round int, _ time.Duration) func(*season.Season) { return swapped(round) },
	"points wrong": func(round int, _ time.Duration) func(*season.Season) {
		return func(s *season.Season) {
			if rows := slices.Clone(s.Rounds[round].Results); len(rows) > 0 {
				rows[0].Points = 17
				s.Rounds[round].Results = rows
			}
		}
	},
	"place twice": func(round int, _ time.Duration) func(*season.Season) {
		return func(s *season.Season) {
			if rows := slices.Clone(s.Rounds[round].Results); len(rows) > 1 {
				rows[1].Position = 1
				s.Rounds[round].Results = rows
			}
		}
	},
	"result lost": func(round int, _ time.Duration) func(*season.Season) {
		return func(s *season.Season) { s.Rounds[round].Results = nil }
	},
	"start moved": func(round int, by time.Duration) func(*season.Season) {
		return func(s *season.Season) {
			r := &s.Rounds[round]
			if at := r.Start.Add(by); season.DayOf(at).Equal(r.Date) {
				r.Start = at
			}
		}
	},
	"round lost": func(round int, _ time.Duration) func(*season.Season) {
		return func(s *season.Season) { s.Rounds[round].Number = 0 } // Read leaves it out
	},
	"qualifying swapped": func(round int, _ time.Duration) func(*season.Season) {
		return func(s *season.Season) {
			if rows := slices.Clone(s.Rounds[round].Qualifying); len(rows) > 1 {
				rows[0].Driver, rows[1].Driver, rows[0].Team, rows[1].Team = rows[1].Driver, rows[0].Driver, rows[1].Team, rows[0].Team
				s.Rounds[round].Qualifying = rows
			}
		}
	},
	"unknown driver": func(round int, _ time.Duration) func(*season.Season) {
		return func(s *season.Season) {
			if rows := slices.Clone(s.Rounds[round].Results); len(rows) > 1 {
				rows[1].Driver = "nobody-known"
				s.Rounds[round].Results = rows
			}
		}
	},
}

// upstream is a source of facts that knows each session some time after its end.
type upstream struct {
	w         *world
	name      string
	delay     time.Duration
	mutations []mutation
	bounds    []time.Time // instants at which its facts may change, ascending
	payloads  [][]byte    // by revision
	fault     func() *source.Fault
}

func newUpstream(w *world, name string, delay time.Duration, changes []mutation) *upstream {
	u := &upstream{w: w, name: name, delay: delay, mutations: changes, bounds: []time.Time{begin.AddDate(0, 0, -1)}}
	facts := small.truth.Facts()
	for i := range facts.Seasons[1].Rounds {
		r := &facts.Seasons[1].Rounds[i]
		for _, s := range r.Sessions {
			u.bounds = append(u.bounds, r.SessionKnownAt(s.Kind).Add(delay))
		}
		u.bounds = append(u.bounds, r.GridKnownAt().Add(delay), r.ResultKnownAt().Add(delay))
	}
	for _, m := range changes {
		u.bounds = append(u.bounds, m.from, m.until)
	}
	slices.SortFunc(u.bounds, time.Time.Compare)
	u.bounds = slices.CompactFunc(u.bounds, time.Time.Equal)
	for n := range u.bounds {
		u.payloads = append(u.payloads, must.Get(source.Encode(packed{n}))(w.t))
	}
	return u
}

func (u *upstream) Name() string            { return u.name }
func (u *upstream) Licence() source.Licence { return source.Licence{Name: "CC BY 4.0"} }

// packed is the content of a payload: the revision alone, from which Read makes the facts.
type packed struct{ Revision int }

func (u *upstream) revision(at time.Time) int {
	n, _ := slices.BinarySearchFunc(u.bounds, at.Add(1), time.Time.Compare)
	return n - 1
}

// Fetch implements [source.Upstream].
func (u *upstream) Fetch(ctx context.Context, _ time.Time, _, _ int, known source.Known) (source.Payload, error) {
	if err := u.w.pause(ctx, "source "+u.name); err != nil {
		return source.Payload{}, &source.Fault{Kind: source.Unreachable, Err: err}
	}
	if fault := u.fault(); fault != nil {
		return source.Payload{}, fault
	}
	n := u.revision(u.w.now())
	if source.Sum(u.payloads[n]) == known.SHA256 {
		return source.Payload{NotModified: true}, nil
	}
	return source.Payload{Packed: slices.Clone(u.payloads[n]), Revision: fmt.Sprintf("r%d", n)}, nil
}

// Read implements [source.Upstream].
func (u *upstream) Read(data []byte) (source.Document, error) {
	var p packed
	if err := source.Decode(data, &p); err != nil {
		return source.Document{}, err
	}
	if p.Revision < 0 || p.Revision >= len(u.bounds) {
		return source.Document{}, errors.New("no such revision")
	}
	at := u.bounds[p.Revision]
	facts := small.truth.AsOf(at.Add(-u.delay)).Facts
	// A view knows a driver only once a row names it. The source has all of them.
	all := small.truth.Facts()
	facts.Drivers, facts.Teams, facts.Engines, facts.Circuits = maps.Clone(all.Drivers), maps.Clone(all.Teams), maps.Clone(all.Engines), maps.Clone(all.Circuits)
	facts.Seasons = slices.Clone(facts.Seasons)
	now := &facts.Seasons[1]
	now.Rounds = slices.Clone(now.Rounds)
	for _, m := range u.mutations {
		if !at.Before(m.from) && at.Before(m.until) {
			m.change(now)
		}
	}
	now.Rounds = slices.DeleteFunc(now.Rounds, func(r season.Round) bool { return r.Number == 0 })
	return source.Document{Source: u.name, Revision: fmt.Sprintf("r%d", p.Revision), Committed: at, From: 2023, To: 2025, Facts: facts}, nil
}

// TestSmallSeason: the archive of the simulated seasons has the six drivers in three races, and the opening has none.
func TestSmallSeason(t *testing.T) {
	small.once.Do(func() { makeSmall(t) })
	facts := small.truth.Facts()
	for i := range facts.Seasons[1].Rounds {
		r := &facts.Seasons[1].Rounds[i]
		must.Hold(t, len(r.Results) == len(field) && len(r.Grid) == len(field) && r.Start.After(begin) && r.Start.Before(begin.Add(weekLength)), "%s: %d results, %d on the grid, start %s", r.GrandPrix, len(r.Results), len(r.Grid), r.Start)
	}
	early := small.opening.Archive.Facts()
	must.Hold(t, len(early.Seasons[1].Rounds) == 3 && !early.Seasons[1].Rounds[0].Finished(), "the opening has %d rounds", len(early.Seasons[1].Rounds))
}
