package season_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"gridcast/builder/season"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

// facts returns small valid facts. The test below breaks one thing at a time.
func facts() *season.Facts {
	day := at("2024-05-26T00:00:00Z")
	return &season.Facts{
		Drivers:  map[season.DriverID]season.Driver{"a": {ID: "a"}, "b": {ID: "b"}},
		Teams:    map[season.TeamID]season.Team{"x": {ID: "x"}, "y": {ID: "y"}},
		Engines:  map[season.EngineID]season.Engine{"e": {ID: "e"}},
		Circuits: map[season.CircuitID]season.Circuit{"c": {ID: "c"}},
		Lineages: []season.Lineage{{Links: []season.Link{{Team: "x", From: 2000, To: 2010}, {Team: "y", From: 2011}}}},
		Seasons: []season.Season{
			{Year: 2023},
			{Year: 2024, Rounds: []season.Round{
				{
					Number: 1, GrandPrix: "g", Name: "G", Circuit: "c", Date: day, Start: day.Add(13 * time.Hour),
					Sessions:        []season.Session{{Kind: season.Qualifying, Date: day.AddDate(0, 0, -1)}},
					Entries:         []season.Entry{{Driver: "a", Team: "x", Engine: "e", Number: 1}},
					Practice:        [4][]season.TimedLap{{{Driver: "a", Team: "x"}}},
					Qualifying:      []season.QualifyingRow{{Driver: "a", Team: "x", Position: 1}},
					Grid:            []season.GridSlot{{Driver: "a", Team: "x", Position: 1}},
					Results:         []season.Result{{Driver: "a", Team: "x", Engine: "e", Position: 1}},
					FastestLaps:     []season.FastestLap{{Driver: "a", Lap: 3}},
					PitStops:        []season.PitStop{{Driver: "a", Lap: 3, Stop: 1}},
					DriverStandings: []season.DriverStanding{{Driver: "a", Position: 1}},
					TeamStandings:   []season.TeamStanding{{Team: "x", Engine: "e", Position: 1}},
				},
				{Number: 2, GrandPrix: "h", Name: "H", Circuit: "c", Date: day.AddDate(0, 0, 7)},
			}},
		},
	}
}

