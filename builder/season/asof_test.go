package season_test

import (
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/season"
	"gridcast/deploy/must"
)

// TestInstantsOfKnownWeekends compares instants with those of printed timetables.
func TestInstantsOfKnownWeekends(t *testing.T) {
	f := embedded(t).Facts()
	round := func(year, number int) *season.Round {
		for i := range f.Seasons {
			if f.Seasons[i].Year == year {
				return &f.Seasons[i].Rounds[number-1]
			}
		}
		t.Fatalf("no season %d", year)
		return nil
	}
	for _, test := range []struct {
		name      string
		got, want time.Time
	}{
		{"Bahrain 2024, start", round(2024, 1).StartsAt(), at("2024-03-02T15:00:00Z")},
		{"Bahrain 2024, practice 1", round(2024, 1).SessionKnownAt(season.Practice1), at("2024-02-29T12:30:00Z")},
		{"Bahrain 2024, qualifying", round(2024, 1).QualifyingKnownAt(), at("2024-03-01T17:00:00Z")},
		{"Bahrain 2024, grid", round(2024, 1).GridKnownAt(), at("2024-03-01T17:00:00Z")},
		{"Bahrain 2024, result", round(2024, 1).ResultKnownAt(), at("2024-03-02T16:31:44.742Z")},
		{"China 2024, sprint qualifying", round(2024, 5).SessionKnownAt(season.SprintQualifying), at("2024-04-19T08:30:00Z")},
		{"China 2024, sprint", round(2024, 5).SessionKnownAt(season.Sprint), at("2024-04-20T04:00:00Z")},
		{"China 2024, grid", round(2024, 5).GridKnownAt(), at("2024-04-20T08:00:00Z")},
		{"Las Vegas 2024, start", round(2024, 22).StartsAt(), at("2024-11-24T06:00:00Z")},
		{"Brazil 2021, sprint of unknown hour", round(2021, 19).SprintKnownAt(), at("2021-11-13T15:00:00Z")},
		{"Brazil 2021, grid", round(2021, 19).GridKnownAt(), at("2021-11-13T15:00:00Z")},
		{"Australia 2007, start", round(2007, 1).StartsAt(), at("2007-03-18T13:00:00Z")},
		{"Australia 2007, practice 1", round(2007, 1).SessionKnownAt(season.Practice1), at("2007-03-17T14:00:00Z")},
		{"Australia 2007, qualifying starts", round(2007, 1).QualifyingStartsAt(), at("2007-03-17T13:00:00Z")},
	} {
		if !test.got.Equal(test.want) {
			t.Errorf("%s: got %s, want %s", test.name, test.got.Format(time.RFC3339Nano), test.want.Format(time.RFC3339Nano))
		}
	}
}

// TestInstantsOfRounds covers cases that no real season has.
func TestInstantsOfRounds(t *testing.T) {
	day := at("2026-06-07T00:00:00Z")
	session := func(kind season.SessionKind, start string) season.Session {
		return season.Session{Kind: kind, Date: at(start).Truncate(24 * time.Hour), Start: at(start)}
	}
	sprintAfter := season.Round{Date: day, Sessions: []season.Session{
		session(season.Qualifying, "2026-06-05T14:00:00Z"), session(season.Practice2, "2026-06-06T18:00:00Z"),
		session(season.Sprint, "2026-06-06T14:30:00Z"),
	}}
	dayOnly := season.Round{Date: day, Sessions: []season.Session{{Kind: season.Qualifying, Date: day}}}
	won := season.Round{Date: day, Results: []season.Result{{Position: 1}}}
	for _, test := range []struct {
		name      string
		got, want time.Time
	}{
		{"the sprint sets the grid", sprintAfter.GridKnownAt(), at("2026-06-06T15:30:00Z")},
		{"qualifying before the sprint", sprintAfter.QualifyingKnownAt(), at("2026-06-05T15:00:00Z")},
		{"practice never later than the grid", sprintAfter.SessionKnownAt(season.Practice2), at("2026-06-06T15:30:00Z")},
		{"qualifying of known day", dayOnly.QualifyingKnownAt(), at("2026-06-07T14:00:00Z")},
		{"no result yet", dayOnly.ResultKnownAt(), at("2026-06-07T15:00:00Z")},
		{"a winner without a time", won.ResultKnownAt(), at("2026-06-07T15:00:00Z")},
	} {
		must.Equal(t, test.name, test.want, test.got)
	}
}

