package openf1

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gridcast/builder/season"
	"gridcast/builder/source"
)

// meeting is a race weekend or a test.
type meeting struct {
	Key  int    `json:"meeting_key"`
	Name string `json:"meeting_name"`
	Year int    `json:"year"`
}

// session is a session of a meeting.
type session struct {
	Key       int       `json:"session_key"`
	Meeting   int       `json:"meeting_key"`
	Name      string    `json:"session_name"`
	Circuit   string    `json:"circuit_short_name"`
	Start     time.Time `json:"date_start"`
	End       time.Time `json:"date_end"`
	Cancelled bool      `json:"is_cancelled"`
	Year      int       `json:"year"`
}

// The present and former names of sessions.
const (
	raceName       = "Race"
	qualifyingName = "Qualifying"
	sprintName     = "Sprint"
)

var kinds = map[string]season.SessionKind{
	"Practice 1": season.Practice1, "Practice 2": season.Practice2, "Practice 3": season.Practice3,
	qualifyingName: season.Qualifying, "Sprint Qualifying": season.SprintQualifying, "Sprint Shootout": season.SprintQualifying,
	sprintName: season.Sprint,
}

// outcomes are the sessions with an outcome to fetch.
var outcomes = map[string]bool{raceName: true, qualifyingName: true, sprintName: true}

// The rows of a session. All but the numbers may be null.
type (
	driverRow struct {
		Number  int     `json:"driver_number"`
		Acronym *string `json:"name_acronym"`
		First   *string `json:"first_name"`
		Last    *string `json:"last_name"`
		Team    *string `json:"team_name"`
	}
	resultRow struct {
		Number   int            `json:"driver_number"`
		Position *int           `json:"position"`
		Points   *float64       `json:"points"`
		Laps     *int           `json:"number_of_laps"`
		DNF      bool           `json:"dnf"`
		DNS      bool           `json:"dns"`
		DSQ      bool           `json:"dsq"`
		Duration jsontext.Value `json:"duration"`      // seconds, or those of the three segments
		Gap      jsontext.Value `json:"gap_to_leader"` // seconds, "+1 LAP", null, or those of the segments
	}
	gridRow struct {
		Number   int  `json:"driver_number"`
		Position *int `json:"position"`
	}
)

// reader converts a payload into seasons.
type reader struct {
	names source.Equivalents
	p     *payload
	out   season.Facts
	notes []string
}

func (r *reader) facts() (season.Facts, error) {
	for year := r.p.Year; year <= r.p.To; year++ {
		s := season.Season{Year: year}
		for _, m := range r.p.Meetings {
			if m.Year != year || !strings.HasSuffix(m.Name, "Grand Prix") { // a test is a meeting too
				continue
			}
			round, ok, err := r.round(m)
			if err != nil {
				return season.Facts{}, fmt.Errorf("%s of %d: %w", m.Name, year, err)
			}
			if ok {
				s.Rounds = append(s.Rounds, round)
			}
		}
		if len(s.Rounds) == 0 {
			continue
		}
		slices.SortStableFunc(s.Rounds, func(a, b season.Round) int { return a.Start.Compare(b.Start) })
		for i := range s.Rounds {
			s.Rounds[i].Number = i + 1
		}
		r.out.Seasons = append(r.out.Seasons, s)
	}
	slices.Sort(r.notes)
	return r.out, nil
}

