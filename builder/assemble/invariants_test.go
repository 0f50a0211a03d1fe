package assemble_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/media"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

// TestInvariantsOfAllSeasons: no round from 1950 to 2026 breaks an invariant of its weekend.
func TestInvariantsOfAllSeasons(t *testing.T) {
	if testing.Short() {
		t.Skip("short: reads all seasons")
	}
	rounds := 0
	var waited []string
	upstream := must.Get(f1db.NewRelease(sourcetest.Path(t, sourcetest.F1DB2026), "", media.Media{}))(t)
	payload := must.Get(upstream.Fetch(t.Context(), time.Now(), 0, 0, source.Known{}))(t)
	d, err := upstream.Read(payload.Packed)
	if err != nil || len(d.Unread) > 0 {
		t.Fatal(err, d.Unread)
	}
	sheets := make(map[string][]season.Sheet)
	for _, s := range d.Sheets {
		of := fmt.Sprintf("%d %s", s.Year, s.GrandPrix)
		sheets[of] = append(sheets[of], s)
	}
	for i := range d.Facts.Seasons {
		s := &d.Facts.Seasons[i]
		for j := range s.Rounds {
			of := fmt.Sprintf("%d %s", s.Year, s.Rounds[j].GrandPrix)
			held, waits := assemble.Breaches(&d.Facts, s, j, &s.Rounds[j], sheets[of])
			for _, sentence := range held {
				t.Errorf("%s: %s", of, sentence)
			}
			if rounds++; len(waits) > 0 {
				waited = append(waited, of)
			}
		}
	}
	// Red flags made them long.
	if want := []string{"2011 canada", "2020 bahrain", "2022 japan"}; !slices.Equal(waited, want) {
		t.Errorf("the results of %d rounds wait: %v, want %v", len(waited), waited, want)
	}
	t.Logf("of %d rounds, %d have a result that waits", rounds, len(waited))
	if rounds < 1160 {
		t.Errorf("%d rounds were held against the invariants, want at least 1160", rounds)
	}
}

// small is a weekend of six cars with all its tables.
type small struct {
	facts  season.Facts
	round  *season.Round // the second of the season
	before season.Round  // in the revision in use
	sheets map[season.Section]*season.Sheet
}