// TestWalk checks views of whole seasons: at each instant at which a fact becomes known, and a second before it.
func TestWalk(t *testing.T) {
	for _, year := range []int{1950, 1958, 1984, 2007, 2021, 2024} {
		t.Run(strconv.Itoa(year), func(t *testing.T) {
			a := embedded(t)
			if year < 2007 {
				a = whole(t)
			}
			looked := 0
			full := between(t, a, year, year)
			s := &full.Facts().Seasons[0]
			for _, b := range boundaries(s) {
				for _, step := range []time.Duration{-time.Second, 0} {
					looked++
					checkView(t, s, full.AsOf(b.Add(step)))
				}
			}
			t.Logf("looked at %d instants", looked)
		})
	}
}

// checkView compares a view of one season with the season cut down by the rules of parts.
func checkView(t *testing.T, s *season.Season, v *season.View) {
	t.Helper()
	if v.At.Before(time.Date(s.Year-1, 10, 1, 0, 0, 0, 0, time.UTC)) {
		if len(v.Seasons)+len(v.Drivers)+len(v.Teams)+len(v.Engines)+len(v.Circuits)+len(v.Lineages) != 0 {
			t.Fatalf("at %s: something is known before the calendar", v.At)
		}
		return
	}
	rounds := slices.Clone(s.Rounds)
	for i := range rounds {
		for _, p := range parts(&s.Rounds[i]) {
			if p.at.After(v.At) {
				p.clear(&rounds[i])
			}
			if got, want := p.known(&v.Seasons[0].Rounds[i]), p.known(&s.Rounds[i]) && !p.at.After(v.At); got != want {
				t.Fatalf("at %s: %s of round %d known: %v, want %v", v.At, p.name, i+1, got, want)
			}
		}
	}
	if !reflect.DeepEqual(rounds, v.Seasons[0].Rounds) {
		t.Fatalf("at %s (-want +got):\n%s", v.At, cmp.Diff(rounds, v.Seasons[0].Rounds))
	}
	checkReferences(t, s, v)
}

// checkReferences checks that the view has exactly the things that its rows refer to.
func checkReferences(t *testing.T, s *season.Season, v *season.View) {
	t.Helper()
	drivers, teams := make(map[season.DriverID]bool), make(map[season.TeamID]bool)
	engines, circuits := make(map[season.EngineID]bool), make(map[season.CircuitID]bool)
	for _, r := range v.Seasons[0].Rounds {
		circuits[r.Circuit] = true
		collect(reflect.ValueOf(r), drivers, teams, engines)
	}
	delete(engines, "")
	got, want := len(v.Drivers), len(drivers)
	must.Require(t, got == want, "at %s: %d drivers are known, want the %d of the rows", v.At, got, want)
	if got, want := len(v.Teams), len(teams); got != want {
		t.Fatalf("at %s: %d teams are known, want the %d of the rows", v.At, got, want)
	}
	if got, want := len(v.Engines), len(engines); got != want {
		t.Fatalf("at %s: %d engines are known, want the %d of the rows", v.At, got, want)
	}
	if got, want := len(v.Circuits), len(circuits); got != want {
		t.Fatalf("at %s: %d circuits are known, want the %d of the calendar", v.At, got, want)
	}
	for id := range drivers {
		must.Require(t, v.Drivers[id].ID == id, "at %s: driver %s is not known", v.At, id)
	}
	for team := range s.Colours {
		if _, ok := v.Seasons[0].Colours[team]; ok != teams[team] {
			t.Fatalf("at %s: the colour of %s is known: %v, the team has appeared: %v", v.At, team, ok, teams[team])
		}
	}
	for _, l := range v.Lineages {
		for _, link := range l.Links {
			if !teams[link.Team] || link.From > s.Year || link.To != 0 && link.To >= v.At.Year() {
				t.Fatalf("at %s: a lineage has the later link %+v", v.At, link)
			}
		}
	}
}