// round converts a meeting. A cancelled one gives no round.
func (r *reader) round(m meeting) (season.Round, bool, error) {
	var sessions []session
	var race *session
	for i, s := range r.p.Sessions {
		if s.Meeting != m.Key {
			continue
		}
		sessions = append(sessions, s)
		if s.Name == raceName {
			race = &r.p.Sessions[i]
		}
	}
	if race == nil || race.Cancelled {
		r.note("%d %s: %s", m.Year, m.Name, map[bool]string{true: "no race", false: "cancelled"}[race == nil])
		return season.Round{}, false, nil
	}
	gp, errGP := r.names.GrandPrix(m.Name, m.Year)
	circuit, errCircuit := r.names.Circuit(race.Circuit, m.Year)
	if err := errors.Join(errGP, errCircuit); err != nil {
		return season.Round{}, false, err
	}
	round := season.Round{GrandPrix: gp, Name: m.Name, Circuit: circuit, Start: race.Start.UTC(), Date: season.DayOf(race.Start)}
	for _, s := range sessions {
		if kind, ok := kinds[s.Name]; ok && !s.Cancelled {
			round.Sessions = append(round.Sessions, season.Session{Kind: kind, Date: season.DayOf(s.Start), Start: s.Start.UTC()})
			round.Sprint = round.Sprint || kind == season.Sprint
		}
	}
	season.SortSessions(round.Sessions)
	for _, s := range sessions {
		if err := r.outcome(&round, s, race); err != nil {
			return round, false, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return round, true, nil
}

func (r *reader) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// outcome adds the outcome of a session that is over. A contradictory outcome is left out with a
// note: the source is still writing it, or copied it wrong.
func (r *reader) outcome(round *season.Round, s session, race *session) error {
	about := fmt.Sprintf("%d %s, %s", s.Year, round.Name, s.Name)
	if slices.Contains(r.p.Overdue, s.Key) {
		r.note("%s: no result yet, though it was over at %s", about, s.End.UTC().Format("2006-01-02 15:04 UTC"))
	}
	results, err := rows[resultRow](r.p.Details["session_result"][s.Key])
	if err != nil {
		return err
	}
	grid, err := rows[gridRow](r.p.Details["starting_grid"][s.Key])
	if err != nil {
		return err
	}
	if len(results) == 0 && len(grid) == 0 {
		return nil
	}
	drivers, err := r.drivers(s, race)
	switch {
	case errors.As(err, new(*unclear)):
		r.note("%s: %v", about, err)
		return nil
	case err != nil:
		return err
	}
	if len(grid) > 0 {
		if slots, err := drivers.grid(grid); err != nil {
			r.note("%s: the grid is left out: %v", about, err)
		} else {
			round.Grid = slots
		}
	}
	if len(results) == 0 {
		return nil
	}
	if err := plausible(results); err != nil {
		r.note("%s: the result is left out: %v", about, err)
		return nil
	}
	switch s.Name {
	case qualifyingName:
		round.Qualifying, err = drivers.qualifying(results)
	case sprintName:
		round.SprintResults, err = drivers.classification(results)
	case raceName:
		round.Results, err = drivers.classification(results)
	}
	if err != nil {
		r.note("%s: the result is left out: %v", about, err)
	}
	if s.Name == raceName || s.Name == qualifyingName && len(round.Entries) == 0 {
		round.Entries = drivers.entries(results)
	}
	return nil
}

func rows[T any](said []sayings) ([]T, error) {
	out := make([]T, len(said))
	for i, row := range said {
		text, err := json.Marshal(row)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &out[i]); err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
	}
	return out, nil
}

// unclear says that rows do not identify a driver.
type unclear struct{ text string }

func (e *unclear) Error() string { return e.text }

// cars are the drivers of a session by car number.
type cars map[int]car

type car struct {
	driver season.DriverID
	team   season.TeamID
}

// drivers returns the cars of a session, or of its race if the session has none. A number with two
// drivers or teams is an *unclear error: OpenF1 lists both in a week with a change of drivers.
func (r *reader) drivers(s session, race *session) (cars, error) {
	said := r.p.Details["drivers"][s.Key]
	if len(said) == 0 {
		said = r.p.Details["drivers"][race.Key]
	}
	list, err := rows[driverRow](said)
	if err != nil {
		return nil, err
	}
	all := make(cars)
	teams := make(map[season.DriverID]season.TeamID)
	for _, row := range list {
		if row.Acronym == nil || row.Team == nil {
			return nil, &unclear{fmt.Sprintf("car %d is without a driver's acronym or a team", row.Number)}
		}
		driver, errDriver := r.names.Driver(*row.Acronym, s.Year)
		team, errTeam := r.names.Team(*row.Team, s.Year)
		if err := errors.Join(errDriver, errTeam); err != nil {
			return nil, err
		}
		if other, twice := all[row.Number]; twice && other != (car{driver, team}) {
			return nil, &unclear{fmt.Sprintf("car %d is that of %s of %s and of %s of %s", row.Number, other.driver, other.team, driver, team)}
		}
		if other, twice := teams[driver]; twice && other != team {
			return nil, &unclear{fmt.Sprintf("%s drives for %s and for %s", driver, other, team)}
		}
		all[row.Number], teams[driver] = car{driver, team}, team
	}
	if len(all) == 0 {
		return nil, &unclear{"nobody is said to drive"}
	}
	return all, nil
}

func (c cars) find(number int) (car, error) {
	found, ok := c[number]
	if !ok {
		return car{}, fmt.Errorf("nobody drives car %d; there are %v", number, slices.Sorted(maps.Keys(c)))
	}
	return found, nil
}

// plausible returns an error for an impossible classification: a disqualified car with a place, or
// gaps that shrink from place to place, which is a sign of two swapped columns.
func plausible(rows []resultRow) error {
	last, leader := -1.0, 0
	for _, row := range slices.SortedFunc(slices.Values(rows), func(a, b resultRow) int { return cmp.Compare(position(a), position(b)) }) {
		if row.DSQ && position(row) != 0 {
			return fmt.Errorf("car %d is disqualified and has P%d", row.Number, position(row))
		}
		var gap float64
		if position(row) == 0 || json.Unmarshal(row.Gap, &gap) != nil || string(row.Gap) == "null" {
			continue
		}
		if gap < last {
			return fmt.Errorf("car %d in P%d is %g s behind, car %d ahead of it %g s", row.Number, position(row), gap, leader, last)
		}
		last, leader = gap, row.Number
	}
	return nil
}

func position(row resultRow) int {
	if row.Position == nil {
		return 0
	}
	return *row.Position
}

func (c cars) grid(rows []gridRow) ([]season.GridSlot, error) {
	var slots []season.GridSlot
	for _, row := range rows {
		car, err := c.find(row.Number)
		if err != nil {
			return nil, err
		}
		slot := season.GridSlot{Driver: car.driver, Team: car.team}
		if row.Position != nil {
			slot.Position = *row.Position
		}
		slots = append(slots, slot)
	}
	season.SortGrid(slots)
	return slots, nil
}

func (c cars) qualifying(rows []resultRow) ([]season.QualifyingRow, error) {
	var out []season.QualifyingRow
	for _, row := range rows {
		car, err := c.find(row.Number)
		if err != nil {
			return nil, err
		}
		q := season.QualifyingRow{Driver: car.driver, Team: car.team, Position: position(row)}
		var segments []*float64
		if json.Unmarshal(row.Duration, &segments) == nil { // optional
			for i, s := range segments[:min(3, len(segments))] {
				if s != nil {
					q.Segments[i] = seconds(*s)
				}
			}
		}
		out = append(out, q)
	}
	return out, nil
}

func seconds(s float64) time.Duration {
	return max(0, time.Duration(s*float64(time.Second))).Round(time.Millisecond)
}

func (c cars) classification(rows []resultRow) ([]season.Result, error) {
	var out []season.Result
	for _, row := range rows {
		car, err := c.find(row.Number)
		if err != nil {
			return nil, err
		}
		result := season.Result{Driver: car.driver, Team: car.team, Position: position(row)}
		if row.Points == nil {
			return nil, fmt.Errorf("car %d is without points", row.Number)
		}
		result.Points = *row.Points
		if row.Laps != nil {
			result.Laps = max(0, *row.Laps)
		}
		var gap, duration float64
		if json.Unmarshal(row.Gap, &gap) == nil && json.Unmarshal(row.Duration, &duration) == nil && result.Position > 0 {
			result.Time = seconds(duration)
		}
		if result.Position == 0 {
			switch {
			case row.DSQ:
				result.Outcome = season.Disqualified
			case row.DNS:
				result.Outcome = season.DidNotStart
			case row.DNF:
				result.Outcome = season.DidNotFinish
			default:
				result.Outcome = season.NotClassified
			}
		}
		out = append(out, result)
	}
	return out, nil
}

func (c cars) entries(rows []resultRow) []season.Entry {
	var entries []season.Entry
	for _, row := range rows {
		if car, ok := c[row.Number]; ok {
			entries = append(entries, season.Entry{Driver: car.driver, Team: car.team, Number: row.Number})
		}
	}
	slices.SortStableFunc(entries, func(a, b season.Entry) int { return cmp.Compare(a.Number, b.Number) })
	return entries
}