func TestValidate(t *testing.T) {
	must.Get(season.New(*facts()))(t)
	said := make(map[string]string)
	for _, test := range []struct {
		about string
		spoil func(f *season.Facts, r *season.Round)
	}{
		{`driver "b" is filed under "z"`, func(f *season.Facts, _ *season.Round) { f.Drivers["z"] = season.Driver{ID: "b"} }},
		{`team "" is filed under ""`, func(f *season.Facts, _ *season.Round) { f.Teams[""] = season.Team{} }},
		{`engine "e" is filed under "z"`, func(f *season.Facts, _ *season.Round) { f.Engines["z"] = season.Engine{ID: "e"} }},
		{`circuit "c" is filed under "z"`, func(f *season.Facts, _ *season.Round) { f.Circuits["z"] = season.Circuit{ID: "c"} }},
		{`lineage 1, link 2: unknown team "z"`, func(f *season.Facts, _ *season.Round) { f.Lineages[0].Links[1].Team = "z" }},
		{`link 1: "x" ends in 1999 before it begins in 2000`, func(f *season.Facts, _ *season.Round) { f.Lineages[0].Links[0].To = 1999 }},
		{`driver "a": the text "A\x1b[31m" has the character U+001B`, func(f *season.Facts, _ *season.Round) { f.Drivers["a"] = season.Driver{ID: "a", Name: "A\x1b[31m"} }},
		{`driver "a": the text "Al\u202eonso"`, func(f *season.Facts, _ *season.Round) {
			f.Drivers["a"] = season.Driver{ID: "a", LastName: "Al\u202eonso"}
		}},
		{`team "x": the text "<script>"`, func(f *season.Facts, _ *season.Round) { f.Teams["x"] = season.Team{ID: "x", Name: "<script>"} }},
		{`engine "e": the text "E\u0085"`, func(f *season.Facts, _ *season.Round) { f.Engines["e"] = season.Engine{ID: "e", Name: "E\u0085"} }},
		{`circuit "c": the text "C\u2069"`, func(f *season.Facts, _ *season.Round) { f.Circuits["c"] = season.Circuit{ID: "c", Locality: "C\u2069"} }},
		{`round 1: name: the text "G\r\n" has the character U+000D`, func(_ *season.Facts, r *season.Round) { r.Name = "G\r\n" }},
		{`result, row 1: reason of "a": the text "a\tb"`, func(_ *season.Facts, r *season.Round) { r.Results[0].Reason = "a\tb" }},
		{"the course has NaN km", func(_ *season.Facts, r *season.Round) { r.CourseKm = math.NaN() }},
		{`result, row 1: "a" has NaN points`, func(_ *season.Facts, r *season.Round) { r.Results[0].Points = math.NaN() }},
		{`driver standings, row 1: "a" has +Inf points`, func(_ *season.Facts, r *season.Round) { r.DriverStandings[0].Points = math.Inf(1) }},
		{`team standings, row 1: "x" has -Inf points`, func(_ *season.Facts, r *season.Round) { r.TeamStandings[0].Points = math.Inf(-1) }},
		{"season 2024 follows season 2024", func(f *season.Facts, _ *season.Round) { f.Seasons[0].Year = 2024 }},
		{"year 0 has not four digits", func(f *season.Facts, _ *season.Round) { f.Seasons[0].Year = 0 }},
		{`season 2024: colours: unknown team "z"`, func(f *season.Facts, _ *season.Round) {
			f.Seasons[1].Colours = map[season.TeamID]string{"z": "#000000"}
		}},
		{`colour of "x": "#ff0000"`, func(f *season.Facts, _ *season.Round) {
			f.Seasons[1].Colours = map[season.TeamID]string{"x": "#ff0000"}
		}},
		{"numbers begin with 1", func(_ *season.Facts, r *season.Round) { r.Number = 0 }},
		{"starts before round 1", func(_ *season.Facts, r *season.Round) {
			r.Date, r.Start = r.Date.AddDate(0, 0, 14), time.Time{}
		}},
		{`round 2: grand prix "h" is round 1 already`, func(_ *season.Facts, r *season.Round) { r.GrandPrix = "h" }},
		{"round 1: grand prix \"g\", name \"\"", func(_ *season.Facts, r *season.Round) { r.Name = "" }},
		{`round 1: unknown circuit "z"`, func(_ *season.Facts, r *season.Round) { r.Circuit = "z" }},
		{"date 2025-05-26 is not in the year", func(_ *season.Facts, r *season.Round) { r.Date = r.Date.AddDate(1, 0, 0) }},
		{"is not midnight", func(_ *season.Facts, r *season.Round) { r.Date = r.Date.Add(time.Second) }},
		{"start 2024-05-27T13:00:00Z is not on 2024-05-26", func(_ *season.Facts, r *season.Round) { r.Start = r.Start.AddDate(0, 0, 1) }},
		{"qualifying: start", func(_ *season.Facts, r *season.Round) { r.Sessions[0].Start = r.Start }},
		{`session "party"`, func(_ *season.Facts, r *season.Round) { r.Sessions[0].Kind = "party" }},
		{`practice-1, row 1: unknown driver "z"`, func(_ *season.Facts, r *season.Round) { r.Practice[0][0].Driver = "z" }},
		{`qualifying, row 1: "a" has a negative value`, func(_ *season.Facts, r *season.Round) { r.Qualifying[0].Segments[2] = -1 }},
		{`sprint qualifying, row 1: unknown team "z"`, func(_ *season.Facts, r *season.Round) {
			r.SprintQualifying = []season.QualifyingRow{{Driver: "a", Team: "z"}}
		}},
		{`entries, row 2: driver "a" is there twice`, func(_ *season.Facts, r *season.Round) { r.Entries = append(r.Entries, r.Entries[0]) }},
		{`entries, row 1: unknown engine "z"`, func(_ *season.Facts, r *season.Round) { r.Entries[0].Engine = "z" }},
		{`grid, row 2: driver "a" is there twice`, func(_ *season.Facts, r *season.Round) { r.Grid = append(r.Grid, r.Grid[0]) }},
		{`sprint grid, row 1: unknown driver ""`, func(_ *season.Facts, r *season.Round) { r.SprintGrid = make([]season.GridSlot, 1) }},
		{`result, row 1: "a" has position 1 and outcome "DNF"`, func(_ *season.Facts, r *season.Round) { r.Results[0].Outcome = season.DidNotFinish }},
		{`result, row 1: "a" has position 0 and outcome ""`, func(_ *season.Facts, r *season.Round) { r.Results[0].Position = 0 }},
		{`sprint result, row 1: unknown engine "z"`, func(_ *season.Facts, r *season.Round) {
			r.SprintResults = []season.Result{{Driver: "a", Engine: "z", Position: 1}}
		}},
		{`fastest laps, row 1: "a" has a negative value`, func(_ *season.Facts, r *season.Round) { r.FastestLaps[0].Lap = -1 }},
		{`pit stops, row 1: unknown driver "z"`, func(_ *season.Facts, r *season.Round) { r.PitStops[0].Driver = "z" }},
		{`driver standings, row 2: driver "a" is there twice`, func(_ *season.Facts, r *season.Round) {
			r.DriverStandings = append(r.DriverStandings, r.DriverStandings[0])
		}},
		{`driver standings, row 1: unknown driver "z"`, func(_ *season.Facts, r *season.Round) { r.DriverStandings[0].Driver = "z" }},
		{`team standings, row 2: team "x" is there twice`, func(_ *season.Facts, r *season.Round) {
			r.TeamStandings = append(r.TeamStandings, r.TeamStandings[0])
		}},
		{`team standings, row 1: unknown team "z"`, func(_ *season.Facts, r *season.Round) { r.TeamStandings[0].Team = "z" }},
		{`team standings, row 1: unknown engine "z"`, func(_ *season.Facts, r *season.Round) { r.TeamStandings[0].Engine = "z" }},
	} {
		f := facts()
		test.spoil(f, &f.Seasons[1].Rounds[0])
		said[test.about] = fmt.Sprint(must.Err(season.New(*f)))
	}
	golden.Inputs(t, "testdata/validate.txt", said)
}

// TestTeamExcludedAndBack: a team may have two rows, as in the standings of 2018.
func TestTeamExcludedAndBack(t *testing.T) {
	f := facts()
	r := &f.Seasons[1].Rounds[0]
	r.TeamStandings = append(r.TeamStandings, season.TeamStanding{Team: "x", Engine: "e"})
	must.Succeed(t, "New", must.Err(season.New(*f)))
}