func newSmall() *small {
	day := time.Date(2026, 6, 7, 0, 0, 0, 0, time.UTC)
	at := func(days, hour int) time.Time { return day.AddDate(0, 0, days).Add(time.Duration(hour) * time.Hour) }
	drivers := []season.DriverID{"ann", "bob", "cid", "dan", "eve", "fay"}
	teams := []season.TeamID{"rosso", "rosso", "verde", "verde", "blu", "blu"}
	session := func(kind season.SessionKind, days, hour int) season.Session {
		return season.Session{Kind: kind, Date: season.DayOf(at(days, hour)), Start: at(days, hour)}
	}
	r := season.Round{
		Number: 2, GrandPrix: "italy", Name: "Italian Grand Prix", Circuit: "monza", CourseKm: 5.793, ScheduledLaps: 53, Date: day, Start: at(0, 13), Sprint: true,
		Sessions: []season.Session{
			session(season.Practice1, -2, 10), session(season.SprintQualifying, -2, 14), session(season.Sprint, -1, 10), session(season.Qualifying, -1, 14),
		},
	}
	w := &small{sheets: make(map[season.Section]*season.Sheet)}
	for _, part := range []season.Section{
		season.Section(season.Practice1), season.Section(season.Qualifying), season.Section(season.SprintQualifying), season.SprintGridSection, season.Section(season.Sprint),
		season.GridSection, season.ResultSection, season.FastestLapsSection, season.PitStopsSection,
	} {
		w.sheets[part] = &season.Sheet{Year: 2026, GrandPrix: "italy", Section: part, File: string(part) + ".yml"}
	}
	for i, driver := range drivers {
		n, lap := time.Duration(i), 80*time.Second
		row := season.SheetRow{Driver: driver, Team: teams[i], Engine: "v6", Number: 11 * (i + 1), Place: strconv.Itoa(i + 1), Grid: strconv.Itoa(i + 1)}
		add := func(part season.Section, t time.Duration, laps int) {
			row := row
			row.Time, row.Laps = t, laps
			if s := w.sheets[part]; t > 0 && i > 0 {
				row.Gap = fmt.Sprintf("+%.3f", (t - s.Rows[0].Time).Seconds())
				row.Interval = fmt.Sprintf("+%.3f", (t - s.Rows[i-1].Time).Seconds())
			}
			w.sheets[part].Rows = append(w.sheets[part].Rows, row)
		}
		points, sprint := []float64{25, 18, 15, 12, 10, 8}[i], []float64{8, 7, 6, 5, 4, 3}[i]
		took := 53*85*time.Second + n*time.Second
		add(season.Section(season.Practice1), lap+n*time.Second, 20)
		r.Practice[0] = append(r.Practice[0], season.TimedLap{Driver: driver, Team: teams[i], Time: lap + n*time.Second, Laps: 20})
		add(season.Section(season.Qualifying), lap+n*time.Second, 0)
		qualified := season.QualifyingRow{Driver: driver, Team: teams[i], Position: i + 1, Segments: [3]time.Duration{lap + n*time.Second, lap + n*time.Second, lap + n*time.Second}}
		r.Qualifying = append(r.Qualifying, qualified)
		add(season.Section(season.SprintQualifying), lap+n*time.Second, 0)
		r.SprintQualifying = append(r.SprintQualifying, qualified)
		slot := season.GridSlot{Driver: driver, Team: teams[i], Position: i + 1}
		add(season.SprintGridSection, 0, 0)
		add(season.GridSection, 0, 0)
		r.SprintGrid, r.Grid = append(r.SprintGrid, slot), append(r.Grid, slot)
		add(season.Section(season.Sprint), 18*86*time.Second+n*time.Second, 18)
		result := season.Result{Driver: driver, Team: teams[i], Engine: "v6", Position: i + 1, Grid: i + 1, Laps: 18, Time: 18*86*time.Second + n*time.Second, Points: sprint}
		r.SprintResults = append(r.SprintResults, result)
		add(season.ResultSection, took, 53)
		result.Laps, result.Time, result.Points = 53, took, points
		r.Results = append(r.Results, result)
		add(season.FastestLapsSection, 82*time.Second+n*time.Second, 0)
		r.FastestLaps = append(r.FastestLaps, season.FastestLap{Driver: driver, Lap: 40, Time: 82*time.Second + n*time.Second})
		add(season.PitStopsSection, 0, 0)
		r.PitStops = append(r.PitStops, season.PitStop{Driver: driver, Stop: 1, Lap: 20 + i, Time: 23 * time.Second})
		r.Entries = append(r.Entries, season.Entry{Driver: driver, Team: teams[i], Engine: "v6", Number: 11 * (i + 1)})
		r.DriverStandings = append(r.DriverStandings, season.DriverStanding{Driver: driver, Position: i + 1, Points: points + sprint})
	}
	for i, team := range []season.TeamID{"rosso", "verde", "blu"} {
		r.TeamStandings = append(r.TeamStandings, season.TeamStanding{Team: team, Engine: "v6", Position: i + 1, Points: []float64{58, 38, 25}[i]})
	}
	earlier := season.Round{Number: 1, GrandPrix: "monaco", Date: day.AddDate(0, 0, -14), Start: at(-14, 13)}
	before := season.Season{Year: 2025}
	for range 8 {
		before.Rounds = append(before.Rounds, season.Round{GrandPrix: "monaco", Entries: []season.Entry{{Driver: "gil", Team: "giallo", Number: 77}}})
	}
	w.facts.Circuits = map[season.CircuitID]season.Circuit{"monza": {Country: "Italy"}, "mugello": {Country: "Italy"}, "spielberg": {Country: "Austria"}}
	w.facts.Seasons = []season.Season{before, {Year: 2026, Rounds: []season.Round{earlier, r}}}
	w.round = &w.facts.Seasons[1].Rounds[1]
	w.before = *w.round
	w.before.Results = slices.Clone(w.before.Results)
	w.before.Results[5] = season.Result{Driver: "fay", Team: "blu", Engine: "v6", Outcome: season.DidNotFinish, Grid: 6, Laps: 45}
	return w
}

func (w *small) breaches() (held, waits []string) {
	var sheets []season.Sheet
	for _, s := range w.sheets {
		sheets = append(sheets, *s)
	}
	slices.SortFunc(sheets, func(a, b season.Sheet) int { return strings.Compare(a.File, b.File) })
	return assemble.Breaches(&w.facts, &w.facts.Seasons[len(w.facts.Seasons)-1], 1, &w.before, sheets)
}

// The sprint and the practice of the small weekend.
var practice, sprint = season.Section(season.Practice1), season.Section(season.Sprint)

// fay is the row of the sixth car of the small weekend, with another outcome.
func fay(outcome season.Outcome, laps int) season.Result {
	return season.Result{Driver: "fay", Team: "blu", Engine: "v6", Outcome: outcome, Grid: 6, Laps: laps}
}

// lapped gives the last row of the race fewer laps and a gap in laps.
func lapped(w *small, laps int, gap string) {
	row := &w.sheets[season.ResultSection].Rows[5]
	row.Time, row.Laps, row.Gap, row.Interval = 0, laps, gap, ""
}

// without numbers the places of a table, of which one row has another text.
func without(rows []season.SheetRow, at int, place string) {
	for i := range rows {
		n := i + 1
		if i > at {
			n--
		}
		rows[i].Place = strconv.Itoa(n)
		if i == at {
			rows[i].Place = place
		}
	}
}

