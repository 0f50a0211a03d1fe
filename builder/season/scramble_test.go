package season_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"gridcast/builder/season"
	"gridcast/deploy/must"
)

// TestFutureDoesNotShow changes all facts that become known after t, for many t of a season. The view
// at t stays the same, byte for byte.
func TestFutureDoesNotShow(t *testing.T) {
	for _, year := range []int{1951, 1976, 1988, 2003, 2018, 2021, 2023} {
		t.Run(strconv.Itoa(year), func(t *testing.T) {
			a := embedded(t)
			if year < 2007 {
				a = whole(t)
			}
			a = between(t, a, year, year+1) // the calendar of the next season comes in autumn
			f := a.Facts()
			end := a.AsOf(at("2100-01-01T00:00:00Z"))
			instants := boundaries(&f.Seasons[0])
			slices.SortFunc(instants, time.Time.Compare)
			instants = slices.CompactFunc(instants, time.Time.Equal)
			step := 3
			if testing.Short() {
				step = 20
			}
			for i := 0; i < len(instants); i += step {
				for _, now := range []time.Time{instants[i].Add(-time.Second), instants[i]} {
					other := must.Get(season.New(scramble(f, now, rand.New(rand.NewPCG(uint64(year), uint64(i))))))(t)
					if got, want := encoded(t, other.AsOf(now)), encoded(t, a.AsOf(now)); !bytes.Equal(got, want) {
						t.Fatalf("at %s the view depends on later facts:\n%s", now, firstDifference(got, want))
					}
					if reflect.DeepEqual(other.AsOf(end.At), end) {
						t.Fatalf("at %s nothing was scrambled", now)
					}
				}
			}
		})
	}
}

func encoded(t *testing.T, v *season.View) []byte {
	t.Helper()
	data, err := json.Marshal(v) // sorts maps
	must.Do(t, err)
	return data
}

func firstDifference(a, b []byte) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	near := func(x []byte) []byte { return x[max(0, i-200):min(len(x), i+100)] }
	return fmt.Sprintf("%s\n%s", near(a), near(b))
}

// scramble returns a copy of the facts that differs in everything unknown at now. Drivers, teams and
// engines trade places, rows change order, times and points grow.
func scramble(f season.Facts, now time.Time, random *rand.Rand) season.Facts {
	s := scrambler{
		now: now, random: random,
		drivers: exchange(f.Drivers, random), teams: exchange(f.Teams, random), engines: exchange(f.Engines, random),
		seenDrivers: make(map[season.DriverID]bool), seenTeams: make(map[season.TeamID]bool), seenEngines: make(map[season.EngineID]bool),
		seenCircuits: make(map[season.CircuitID]bool),
	}
	out := f
	out.Seasons = nil
	for _, year := range f.Seasons {
		out.Seasons = append(out.Seasons, s.season(year))
	}
	s.things(&out)
	s.lineages(&out)
	return out
}

type scrambler struct {
	now     time.Time
	random  *rand.Rand
	drivers map[season.DriverID]season.DriverID
	teams   map[season.TeamID]season.TeamID
	engines map[season.EngineID]season.EngineID

	seenDrivers  map[season.DriverID]bool
	seenTeams    map[season.TeamID]bool
	seenEngines  map[season.EngineID]bool
	seenCircuits map[season.CircuitID]bool
}

// exchange gives every key the place of another.
func exchange[K ~string, V any](things map[K]V, random *rand.Rand) map[K]K {
	keys := slices.Sorted(maps.Keys(things))
	places := random.Perm(len(keys))
	to := make(map[K]K)
	for i, key := range keys {
		to[key] = keys[places[i]]
	}
	return to
}

func (s *scrambler) season(year season.Season) season.Season {
	out := season.Season{Year: year.Year, Rounds: slices.Clone(year.Rounds), Colours: maps.Clone(year.Colours)}
	calendarKnown := !time.Date(year.Year-1, 10, 1, 0, 0, 0, 0, time.UTC).After(s.now)
	seenHere := make(map[season.TeamID]bool)
	for i := range out.Rounds {
		r := &out.Rounds[i]
		known := *r
		for _, p := range parts(&year.Rounds[i]) {
			if p.at.After(s.now) {
				p.clear(&known)
			}
		}
		s.round(r, &known)
		if !calendarKnown {
			r.Name, r.CourseKm, r.ScheduledLaps, r.Street = r.Name+" of the future", r.CourseKm+1, r.ScheduledLaps+1, !r.Street
			continue
		}
		s.seenCircuits[r.Circuit] = true
		collect(reflect.ValueOf(known), s.seenDrivers, seenHere, s.seenEngines)
	}
	for team := range out.Colours {
		if !calendarKnown || !seenHere[team] {
			out.Colours[team] = fmt.Sprintf("#%06X", s.random.IntN(1<<24))
		}
	}
	for team := range seenHere {
		s.seenTeams[team] = true
	}
	return out
}