// collect reads all rows of a round by reflection, so that it covers every table.
func collect(v reflect.Value, drivers map[season.DriverID]bool, teams map[season.TeamID]bool, engines map[season.EngineID]bool) {
	switch v.Type() { // of a table with thousands of cells, none of which is copied
	case reflect.TypeFor[season.DriverID]():
		drivers[season.DriverID(v.String())] = true
		return
	case reflect.TypeFor[season.TeamID]():
		teams[season.TeamID(v.String())] = true
		return
	case reflect.TypeFor[season.EngineID]():
		engines[season.EngineID(v.String())] = true
		return
	case reflect.TypeFor[time.Time]():
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			collect(v.Field(i), drivers, teams, engines)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			collect(v.Index(i), drivers, teams, engines)
		}
	}
}

func TestSeasonOfTheDay(t *testing.T) {
	a := embedded(t)
	for _, test := range []struct {
		at   string
		want int
	}{
		{"2006-09-30T23:59:59Z", 0},
		{"2006-10-01T00:00:00Z", 2007},
		{"2023-12-31T23:59:59Z", 2023},
		{"2023-09-30T23:59:59Z", 2023},
		{"2024-01-01T00:00:00Z", 2024},
		{"2030-01-01T00:00:00Z", 2026},
	} {
		got := a.AsOf(at(test.at)).CurrentSeason()
		must.Hold(t, got == test.want, "at %s: current season %d, want %d", test.at, got, test.want)
	}
	v := a.AsOf(at("2024-03-02T15:00:00Z"))
	s, r := v.LatestEntries()
	must.Hold(t, s.Year == 2024 && r.Number == 1, "the latest entries are from %d round %d, want 2024 round 1", s.Year, r.Number)
	v = a.AsOf(at("2024-03-01T16:59:59Z"))
	if s, r := v.LatestEntries(); s.Year != 2023 || r.Number != 22 {
		t.Errorf("the latest entries are from %d round %d, want 2023 round 22", s.Year, r.Number)
	}
	if r, ok := v.Round(2023, "abu-dhabi"); !ok || r.Number != 22 {
		t.Error("Abu Dhabi 2023 is not found")
	}
	_, ok := v.Round(2025, "abu-dhabi")
	must.Hold(t, !ok, "an unknown season has a round")
}

func BenchmarkAsOf(b *testing.B) {
	for _, test := range []struct {
		name string
		a    func(testing.TB) *season.Archive
		at   time.Time
	}{
		{"18 seasons, in the last", embedded, at("2024-07-01T12:00:00Z")},
		{"75 seasons, in the last", whole, at("2024-07-01T12:00:00Z")},
		{"75 seasons, all over", whole, at("2026-01-01T00:00:00Z")},
		{"75 seasons, in 1970", whole, at("1970-07-01T12:00:00Z")},
	} {
		b.Run(test.name, func(b *testing.B) {
			a := test.a(b)
			b.ReportAllocs()
			for b.Loop() {
				a.AsOf(test.at)
			}
		})
	}
}

// A session of unknown hour follows those of its day whose hour is known.
func TestSessionsOfUnknownHourEndTheirDay(t *testing.T) {
	friday := time.Date(2026, 6, 5, 0, 0, 0, 0, time.UTC)
	saturday := friday.AddDate(0, 0, 1)
	sessions := []season.Session{
		{Kind: season.Qualifying, Date: saturday},
		{Kind: season.SprintQualifying, Date: friday},
		{Kind: season.Practice1, Date: friday, Start: friday.Add(11 * time.Hour)},
		{Kind: season.Sprint, Date: saturday, Start: saturday.Add(10 * time.Hour)},
	}
	season.SortSessions(sessions)
	var got []season.SessionKind
	for _, s := range sessions {
		got = append(got, s.Kind)
	}
	want := []season.SessionKind{season.Practice1, season.SprintQualifying, season.Sprint, season.Qualifying}
	must.Hold(t, slices.Equal(got, want), "got %v, want %v", got, want)
}