// knockedOut ends sprint qualifying after some segments, each a second faster, and makes the sprint faster than them.
func knockedOut(w *small, segments int) {
	for i := range w.round.SprintQualifying {
		q := &w.round.SprintQualifying[i]
		for n := range q.Segments {
			if q.Segments[n] -= time.Duration(n) * time.Second; n >= segments {
				q.Segments[n] = 0
			}
		}
	}
	w.round.SprintResults[0].Time = 18 * 70 * time.Second
}

// pointless leaves the last two drivers without points and places. In the standings, the one with the better grid place is behind.
func pointless(w *small) {
	for i := range 2 {
		w.round.Results[4+i] = season.Result{Driver: w.round.Results[4+i].Driver, Team: "blu", Engine: "v6", Outcome: season.DidNotFinish, Grid: 5 + i, Laps: 45}
		w.round.DriverStandings[4+i] = season.DriverStanding{Driver: w.round.Results[5-i].Driver, Position: 5 + i}
	}
	w.round.DriverStandings[4].Driver, w.round.DriverStandings[5].Driver = "fay", "eve"
}

// guest adds a car to practice.
func guest(w *small, team season.TeamID, car int) {
	w.sheets[practice].Rows = append(w.sheets[practice].Rows, season.SheetRow{Driver: "jim", Team: team, Engine: "v6", Number: car, Place: "7"})
}