// round scrambles every table of the round that is empty in known.
func (s *scrambler) round(r, known *season.Round) {
	all, seen := reflect.ValueOf(r).Elem(), reflect.ValueOf(known).Elem()
	for i := range all.NumField() {
		if all.Type().Field(i).Name == "Sessions" {
			continue // part of the calendar
		}
		switch table := all.Field(i); table.Kind() {
		case reflect.Slice:
			s.table(table, seen.Field(i))
		case reflect.Array: // practice
			for j := range table.Len() {
				s.table(table.Index(j), seen.Field(i).Index(j))
			}
		}
	}
}

func (s *scrambler) table(table, known reflect.Value) {
	if table.IsNil() || !known.IsNil() {
		return
	}
	rows := reflect.MakeSlice(table.Type(), table.Len(), table.Len())
	for to, from := range s.random.Perm(table.Len()) {
		rows.Index(to).Set(table.Index(from))
		s.row(rows.Index(to))
	}
	table.Set(rows)
}

// row changes every field of a row except position and outcome, because rows have already changed
// places. Times only grow, so that a race does not end earlier.
func (s *scrambler) row(row reflect.Value) {
	for i := range row.NumField() {
		field := row.Field(i)
		switch x := field.Interface().(type) {
		case season.DriverID:
			field.SetString(string(s.drivers[x]))
		case season.TeamID:
			field.SetString(string(s.teams[x]))
		case season.EngineID:
			field.SetString(string(s.engines[x]))
		case time.Duration:
			field.SetInt(int64(x)*3 + int64(time.Second))
		case [3]time.Duration:
			field.Set(reflect.ValueOf([3]time.Duration{x[2] + 1, x[0] + 2, x[1] + 3}))
		case float64:
			field.SetFloat(x + 1 + s.random.Float64())
		case string:
			field.SetString(x + "!")
		case int:
			if row.Type().Field(i).Name != "Position" {
				field.SetInt(int64(x + 1 + s.random.IntN(9)))
			}
		}
	}
}

// things renames the things without a known reference.
func (s *scrambler) things(f *season.Facts) {
	f.Drivers, f.Teams = maps.Clone(f.Drivers), maps.Clone(f.Teams)
	f.Engines, f.Circuits = maps.Clone(f.Engines), maps.Clone(f.Circuits)
	for id, d := range f.Drivers {
		if !s.seenDrivers[id] {
			f.Drivers[id] = season.Driver{ID: id, Name: d.Name + "!", Abbreviation: "ZZZ", Country: "ZZZ"}
		}
	}
	for id, t := range f.Teams {
		if !s.seenTeams[id] {
			f.Teams[id] = season.Team{ID: id, Name: t.Name + "!"}
		}
	}
	for id, e := range f.Engines {
		if !s.seenEngines[id] {
			f.Engines[id] = season.Engine{ID: id, Name: e.Name + "!"}
		}
	}
	for id, c := range f.Circuits {
		if !s.seenCircuits[id] {
			f.Circuits[id] = season.Circuit{ID: id, Name: c.Name + "!"}
		}
	}
}

// lineages changes the end of links that have not ended yet, and adds a future link to each lineage.
func (s *scrambler) lineages(f *season.Facts) {
	year := s.now.Year()
	lineages := f.Lineages
	f.Lineages = nil
	for _, l := range lineages {
		links := slices.Clone(l.Links)
		for i := range links {
			if links[i].From > year {
				links[i].Team = s.teams[links[i].Team]
			}
			if links[i].To == 0 || links[i].To >= year {
				links[i].To = max(links[i].From, year) + 1 + s.random.IntN(9)
			}
		}
		for team := range f.Teams {
			links = append(links, season.Link{Team: team, From: year + 2})
			break
		}
		f.Lineages = append(f.Lineages, season.Lineage{Links: links})
	}
}
