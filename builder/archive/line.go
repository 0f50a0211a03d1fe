package archive

import (
	"fmt"
	"time"

	"gridcast/builder/season"
)

// seasonLine is the line of a season. Drivers, teams, engines and reasons of retirement are
// named once; the columns of the tables hold their places in these lists.
type seasonLine struct {
	Year    int                      `json:"year"`
	Drivers []season.DriverID        `json:"drivers,omitempty"`
	Teams   []season.TeamID          `json:"teams,omitempty"`
	Engines []season.EngineID        `json:"engines,omitempty"`
	Reasons []string                 `json:"reasons,omitempty"`
	Colours map[season.TeamID]string `json:"colours,omitempty"`
	Rounds  []roundLine              `json:"rounds"`
}

// roundLine is a round: its place in the calendar and a table for each session that was held.
type roundLine struct {
	Number        int                `json:"round"`
	GrandPrix     season.GrandPrixID `json:"grand_prix"`
	Name          string             `json:"name"`
	Circuit       season.CircuitID   `json:"circuit"`
	Street        bool               `json:"street,omitempty"`
	CourseKm      float64            `json:"course_km,omitempty"`
	ScheduledLaps int                `json:"scheduled_laps,omitempty"`
	Date          string             `json:"date"`
	Start         string             `json:"start,omitempty"`
	Sprint        bool               `json:"sprint,omitempty"`
	Sessions      []sessionLine      `json:"sessions,omitempty"`

	Practice1        table `json:"practice_1,omitzero"`
	Practice2        table `json:"practice_2,omitzero"`
	Practice3        table `json:"practice_3,omitzero"`
	Practice4        table `json:"practice_4,omitzero"`
	SprintQualifying table `json:"sprint_qualifying,omitzero"`
	SprintGrid       table `json:"sprint_grid,omitzero"`
	SprintResults    table `json:"sprint_results,omitzero"`
	Qualifying       table `json:"qualifying,omitzero"`
	Entries          table `json:"entries,omitzero"`
	Grid             table `json:"grid,omitzero"`
	Results          table `json:"results,omitzero"`
	FastestLaps      table `json:"fastest_laps,omitzero"`
	PitStops         table `json:"pit_stops,omitzero"`
	DriverStandings  table `json:"driver_standings,omitzero"`
	TeamStandings    table `json:"team_standings,omitzero"`
}

type sessionLine struct {
	Kind  season.SessionKind `json:"session"`
	Date  string             `json:"date"`
	Start string             `json:"start,omitempty"`
}

func newSeasonLine(s *season.Season) (seasonLine, error) {
	e := tableEncoder{}
	line := seasonLine{Year: s.Year, Colours: s.Colours, Rounds: make([]roundLine, len(s.Rounds))}
	for i := range s.Rounds {
		line.Rounds[i] = e.round(&s.Rounds[i])
		if e.err != nil {
			return seasonLine{}, fmt.Errorf("round %d: %w", s.Rounds[i].Number, e.err)
		}
	}
	line.Drivers, line.Teams, line.Engines, line.Reasons = e.drivers.list, e.teams.list, e.engines.list, e.reasons.list
	return line, nil
}

// round encodes a round. It goes through the tables in one order, so that the lists of names
// are the same each time.
func (e *tableEncoder) round(r *season.Round) roundLine {
	line := roundLine{
		Number: r.Number, GrandPrix: r.GrandPrix, Name: r.Name, Circuit: r.Circuit, Street: r.Street,
		CourseKm: r.CourseKm, ScheduledLaps: r.ScheduledLaps, Date: r.Date.Format(time.DateOnly),
		Start: formatStart(r.Start), Sprint: r.Sprint,
	}
	for _, s := range r.Sessions {
		line.Sessions = append(line.Sessions, sessionLine{s.Kind, s.Date.Format(time.DateOnly), formatStart(s.Start)})
	}
	line.Practice1, line.Practice2 = e.practice(r.Practice[0]), e.practice(r.Practice[1])
	line.Practice3, line.Practice4 = e.practice(r.Practice[2]), e.practice(r.Practice[3])
	line.SprintQualifying = e.qualifying(r.SprintQualifying)
	line.SprintGrid = e.grid(r.SprintGrid)
	line.SprintResults = e.results(r.SprintResults)
	line.Qualifying = e.qualifying(r.Qualifying)
	line.Entries = e.entries(r.Entries)
	line.Grid = e.grid(r.Grid)
	line.Results = e.results(r.Results)
	line.FastestLaps = e.fastestLaps(r.FastestLaps)
	line.PitStops = e.pitStops(r.PitStops)
	line.DriverStandings = e.driverStandings(r.DriverStandings)
	line.TeamStandings = e.teamStandings(r.TeamStandings)
	return line
}

func (line *seasonLine) season() (season.Season, error) {
	s := season.Season{Year: line.Year, Colours: line.Colours, Rounds: make([]season.Round, len(line.Rounds))}
	for i := range line.Rounds {
		d := tableDecoder{names: line}
		s.Rounds[i] = d.round(&line.Rounds[i])
		if d.err != nil {
			return season.Season{}, fmt.Errorf("round %d: %w", line.Rounds[i].Number, d.err)
		}
	}
	return s, nil
}

func (d *tableDecoder) round(line *roundLine) season.Round {
	r := season.Round{
		Number: line.Number, GrandPrix: line.GrandPrix, Name: line.Name, Circuit: line.Circuit, Street: line.Street,
		CourseKm: line.CourseKm, ScheduledLaps: line.ScheduledLaps, Date: d.day(line.Date),
		Start: d.start(line.Start), Sprint: line.Sprint,
	}
	for _, s := range line.Sessions {
		r.Sessions = append(r.Sessions, season.Session{Kind: s.Kind, Date: d.day(s.Date), Start: d.start(s.Start)})
	}
	for i, t := range []table{line.Practice1, line.Practice2, line.Practice3, line.Practice4} {
		r.Practice[i] = d.practice(t)
	}
	r.SprintQualifying = d.qualifying(line.SprintQualifying)
	r.SprintGrid = d.grid(line.SprintGrid)
	r.SprintResults = d.results(line.SprintResults)
	r.Qualifying = d.qualifying(line.Qualifying)
	r.Entries = d.entries(line.Entries)
	r.Grid = d.grid(line.Grid)
	r.Results = d.results(line.Results)
	r.FastestLaps = d.fastestLaps(line.FastestLaps)
	r.PitStops = d.pitStops(line.PitStops)
	r.DriverStandings = d.driverStandings(line.DriverStandings)
	r.TeamStandings = d.teamStandings(line.TeamStandings)
	return r
}

func formatStart(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func (d *tableDecoder) day(text string) time.Time {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		d.fail(err)
	}
	return t
}

func (d *tableDecoder) start(text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		d.fail(err)
	}
	return t.UTC()
}