// TestInvariants: each invariant holds a weekend that breaks it, and none holds a whole one. The golden file has all sentences
// about each weekend: by the invariant that it breaks, or as whole if no invariant in question holds it.
func TestInvariants(t *testing.T) {
	covered, numbers, said := make(map[string]bool), make(map[string]int), make(map[string]string)
	type weekend struct {
		gate string // that the edit breaks
		edit func(w *small)
	}
	weekends := []weekend{
		{"", func(*small) {}},
		{"laps", func(w *small) { w.round.Results[1].Laps, w.round.Results[1].Time = 52, 0 }},
		{"laps", func(w *small) { w.round.SprintResults[2].Laps = 19 }},
		{"revised", func(w *small) { w.round.Results[5] = fay(season.DidNotFinish, 44) }},
		{"gaps", func(w *small) { w.round.Results[5].Laps = 52 }},
		{"distance", func(w *small) { w.round.Results[5].Laps = 0 }}, // and a gap
		{"columns", func(w *small) { w.sheets[season.ResultSection].Rows[2].Time++ }},
		{"columns", func(w *small) { w.sheets[season.ResultSection].Rows[5].Gap = "+2 laps" }},
		{"order", func(w *small) { w.sheets[season.ResultSection].Rows[2].Place = "4" }},
		{"order", func(w *small) { w.sheets[season.GridSection].Rows[2].Place = "1" }},
		{"segments", func(w *small) { w.round.Qualifying[2].Segments[0], w.round.Qualifying[2].Segments[1] = 0, 0 }},
		{"retirement", func(w *small) { w.round.Results[4].Reason = "Engine" }},
		{"retirement", func(w *small) { w.sheets[season.Section(season.Sprint)].Rows[0].NoLaps = true }},
		{"grid", func(w *small) { w.round.Results[1].Grid = 4 }},
		{"grid", func(w *small) { w.round.SprintGrid = w.round.SprintGrid[:5] }},
		{"pit_lane", func(w *small) { w.round.Results[0].Grid = 0 }},
		{"pit_lane", func(w *small) { w.round.SprintGrid[2].Position = 0 }},
		{"unknown", func(w *small) {
			w.sheets[season.ResultSection].Unknown = []string{`result.yml, row 1: time "soon" is no time`}
		}},
		{"person", func(w *small) { w.sheets[season.ResultSection].Rows[0].Number = 12 }},
		{"person", func(w *small) { w.sheets[season.Section(season.Practice1)].Rows[0].Driver = "gus" }},
		{"person", func(w *small) { w.sheets[season.GridSection].Rows[3].Engine = "" }},
		{"person", func(w *small) { w.sheets[season.Section(season.Sprint)].Rows[3].Team = "blu" }},
		{"person", func(w *small) {
			practice := w.sheets[season.Section(season.Practice1)]
			practice.Rows = append(practice.Rows, season.SheetRow{Driver: "gil", Team: "rosso", Engine: "v6", Number: 34, Place: "7"})
		}},
		{"fastest_lap", func(w *small) { w.round.FastestLaps[2].Driver = "ann" }},
		{"standings", func(w *small) { w.round.DriverStandings[2].Position = 2 }},
		{"standings", func(w *small) { w.round.DriverStandings[5].Driver = "gus" }},
		{"standings", func(w *small) { w.round.TeamStandings[1].Points = 60 }},
		{"countback", func(w *small) {
			pointless(w)
			w.facts.Seasons[1].Rounds[0].Results = []season.Result{{Driver: "eve", Team: "blu", Engine: "v6", Outcome: season.DidNotFinish}} // no place counts
		}},
		{"timetable", func(w *small) { w.round.Sessions[1].Start = w.round.Sessions[1].Start.Add(-4 * time.Hour) }},
		{"course", func(w *small) { w.round.Sprint = false }},
		{"course", func(w *small) { w.round.Number = 1 }},
		{"laps", func(w *small) { w.round.Results[5] = fay(season.DidNotStart, 3) }},
		{"revised", func(w *small) {
			w.before.SprintResults = slices.Clone(w.round.SprintResults)
			w.before.SprintResults[5], w.round.SprintResults[5] = fay(season.DidNotFinish, 10), fay(season.DidNotFinish, 9)
		}},
		{"", func(w *small) { w.round.Results[0], w.round.Results[1] = w.round.Results[1], w.round.Results[0] }},
		{"", func(w *small) { // the last car stopped a lap before the end
			w.round.Results[0].Time, w.round.Results[5].Laps, w.round.Results[5].Time, w.round.Results[5].Reason = 0, 52, 0, "Engine"
		}},
		{"columns", func(w *small) { w.sheets[season.ResultSection].Rows[2].Gap = "2.000" }},
		{"columns", func(w *small) { w.sheets[season.ResultSection].Rows[0].Gap = "+1.000" }},
		{"columns", func(w *small) { lapped(w, 51, "+1 lap") }},
		{"columns", func(w *small) { lapped(w, 52, "+2 laps") }},
		{"", func(w *small) { lapped(w, 52, "+1 lap") }},
		{"columns", func(w *small) { w.sheets[season.ResultSection].Rows[2].Gap = "" }},
		{"columns", func(w *small) { w.sheets[sprint].Rows[2].Gap = "" }},
		{"columns", func(w *small) { w.sheets[practice].Rows[2].Gap = "" }},
		{"columns", func(w *small) { w.sheets[season.ResultSection].Rows[0].Time = 0 }},
		{"columns", func(w *small) { w.sheets[practice].Rows[0].Time = 0 }},
		{"", func(w *small) { // a driver without a lap
			rows := w.sheets[season.FastestLapsSection].Rows
			rows[1].Time, rows[1].Gap, rows[1].Interval, rows[2].Interval = 0, "", "", "+2.000"
			without(rows, 1, "")
		}},
		{"", func(w *small) { // a disqualified one
			w.sheets[season.FastestLapsSection].Rows[1].Gap = ""
			without(w.sheets[season.FastestLapsSection].Rows, 1, "")
		}},
		{"", func(w *small) { without(w.sheets[season.ResultSection].Rows, 2, "DSQ") }},
		{"order", func(w *small) { without(w.sheets[season.ResultSection].Rows, 2, "DNF") }},
		{"fastest_lap", func(w *small) { w.round.Results[0].Laps = 0 }},
		{"pace", func(w *small) { w.round.SprintResults[0].Time = 18 * 79 * time.Second }},
		{"", func(w *small) { w.round.FastestLaps = nil }},
		{"pace", func(w *small) {
			w.round.FastestLaps, w.round.Results[0].Time = w.round.FastestLaps[:1], 53*81*time.Second
		}},
		{"", func(w *small) { w.facts.Seasons[len(w.facts.Seasons)-1].Year, w.round.ScheduledLaps = 1949, 530 }},
		{"pace", func(w *small) { knockedOut(w, 1) }},
		{"pace", func(w *small) { knockedOut(w, 2) }},
		{"lap_times", func(w *small) {
			w.round.Practice[0][5].Time = 290 * time.Second
			slices.Reverse(w.round.Practice[0])
		}},
		{"person", func(w *small) { // two rows without a team have different engines
			w.round.Practice[0][0].Time, w.sheets[practice].Rows[3].Team, w.sheets[practice].Rows[4].Team, w.sheets[practice].Rows[4].Engine = 0, "", "", "v8"
		}},
		{"lap_times", func(w *small) { w.round.Qualifying[5].Segments[2] = 300 * time.Second }},
		{"lap_times", func(w *small) { w.round.FastestLaps[5].Time = 300 * time.Second }},
		{"segments", func(w *small) {
			w.round.Qualifying[4].Segments, w.round.Qualifying[5].Segments = [3]time.Duration{90 * time.Second}, [3]time.Duration{89 * time.Second}
		}},
		{"", func(w *small) { w.round.Qualifying[5].Position, w.round.Qualifying[5].Segments[0] = 0, 0 }},
		{"segments", func(w *small) { w.round.Qualifying[4].Segments = [3]time.Duration{} }},
		{"", func(w *small) { clear(w.round.Qualifying[3].Segments[1:]) }}, // the last two, of one team, may stand behind slower ones
		{"retirement", func(w *small) {
			w.round.Results[5] = fay(season.DidNotFinish, 45)
			w.round.Results[5].Reason = "Lap 3"
		}},
		{"retirement", func(w *small) {
			w.round.Results[5] = fay(season.NotClassified, 46)
			w.round.Results[5].Reason = "Engine"
		}},
		{"retirement", func(w *small) { w.round.Results[5] = fay(season.DidNotFinish, 45) }},
		{"", func(w *small) {
			for i := range w.sheets[season.ResultSection].Rows {
				w.sheets[season.ResultSection].Rows[i].Grid, w.sheets[season.PitStopsSection].Rows[i].Grid = "", ""
			}
		}},
		{"grid", func(w *small) { w.sheets[season.ResultSection].Rows[2].Grid = "" }},
		{"grid", func(w *small) { w.round.Grid[5].Position, w.round.Results[5].Grid, w.round.Results[1].Grid = 0, 0, 6 }},
		{"grid", func(w *small) { w.round.Grid, w.round.Results[1].Grid = nil, 3 }},
		{"", func(w *small) {
			w.round.Grid, w.round.Results[5] = nil, fay(season.DidNotStart, 0)
			w.round.Results[5].Grid = 3
			w.round.Results[2], w.round.Results[5] = w.round.Results[5], w.round.Results[2]
		}},
		{"grid", func(w *small) { w.round.Results = w.round.Results[:5] }},
		{"grid", func(w *small) { w.round.Grid, w.round.Results[5] = w.round.Grid[:5], fay(season.DidNotStart, 0) }}, // with a grid place in the file
		{"", func(w *small) {
			for i := range w.round.Results {
				w.round.Results[i].Grid = 0
			}
		}},
		{"", func(w *small) { w.sheets[practice].Unknown = []string{"a sentence of another table"} }},
		{"", func(w *small) { w.sheets[practice].Rows[0].Number, w.sheets[practice].Rows[1].Number = 0, 0 }},
		{"person", func(w *small) { w.round.Entries[0].Number = 99 }},
		{"person", func(w *small) { w.round.Entries[0].Team = "verde" }},
		{"person", func(w *small) { w.round.Entries[0].Engine = "v8" }},
		{"person", func(w *small) { guest(w, "giallo", 57) }},
		{"person", func(w *small) { // last season another driver had the car
			w.facts.Seasons[0].Rounds[7].Entries = append(slices.Clip(w.facts.Seasons[0].Rounds[7].Entries), season.Entry{Driver: "hal", Team: "nero", Number: 57})
			guest(w, "giallo", 57)
		}},
		{"person", func(w *small) { // and here car 1
			w.facts.Seasons[0].Rounds[7].Entries = append(slices.Clip(w.facts.Seasons[0].Rounds[7].Entries), season.Entry{Driver: "hal", Team: "nero", Number: 1})
			guest(w, "giallo", 1)
		}},
		{"person", func(w *small) { // in the race before the guest drove for another team, whose engine was another one
			earlier := &w.facts.Seasons[1].Rounds[0]
			earlier.Results = w.round.Results
			earlier.Entries = []season.Entry{{Driver: "jim", Team: "nero", Engine: "v8", Number: 57}, {Driver: "hal", Team: "giallo", Engine: "v8", Number: 58}}
			guest(w, "giallo", 58)
		}},
		{"person", func(w *small) { // a race without a result shows nothing
			w.facts.Seasons[1].Rounds[0].Entries = []season.Entry{{Driver: "hal", Team: "giallo", Engine: "v8", Number: 57}}
			guest(w, "giallo", 57)
		}},
		{"person", func(w *small) { // three seasons ago it had another number
			w.facts.Seasons[0].Year = 2023
			w.sheets[practice].Rows = append(w.sheets[practice].Rows, season.SheetRow{Driver: "gil", Team: "rosso", Engine: "v6", Number: 34, Place: "7"})
		}},
		{"", func(w *small) { // the numbers of this season are no earlier ones; its cancelled rounds have no number in the calendar
			s := &w.facts.Seasons[1]
			for range 8 {
				s.Rounds = append(s.Rounds, season.Round{GrandPrix: "monaco", Date: w.round.Date.AddDate(0, 0, 7), Entries: []season.Entry{{Driver: "ann", Team: "rosso", Number: 99}}})
			}
		}},
		{"person", func(w *small) { // in seven rounds only
			w.facts.Seasons[0].Rounds = w.facts.Seasons[0].Rounds[:7]
			w.sheets[practice].Rows = append(w.sheets[practice].Rows, season.SheetRow{Driver: "gil", Team: "rosso", Engine: "v6", Number: 34, Place: "7"})
		}},
		{"", func(w *small) { w.facts.Seasons = w.facts.Seasons[1:] }},
		{"", func(w *small) {
			stops := w.sheets[season.PitStopsSection]
			stops.Rows = append(stops.Rows, stops.Rows...)
			without(stops.Rows, 12, "")
		}},
		{"fastest_lap", func(w *small) { w.round.FastestLaps[2].Driver = "gus" }},
		{"", func(w *small) { w.round.Results = nil }},
		{"", func(w *small) { w.round.FastestLaps[5].Time, w.round.FastestLaps[5].Lap = 0, 0 }},
		{"fastest_lap", func(w *small) { w.round.FastestLaps[5].Time = 0 }},
		{"", func(w *small) { // the lap of a disqualified driver may be slower than the next
			w.round.FastestLaps[5].Driver, w.round.FastestLaps[4].Driver, w.round.FastestLaps[4].Time = "eve", "fay", 90*time.Second
			w.round.Results[5] = fay(season.Disqualified, 53)
		}},
		{"", func(w *small) { w.round.Results[5] = fay(season.Disqualified, 3) }},
		{"pit_stop", func(w *small) { w.round.PitStops[2].Driver = "gus" }},
		{"pit_stop", func(w *small) {
			w.round.PitStops = append(w.round.PitStops, season.PitStop{Driver: "ann", Stop: 1, Lap: 30, Time: 23 * time.Second})
		}},
		{"", func(w *small) {
			w.round.Results[5] = fay(season.DidNotFinish, 45)
			w.round.DriverStandings[5].Points = w.round.DriverStandings[4].Points
		}},
		{"standings", func(w *small) {
			w.round.DriverStandings[2].Points = w.round.DriverStandings[1].Points
			w.round.DriverStandings[1].Driver, w.round.DriverStandings[2].Driver = "cid", "bob"
		}},
		{"standings", func(w *small) {
			w.facts.Seasons[1].Rounds[0].DriverStandings = []season.DriverStanding{{Driver: "ann", Position: 1, Points: 25}, {Driver: "gus", Position: 2}}
			w.facts.Seasons[1].Rounds = append(w.facts.Seasons[1].Rounds, season.Round{GrandPrix: "spain", Date: w.round.Date.AddDate(0, 0, -7)})
		}},
		{"", func(w *small) { // of the last two the first started from the pit lane
			pointless(w)
			w.round.Grid[4].Position, w.round.Results[4].Grid = 0, 0
		}},
		{"", func(w *small) { // or both did
			pointless(w)
			w.round.Grid[4].Position, w.round.Results[4].Grid, w.round.Grid[5].Position, w.round.Results[5].Grid = 0, 0, 0, 0
		}},
		{"", func(w *small) { w.round.Start, w.round.Sessions = time.Time{}, nil }},
		{"timetable", func(w *small) { w.round.Sessions = w.round.Sessions[1:] }},
		{"", func(w *small) { w.round.Sessions[0].Start = time.Time{} }}, // it was without one before
		{"", func(w *small) {
			w.before.Sessions = slices.Clone(w.round.Sessions)
			w.before.Sessions[0].Cancelled, w.round.Sessions = true, w.round.Sessions[1:]
		}},
		{"timetable", func(w *small) {
			for i := range 2 {
				w.round.Sessions[i].Start = w.round.Sessions[i].Start.AddDate(0, 0, -2)
			}
		}},
		{"timetable", func(w *small) { w.round.Start = w.round.Start.AddDate(0, 0, 2) }},
		{"course", func(w *small) { w.round.GrandPrix, w.round.ScheduledLaps = "monaco", 530 }},
		{"course", func(w *small) { w.round.ScheduledLaps = 54 }},
		{"course", func(w *small) { w.round.Street = true }},
		{"course", func(w *small) { w.round.Circuit = "spielberg" }},
		{"", func(w *small) { w.round.Circuit = "mugello" }},
		{"", func(w *small) { w.round.Circuit = "nowhere" }},
		{"person", func(w *small) { // two seasons ago it had another number
			w.facts.Seasons[0].Year = 2024
			guest(w, "giallo", 34)
			w.sheets[practice].Rows[6].Driver = "gil"
		}},
		{"", func(w *small) { // the champion has car 1
			guest(w, "giallo", 1)
			w.sheets[practice].Rows[6].Driver = "gil"
		}},
		{"", func(w *small) { // and had it last season
			for _, r := range w.facts.Seasons[0].Rounds {
				r.Entries[0].Number = 1
			}
			guest(w, "giallo", 34)
			w.sheets[practice].Rows[6].Driver = "gil"
		}},
		{"segments", func(w *small) { w.round.Qualifying[2].Segments = [3]time.Duration{82 * time.Second} }},
		{"pit_stop", func(w *small) { w.round.PitStops[2].Lap = 0 }},
		{"", func(w *small) {
			w.round.Results[5], w.sheets[season.ResultSection].Rows[5].NoLaps = fay(season.Disqualified, 0), true
		}},
		{"", func(w *small) {
			w.round.PitStops = append(w.round.PitStops, season.PitStop{Driver: "fay", Stop: 2, Lap: 25, Time: 8 * time.Second})
			w.round.Results[5], w.round.FastestLaps[5].Lap = fay(season.DidNotFinish, 45), 45
		}},
		{"", func(w *small) { w.round.Qualifying[5].Segments = w.round.Qualifying[4].Segments }},
		{"", func(w *small) { // laps that the revision before did not know
			w.before.Results[5].Laps, w.round.Results[5] = 0, fay(season.DidNotFinish, 45)
		}},
		{"revised", func(w *small) {
			w.before.Results[0], w.round.Results[5] = fay(season.DidNotFinish, 44), fay(season.DidNotFinish, 45)
		}},
		{"pace", func(w *small) {
			w.round.FastestLaps[5].Time, w.round.FastestLaps[5].Lap, w.round.Results[0].Time = 0, 0, 53*81*time.Second
		}},
		{"", func(w *small) { // an exception
			season.Rename(w.round, season.DriverID("fay"), "nico-hulkenberg")
			w.round.GrandPrix, w.round.FastestLaps[5].Lap = "great-britain", 37
			w.round.Results[5] = fay(season.DidNotFinish, 36)
			w.round.Results[5].Driver = "nico-hulkenberg"
		}},
	}
	weekends = append(weekends,
		weekend{"", func(w *small) { w.round.Practice[0][0].Time = 0 }}, // without a time, the first shows no most laps
		weekend{"", func(w *small) { // nobody is classified
			for i := range w.round.Results {
				w.round.Results[i].Position, w.round.Results[i].Outcome = 0, season.NotClassified
			}
		}},
		weekend{"person", func(w *small) { // the race of the week after says nothing, nor does this one in the revision before
			for _, date := range []time.Time{w.round.Date, w.round.Date.AddDate(0, 0, 7)} {
				later := season.Round{GrandPrix: "spain", Date: date, Entries: []season.Entry{{Driver: "hal", Team: "giallo", Engine: "v8", Number: 57}}, Results: w.round.Results}
				w.facts.Seasons[1].Rounds = append(w.facts.Seasons[1].Rounds, later)
			}
			w.round = &w.facts.Seasons[1].Rounds[1]
			guest(w, "giallo", 57)
		}},
	)
	minutes := func(s *season.Session, n int) { s.Start = s.Start.Add(time.Duration(n) * time.Minute) }
	for _, limit := range []struct {
		gate             string
		allowed, refused int // the last value on each side
		set              func(w *small, n int)
	}{
		{"lap_times", 252, 253, func(w *small, n int) { w.round.Practice[0][3].Time = time.Duration(n) * time.Second }}, // the median is 84 seconds
		{"lap_times", 66400, 66399, func(w *small, n int) { w.round.Practice[0][0].Time = time.Duration(n) * time.Millisecond }},
		{"lap_times", 2, 3, func(w *small, n int) {
			w.round.Practice[0] = w.round.Practice[0][:n]
			w.round.Practice[0][n-1].Time = 290 * time.Second
		}},
		{"lap_times", 56, 57, func(w *small, n int) { w.round.Practice[0][5].Laps = n }}, // of 80 seconds, in 75 minutes
		{"laps", 0, 1, func(w *small, n int) { w.round.Results[0].Laps = n }},            // 0: unknown
		{"distance", 47, 46, func(w *small, n int) { w.round.Results[5].Laps, w.round.Results[5].Time = n, 0 }},
		{"retirement", 47, 48, func(w *small, n int) { w.round.Results[5] = fay(season.NotClassified, n) }},
		{"retirement", 41, 42, func(w *small, n int) {
			w.round.Results[4], w.round.Results[5] = fay(season.DidNotFinish, 41), fay(season.DidNotFinish, n)
			w.round.Results[4].Driver, w.round.Results[4].Grid = "eve", 5
			w.sheets[season.ResultSection].Rows[4].Gap, w.sheets[season.ResultSection].Rows[5].Gap = "", ""
		}},
		{"gaps", 0, 1, func(w *small, n int) { w.round.Results[3].Time = w.round.Results[2].Time - time.Duration(n) }},
		{"pace", 0, 1, func(w *small, n int) { w.round.Results[0].Time = 53*82*time.Second - time.Duration(n) }},
		{"slow", 52, 53, func(w *small, n int) { w.round.Results[0].Time = 53*2*82*time.Second + time.Duration(n) }},
		{"segments", 0, 1, func(w *small, n int) { w.round.Qualifying[2].Segments[2] = 81*time.Second - time.Duration(n) }},
		{"progress", 40, 39, func(w *small, n int) { w.round.Results[5] = fay(season.DidNotFinish, n) }},
		{"grid", 6, 7, func(w *small, n int) { w.round.Results[5].Grid = n }},
		{"fastest_lap", 53, 54, func(w *small, n int) { w.round.FastestLaps[2].Lap = n }},
		{"fastest_lap", 0, 1, func(w *small, n int) { w.round.FastestLaps[3].Time = w.round.FastestLaps[2].Time - time.Duration(n) }},
		{"pit_stop", 53, 54, func(w *small, n int) { w.round.PitStops[2].Lap = n }},
		{"pit_stop", 24, 23, func(w *small, n int) { // fay stops in lap 25
			w.round.Results[5], w.round.FastestLaps[5].Lap = fay(season.DidNotFinish, n), n
		}},
		{"pit_stop", 0, 1, func(w *small, n int) { w.round.PitStops[2].Time = 8*time.Second - time.Duration(n) }},
		{"pit_stop", 5, 6, func(w *small, n int) { w.round.PitStops[2].Stop = n }},
		{"pit_stop", 20, 19, func(w *small, n int) {
			w.round.PitStops = append(w.round.PitStops, season.PitStop{Driver: "ann", Stop: 2, Lap: n, Time: 23 * time.Second})
		}},
		{"standings", 82, 81, func(w *small, n int) { w.round.DriverStandings[2].Points = float64(n) / 4 }},
		{"standings", 0, -1, func(w *small, n int) { w.round.DriverStandings[5].Points = float64(n) / 2 }},
		{"standings", 3, 4, func(w *small, n int) { w.round.DriverStandings = w.round.DriverStandings[:n] }},
		{"standings", 1, 2, func(w *small, n int) { w.round.TeamStandings = w.round.TeamStandings[:n] }},
		{"standings", 12, 11, func(w *small, n int) {
			for i := range n {
				w.facts.Seasons[1].Rounds[0].DriverStandings = append(w.facts.Seasons[1].Rounds[0].DriverStandings, season.DriverStanding{Driver: season.DriverID(rune('a' + i)), Position: i + 1})
			}
		}},
		{"timetable", 420, 480, func(w *small, n int) { w.round.Start = w.round.Start.Add(time.Duration(n) * time.Minute) }}, // 22:00 at the circuit
		{"timetable", -360, -420, func(w *small, n int) { w.round.Start = w.round.Start.Add(time.Duration(n) * time.Minute) }},
		{"timetable", 31 * 60, 31*60 + 5, func(w *small, n int) { w.round.Start = w.round.Start.Add(time.Duration(n) * time.Minute) }}, // 54 hours after qualifying
		{"timetable", 180, 185, func(w *small, n int) { // a race in the morning 15 hours after qualifying
			w.round.Start = w.round.Start.Add(-5 * time.Hour)
			minutes(&w.round.Sessions[2], 60)
			minutes(&w.round.Sessions[3], n)
		}},
		{"timetable", 120, 125, func(w *small, n int) { minutes(&w.round.Sessions[3], n) }}, // 6 hours after the sprint
		{"timetable", -150, -155, func(w *small, n int) { minutes(&w.round.Sessions[3], n) }},
		{"timetable", 120, 125, func(w *small, n int) { minutes(&w.round.Sessions[1], n) }}, // 6 hours after practice
		{"timetable", 5, 4, func(w *small, n int) { minutes(&w.round.Sessions[0], n) }},
		{"course", 40, 39, func(w *small, n int) {
			w.round.CourseKm, w.round.ScheduledLaps, w.before.CourseKm, w.before.ScheduledLaps = 5, n, 5, n
		}},
		{"course", 66, 67, func(w *small, n int) {
			w.round.CourseKm, w.round.ScheduledLaps, w.before.CourseKm, w.before.ScheduledLaps = 5, n, 5, n
		}},
		{"course", 6375, 6376, func(w *small, n int) {
			w.before.CourseKm, w.round.CourseKm, w.round.ScheduledLaps = 6.25, float64(n)/1000, 48
		}}, // a fiftieth longer
	} {
		weekends = append(weekends, weekend{limit.gate, func(w *small) { limit.set(w, limit.refused) }})
		w := newSmall()
		limit.set(w, limit.allowed)
		held, waits := w.breaches()
		must.Hold(t, len(waits) == 0 && !slices.ContainsFunc(held, func(sentence string) bool { return strings.Contains(sentence, ": "+limit.gate+": ") }),
			"%s allows %d: got %q, waits %q", limit.gate, limit.allowed, held, waits)
	}
	for _, test := range weekends {
		w := newSmall()
		test.edit(w)
		held, waits := w.breaches()
		numbers[test.gate]++
		said[fmt.Sprintf("%s %d", cmp.Or(test.gate, "whole"), numbers[test.gate])] = strings.Join(append(held, waits...), "\n")
		covered[test.gate] = true
		if test.gate != "" && len(waits) == 0 && !slices.ContainsFunc(held, func(sentence string) bool { return strings.Contains(sentence, ": "+test.gate+": ") }) {
			t.Errorf("%s: got %q", test.gate, held)
		}
	}
	golden.Inputs(t, "testdata/invariants.txt", said)
	page := must.Get(os.ReadFile("../../deploy/docs/weekend.md"))(t)
	for _, name := range assemble.InvariantNames() {
		if !strings.Contains(string(page), "| `"+string(name)+"` |") {
			t.Errorf("deploy/docs/weekend.md does not explain the invariant %q", name)
		}
		if !covered[string(name)] {
			t.Errorf("no weekend breaks the invariant %q", name)
		}
	}
}
