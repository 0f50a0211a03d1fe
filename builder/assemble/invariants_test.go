package assemble_test

import (
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
	"gridcast/deploy/must"
)

// TestInvariantsOfAllSeasons: no round from 1950 to 2026 breaks an invariant of its weekend.
func TestInvariantsOfAllSeasons(t *testing.T) {
	if testing.Short() {
		t.Skip("short: reads all seasons")
	}
	rounds := 0
	var waited []string
	for _, release := range []string{sourcetest.F1DB2024, sourcetest.F1DB2026} {
		upstream := must.Get(f1db.NewRelease(sourcetest.Path(t, release), "", media.Media{}))(t)
		payload := must.Get(upstream.Fetch(t.Context(), time.Now(), 0, 0, source.Known{}))(t)
		d, err := upstream.Read(payload.Packed)
		if err != nil || len(d.Unread) > 0 {
			t.Fatal(err, d.Unread)
		}
		type round struct {
			year int
			gp   season.GrandPrixID
		}
		sheets := make(map[round][]season.Sheet)
		for _, s := range d.Sheets {
			at := round{s.Year, s.GrandPrix}
			sheets[at] = append(sheets[at], s)
		}
		for i := range d.Facts.Seasons {
			s := &d.Facts.Seasons[i]
			if release == sourcetest.F1DB2026 && s.Year < 2025 {
				continue
			}
			for j := range s.Rounds {
				rounds++
				held, waits := assemble.Breaches(&d.Facts, s, j, &s.Rounds[j], sheets[round{s.Year, s.Rounds[j].GrandPrix}])
				for _, sentence := range held {
					t.Errorf("%d %s: %s", s.Year, s.Rounds[j].GrandPrix, sentence)
				}
				if len(waits) > 0 {
					waited = append(waited, fmt.Sprintf("%d %s", s.Year, s.Rounds[j].GrandPrix))
				}
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
	sheets map[season.Part]*season.Sheet
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
	w := &small{sheets: make(map[season.Part]*season.Sheet)}
	for _, part := range []season.Part{
		season.Part(season.Practice1), season.Part(season.Qualifying), season.Part(season.SprintQualifying), season.SprintGridPart, season.Part(season.Sprint),
		season.GridPart, season.ResultPart, season.FastestLapsPart, season.PitStopsPart,
	} {
		w.sheets[part] = &season.Sheet{Year: 2026, GrandPrix: "italy", Part: part, File: string(part) + ".yml"}
	}
	for i, driver := range drivers {
		n, lap := time.Duration(i), 80*time.Second
		row := season.SheetRow{Driver: driver, Team: teams[i], Engine: "v6", Number: 11 * (i + 1), Place: strconv.Itoa(i + 1), Grid: strconv.Itoa(i + 1)}
		add := func(part season.Part, t time.Duration, laps int) {
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
		add(season.Part(season.Practice1), lap+n*time.Second, 20)
		r.Practice[0] = append(r.Practice[0], season.TimedLap{Driver: driver, Team: teams[i], Time: lap + n*time.Second, Laps: 20})
		add(season.Part(season.Qualifying), lap+n*time.Second, 0)
		qualified := season.QualifyingRow{Driver: driver, Team: teams[i], Position: i + 1, Segments: [3]time.Duration{lap + n*time.Second, lap + n*time.Second, lap + n*time.Second}}
		r.Qualifying = append(r.Qualifying, qualified)
		add(season.Part(season.SprintQualifying), lap+n*time.Second, 0)
		r.SprintQualifying = append(r.SprintQualifying, qualified)
		slot := season.GridSlot{Driver: driver, Team: teams[i], Position: i + 1}
		add(season.SprintGridPart, 0, 0)
		add(season.GridPart, 0, 0)
		r.SprintGrid, r.Grid = append(r.SprintGrid, slot), append(r.Grid, slot)
		add(season.Part(season.Sprint), 18*86*time.Second+n*time.Second, 18)
		result := season.Result{Driver: driver, Team: teams[i], Engine: "v6", Position: i + 1, Grid: i + 1, Laps: 18, Time: 18*86*time.Second + n*time.Second, Points: sprint}
		r.SprintResults = append(r.SprintResults, result)
		add(season.ResultPart, took, 53)
		result.Laps, result.Time, result.Points = 53, took, points
		r.Results = append(r.Results, result)
		add(season.FastestLapsPart, 82*time.Second+n*time.Second, 0)
		r.FastestLaps = append(r.FastestLaps, season.FastestLap{Driver: driver, Lap: 40, Time: 82*time.Second + n*time.Second})
		add(season.PitStopsPart, 0, 0)
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
	return assemble.Breaches(&w.facts, &w.facts.Seasons[1], 1, &w.before, sheets)
}

// TestInvariants: each invariant holds a weekend that breaks it, and none holds a whole one.
func TestInvariants(t *testing.T) {
	if held, waits := newSmall().breaches(); len(held)+len(waits) > 0 {
		t.Fatalf("the whole weekend: %q, %q, want nothing", held, waits)
	}
	covered := make(map[string]bool)
	for _, test := range []struct {
		gate string
		edit func(r *season.Round, s map[season.Part]*season.Sheet)
		want string // in the sentence; it begins with the block, or is of one that waits
	}{
		{"laps", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.Results[1].Laps, r.Results[1].Time = 52, 0 }, "result: laps: race: P3 cid has 53 laps and P2 has 52"},
		{"laps", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.SprintResults[2].Laps = 19 }, "sprint: laps: sprint: cid has 19 laps, at most the winner's 18"},
		{"revised", func(r *season.Round, _ map[season.Part]*season.Sheet) {
			r.Results[5] = season.Result{Driver: "fay", Team: "blu", Engine: "v6", Outcome: season.DidNotFinish, Grid: 6, Laps: 44}
		}, "result: revised: race: fay retired after 44 laps, and after 45 in the revision before"},
		{"distance", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.Results[5].Laps, r.Results[5].Time = 46, 0 }, "P6 fay has 46 laps, and at least 47"},
		{"gaps", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.Results[3].Time = r.Results[0].Time }, "P4 dan took 1h15m5s and P3 took 1h15m7s"},
		{"gaps", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.Results[5].Laps = 52 }, "P6 fay has the time 1h15m10s and 52 laps"},
		{"columns", func(_ *season.Round, s map[season.Part]*season.Sheet) { s[season.ResultPart].Rows[2].Time++ }, `result: columns: result.yml, row 3: cid has the gap "+2.000", expected`},
		{"columns", func(_ *season.Round, s map[season.Part]*season.Sheet) { s[season.ResultPart].Rows[5].Gap = "+2 laps" }, `fay has the gap "+2 laps", expected`},
		{"order", func(_ *season.Round, s map[season.Part]*season.Sheet) { s[season.ResultPart].Rows[2].Place = "4" }, "result.yml, row 3: cid has place 4, expected 3"},
		{"order", func(_ *season.Round, s map[season.Part]*season.Sheet) { s[season.GridPart].Rows[2].Place = "1" }, "grid: order: grid.yml, row 3: cid has place 1 behind place 2"},
		{"pace", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.Results[0].Time = 53 * 81 * time.Second }, "the winner ann took 1m21s a lap, less than the fastest lap of 1m22s"},
		{"slow", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.Results[0].Time = 53 * 165 * time.Second }, "the winner took 2m45s a lap, more than twice"},
		{"lap_times", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.Practice[0][5].Time = 290 * time.Second }, "practice: lap_times: practice 1: fay has the lap time 4m50s"},
		{"lap_times", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.Practice[0][5].Laps = 90 }, "practice 1: fay has 90 laps, expected at most 56"},
		{"segments", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.Qualifying[2].Segments[2] = 79 * time.Second }, "qualifying: segments: qualifying: P3 cid has 1m19s in segment 3 and P2 1m21s"},
		{"segments", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.Qualifying[2].Segments[0] = 0 }, "P3 cid has a time in segment 3 and none in segment 1"},
		{"retirement", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.Results[4].Reason = "Engine" }, `P5 eve finished and has the reason "Engine"`},
		{"retirement", func(r *season.Round, _ map[season.Part]*season.Sheet) {
			r.Results[5] = season.Result{Driver: "fay", Team: "blu", Engine: "v6", Outcome: season.NotClassified, Grid: 6, Laps: 50}
		}, "fay is NC with 50 laps, and more than 47 make a driver classified"},
		{"retirement", func(_ *season.Round, s map[season.Part]*season.Sheet) {
			s[season.Part(season.Sprint)].Rows[0].NoLaps = true
		}, "sprint: retirement: sprint: ann started and has no number of laps"},
		{"progress", func(r *season.Round, _ map[season.Part]*season.Sheet) {
			r.Results[5] = season.Result{Driver: "fay", Team: "blu", Engine: "v6", Outcome: season.DidNotFinish, Grid: 6, Laps: 30}
		}, "fay retired after 30 laps and has the fastest lap 40"},
		{"grid", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.Results[1].Grid = 4 }, "grid: grid: race: bob started from 4, and dan is there on the grid"},
		{"grid", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.Results[1].Grid = 20 }, "bob started from 20, expected at most the 6 cars"},
		{"grid", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.SprintGrid = r.SprintGrid[:5] }, "sprint: grid: sprint: fay started and is not on the grid"},
		{"pit_lane", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.Results[2].Grid = 0 }, "cid is at 3 on the grid of the race and started from 0"},
		{"pit_lane", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.SprintGrid[2].Position = 0 }, "cid is at 0 on the grid of the sprint and started from 3"},
		{"unknown", func(_ *season.Round, s map[season.Part]*season.Sheet) {
			s[season.ResultPart].Unknown = []string{`result.yml, row 1: time "soon" is no time`}
		}, `time "soon" is no time`},
		{"person", func(_ *season.Round, s map[season.Part]*season.Sheet) { s[season.ResultPart].Rows[0].Number = 12 }, "result: person: the number of ann is 12 in the result, and 11 elsewhere in the weekend"},
		{"person", func(_ *season.Round, s map[season.Part]*season.Sheet) {
			s[season.Part(season.Practice1)].Rows[0].Driver = "gus"
		}, "practice: person: the driver of car 11 is gus in the practice, and ann elsewhere"},
		{"person", func(_ *season.Round, s map[season.Part]*season.Sheet) { s[season.GridPart].Rows[3].Engine = "" }, "grid: person: the engine of verde is unknown in the grid, and v6 elsewhere"},
		{"person", func(_ *season.Round, s map[season.Part]*season.Sheet) {
			s[season.Part(season.Sprint)].Rows[3].Team = "blu"
		}, "sprint.yml: blu has three cars"},
		{"person", func(_ *season.Round, s map[season.Part]*season.Sheet) {
			practice := s[season.Part(season.Practice1)]
			practice.Rows = append(practice.Rows, season.SheetRow{Driver: "gil", Team: "rosso", Engine: "v6", Number: 34, Place: "7"})
		}, "practice-1.yml: gil has car 34 and had car 77 before"},
		{"fastest_lap", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.FastestLaps[2].Lap = 54 }, "row 3: cid has lap 54, and the race had 53"},
		{"fastest_lap", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.FastestLaps[2].Driver = "ann" }, "row 3: ann is there twice"},
		{"pit_stop", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.PitStops[2].Lap = 230 }, "row 3: cid stops in lap 230, expected 1 to 53"},
		{"pit_stop", func(r *season.Round, _ map[season.Part]*season.Sheet) {
			r.Results[5] = season.Result{Driver: "fay", Team: "blu", Engine: "v6", Outcome: season.DidNotFinish, Grid: 6, Laps: 3}
		}, "row 6: fay stops in lap 25, expected 1 to 4"},
		{"pit_stop", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.PitStops[2].Time = 2 * time.Second }, "cid takes 2s, expected at least 8s"},
		{"standings", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.DriverStandings[2].Position = 2 }, "driver standings, row 3: cid has place 2, expected 3"},
		{"standings", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.DriverStandings[5].Driver = "gus" }, "gus is there and did not race"},
		{"standings", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.TeamStandings[1].Points = 60 }, "verde v6 has 60 points behind 58"},
		{"countback", func(r *season.Round, _ map[season.Part]*season.Sheet) {
			for i := range 2 { // of the last two, neither has points or a place
				r.Results[4+i] = season.Result{Driver: r.Results[4+i].Driver, Team: "blu", Engine: "v6", Outcome: season.DidNotFinish, Grid: 5 + i, Laps: 45}
				r.DriverStandings[4+i] = season.DriverStanding{Driver: r.DriverStandings[5-i].Driver, Position: 5 + i}
			}
			r.DriverStandings[4].Driver, r.DriverStandings[5].Driver = "fay", "eve"
		}, "eve has the points and places of fay and a better place on a grid, and stands behind"},
		{"timetable", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.Start = r.Start.Add(12 * time.Hour) }, "start: timetable: race starts at"},
		{"timetable", func(r *season.Round, _ map[season.Part]*season.Sheet) {
			r.Sessions[1].Start = r.Sessions[1].Start.Add(-4 * time.Hour)
		}, "sessions: timetable: sprint-qualifying starts at"},
		{"course", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.ScheduledLaps = 530 }, "calendar: course: 530 laps of 5.793 km are scheduled, expected the fewest beyond 305 km"},
		{"course", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.Sprint = false }, "the round is without a sprint"},
		{"course", func(r *season.Round, _ map[season.Part]*season.Sheet) { r.Number = 1 }, "numbers follow the calendar"},
	} {
		w := newSmall()
		test.edit(w.round, w.sheets)
		held, waits := w.breaches()
		all := slices.Concat(held, waits)
		if !slices.ContainsFunc(all, func(sentence string) bool {
			return strings.Contains(sentence, test.want) && (strings.Contains(sentence, ": "+test.gate+": ") || slices.Contains(waits, sentence))
		}) {
			t.Errorf("%s: got %q, want %q", test.gate, all, test.want)
		}
		covered[test.gate] = true
	}
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
