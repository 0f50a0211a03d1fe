package jolpica

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/source/media"
)

// text is a JSON string, or a number as it is written. Null, absent and empty are equal.
type text string

func (t *text) UnmarshalJSON(data []byte) error {
	switch {
	case string(data) == "null":
		*t = ""
	case data[0] == '"':
		return json.Unmarshal(data, (*string)(t))
	case data[0] == '{', data[0] == '[':
		return fmt.Errorf("%.40s is no scalar", data)
	default:
		*t = text(data)
	}
	return nil
}

type race struct {
	Season, Round, RaceName, Date, Time text
	Circuit                             struct {
		CircuitID   text
		CircuitName text
		Location    struct{ Locality, Country text }
	}
	FirstPractice, SecondPractice, ThirdPractice, Qualifying, Sprint, SprintQualifying, SprintShootout *moment
	Results, SprintResults                                                                             []row
	QualifyingResults                                                                                  []row
}

type moment struct{ Date, Time text }

type row struct {
	Number, Position, PositionText, Points, Laps, Status text
	Grid                                                 *text // "0" is the pit lane; null and absent mean unknown
	Q1, Q2, Q3                                           text
	Driver                                               struct{ DriverID, Code, GivenName, FamilyName, Nationality text }
	Constructor                                          struct{ ConstructorID, Name text }
	Time                                                 struct{ Millis text }
	FastestLap                                           struct {
		Rank, Lap text
		Time      struct{ Time text }
	}
}

// standings is the table of a championship after a round.
type standings struct {
	Season, Round                         text
	DriverStandings, ConstructorStandings []row
}

// reader joins pages into seasons, because a race may begin on one page and end on the next.
type reader struct {
	names source.Equivalents
	out   season.Facts
	races map[int]map[text]*race // by year and round
	lists []standings
	notes []string
}

func (r *reader) page(p page) error {
	var body struct {
		MRData struct {
			RaceTable      struct{ Races []race }
			StandingsTable struct{ StandingsLists []standings }
		}
	}
	if err := json.Unmarshal(p.Body, &body); err != nil {
		return err
	}
	r.lists = append(r.lists, body.MRData.StandingsTable.StandingsLists...)
	year := r.races[p.Year]
	if year == nil {
		year = make(map[text]*race)
		r.races[p.Year] = year
	}
	for _, said := range body.MRData.RaceTable.Races {
		if said.Season != text(strconv.Itoa(p.Year)) {
			return fmt.Errorf("round %s is of the season %q", said.Round, said.Season)
		}
		known := year[said.Round]
		if known == nil {
			year[said.Round] = &said
			continue
		}
		known.Results = append(known.Results, said.Results...)
		known.SprintResults = append(known.SprintResults, said.SprintResults...)
		known.QualifyingResults = append(known.QualifyingResults, said.QualifyingResults...)
	}
	return nil
}

func (r *reader) facts() (season.Facts, error) {
	for year, races := range r.races {
		s := season.Season{Year: year}
		for _, said := range races {
			round, err := r.round(year, said)
			if err != nil {
				return season.Facts{}, fmt.Errorf("round %s of %d, %s: %w", said.Round, year, said.RaceName, err)
			}
			s.Rounds = append(s.Rounds, round)
		}
		if len(s.Rounds) == 0 {
			continue
		}
		slices.SortFunc(s.Rounds, func(a, b season.Round) int { return a.StartsAt().Compare(b.StartsAt()) })
		s.Colours = media.Default().Colours[year]
		r.out.Seasons = append(r.out.Seasons, s)
	}
	slices.SortFunc(r.out.Seasons, func(a, b season.Season) int { return cmp.Compare(a.Year, b.Year) })
	slices.Sort(r.notes)
	return r.out, nil
}

func (r *reader) round(year int, said *race) (season.Round, error) {
	gp, errGP := r.names.GrandPrix(string(said.RaceName), year)
	circuit, errCircuit := r.names.Circuit(string(said.Circuit.CircuitID), year)
	number, errNumber := strconv.Atoi(string(said.Round))
	date, start, errStart := instant(said.Date, said.Time)
	err := errors.Join(errGP, errCircuit, errNumber, errStart)
	if err != nil {
		return season.Round{}, err
	}
	r.out.Circuits[circuit] = season.Circuit{
		ID: circuit, Name: string(said.Circuit.CircuitName), Locality: string(said.Circuit.Location.Locality), Country: string(said.Circuit.Location.Country),
	}
	round := season.Round{
		Number: number, GrandPrix: gp, Name: string(said.RaceName), Circuit: circuit, Date: date, Start: start, Sprint: said.Sprint != nil,
	}
	for _, s := range []struct {
		kind season.SessionKind
		at   *moment
	}{
		{season.Practice1, said.FirstPractice},
		{season.Practice2, said.SecondPractice},
		{season.Practice3, said.ThirdPractice},
		{season.SprintQualifying, cmp.Or(said.SprintQualifying, said.SprintShootout)},
		{season.Sprint, said.Sprint},
		{season.Qualifying, said.Qualifying},
	} {
		if s.at == nil || s.at.Date == "" {
			continue
		}
		day, at, err := instant(s.at.Date, s.at.Time)
		if err != nil {
			return round, fmt.Errorf("%s: %w", s.kind, err)
		}
		round.Sessions = append(round.Sessions, season.Session{Kind: s.kind, Date: day, Start: at})
	}
	season.SortSessions(round.Sessions)
	if round.Qualifying, err = r.qualifying(year, said.QualifyingResults); err != nil {
		return round, fmt.Errorf("qualifying: %w", err)
	}
	if round.SprintResults, round.SprintGrid, err = r.classification(year, said.SprintResults); err != nil {
		return round, fmt.Errorf("sprint: %w", err)
	}
	if round.Results, round.Grid, err = r.classification(year, said.Results); err != nil {
		return round, fmt.Errorf("result: %w", err)
	}
	if len(said.Results) > 0 && round.Grid == nil {
		r.notes = append(r.notes, fmt.Sprintf("%d %s: the result is without the grid", year, said.RaceName))
	}
	entered := said.Results
	if len(entered) == 0 {
		entered = said.QualifyingResults
	}
	if round.Entries, err = r.entries(year, entered); err != nil {
		return round, fmt.Errorf("entries: %w", err)
	}
	round.FastestLaps = r.fastest(year, said.Results)
	return round, r.standings(year, said, &round)
}

// standings adds the tables after the last round that was held.
func (r *reader) standings(year int, said *race, round *season.Round) error {
	for _, list := range r.lists {
		if list.Season != said.Season || list.Round != said.Round {
			continue
		}
		for i := range list.DriverStandings {
			w := &list.DriverStandings[i]
			driver, err := r.names.Driver(string(w.Driver.DriverID), year)
			points, errPoints := pointsOf(w.Points)
			if err := errors.Join(err, errPoints); err != nil {
				return fmt.Errorf("driver standings: %w", err)
			}
			position, _ := strconv.Atoi(string(w.Position)) // an unranked driver has none
			round.DriverStandings = append(round.DriverStandings, season.DriverStanding{Driver: driver, Position: position, Points: points})
		}
		for i := range list.ConstructorStandings {
			w := &list.ConstructorStandings[i]
			team, err := r.names.Team(string(w.Constructor.ConstructorID), year)
			points, errPoints := pointsOf(w.Points)
			if err := errors.Join(err, errPoints); err != nil {
				return fmt.Errorf("constructor standings: %w", err)
			}
			position, _ := strconv.Atoi(string(w.Position))
			round.TeamStandings = append(round.TeamStandings, season.TeamStanding{Team: team, Position: position, Points: points})
		}
	}
	return nil
}

// instant reads a day and an hour in UTC. An unknown hour is zero.
func instant(date, hour text) (day, at time.Time, err error) {
	if day, err = time.Parse(time.DateOnly, string(date)); err != nil {
		return day, at, err
	}
	if hour == "" {
		return day, at, nil
	}
	at, err = time.Parse("2006-01-02 15:04:05Z", string(date)+" "+string(hour))
	return day, at, err
}

// entrant returns the driver and the team of a row, and keeps their names.
func (r *reader) entrant(year int, w *row) (season.DriverID, season.TeamID, error) {
	driver, errDriver := r.names.Driver(string(w.Driver.DriverID), year)
	team, errTeam := r.names.Team(string(w.Constructor.ConstructorID), year)
	country, errCountry := r.names.Country(string(w.Driver.Nationality))
	if err := errors.Join(errDriver, errTeam, errCountry); err != nil {
		return "", "", err
	}
	first, last := string(w.Driver.GivenName), string(w.Driver.FamilyName)
	r.out.Drivers[driver] = season.Driver{
		ID: driver, Name: strings.TrimSpace(first + " " + last), FirstName: first, LastName: last, Abbreviation: string(w.Driver.Code), Country: country,
	}
	r.out.Teams[team] = season.Team{ID: team, Name: string(w.Constructor.Name)}
	return driver, team, nil
}

// number reads a required count.
func number(what string, t text) (int, error) {
	n, err := strconv.Atoi(string(t))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s %q is not a number", what, t)
	}
	return n, nil
}

// outcomes are the letters in place of a position, as the documentation of Ergast lists them. "-" is
// a ranked driver without a classification.
var outcomes = map[text]season.Outcome{
	"R": season.DidNotFinish, "D": season.Disqualified, "W": season.DidNotStart, "F": season.DidNotQualify,
	"E": season.ExcludedBeforeStart, "N": season.NotClassified, "-": season.NotClassified,
}

// classification converts the rows of a race or sprint, and the grid in them. There is no grid if a
// starter has no place on it.
func (r *reader) classification(year int, rows []row) ([]season.Result, []season.GridSlot, error) {
	results := make([]season.Result, 0, len(rows))
	grid := make([]season.GridSlot, 0, len(rows))
	whole := true
	for i := range rows {
		w := &rows[i]
		driver, team, err := r.entrant(year, w)
		if err != nil {
			return nil, nil, err
		}
		points, err := pointsOf(w.Points)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", driver, err)
		}
		result := season.Result{Driver: driver, Team: team, Points: points, Outcome: outcomes[w.PositionText]}
		if result.Outcome == "" {
			if result.Position, err = number("position", w.PositionText); err != nil || result.Position == 0 {
				return nil, nil, fmt.Errorf("%s: position %q", driver, w.PositionText)
			}
		} else if w.Status != "Retired" {
			result.Reason = string(w.Status)
		}
		result.Laps, _ = strconv.Atoi(string(w.Laps)) // optional: 0 if it is absent
		if millis, err := strconv.ParseInt(string(w.Time.Millis), 10, 64); err == nil && millis > 0 && w.Status == "Finished" {
			result.Time = time.Duration(millis) * time.Millisecond
		}
		switch {
		case result.Outcome == season.DidNotStart && (w.Grid == nil || *w.Grid == "" || *w.Grid == "0"):
		case w.Grid == nil || *w.Grid == "":
			whole = false
		default:
			if result.Grid, err = number("grid", *w.Grid); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", driver, err)
			}
			grid = append(grid, season.GridSlot{Driver: driver, Team: team, Position: result.Grid})
		}
		results = append(results, result)
	}
	if len(rows) == 0 {
		return nil, nil, nil
	}
	if !whole {
		return results, nil, nil
	}
	season.SortGrid(grid)
	return results, grid, nil
}

// pointsOf reads points: a finite number from 0 on.
func pointsOf(t text) (float64, error) {
	points, err := strconv.ParseFloat(string(t), 64)
	if err != nil || !(points >= 0) || math.IsInf(points, 1) {
		return 0, fmt.Errorf("points %q", t)
	}
	return points, nil
}

func (r *reader) qualifying(year int, rows []row) ([]season.QualifyingRow, error) {
	var out []season.QualifyingRow
	for i := range rows {
		w := &rows[i]
		driver, team, err := r.entrant(year, w)
		if err != nil {
			return nil, err
		}
		q := season.QualifyingRow{Driver: driver, Team: team}
		if w.Position != "" { // a driver without a time may have no position
			if q.Position, err = number("position", w.Position); err != nil {
				return nil, fmt.Errorf("%s: %w", driver, err)
			}
		}
		for n, t := range []text{w.Q1, w.Q2, w.Q3} {
			q.Segments[n] = lapTime(t)
		}
		out = append(out, q)
	}
	return out, nil
}

// lapTime reads a lap time. Other text gives no time, because times are optional.
func lapTime(t text) time.Duration {
	lap, _ := season.ParseLapTime(string(t))
	return lap
}

func (r *reader) entries(year int, rows []row) ([]season.Entry, error) {
	var entries []season.Entry
	for i := range rows {
		driver, team, err := r.entrant(year, &rows[i])
		if err != nil {
			return nil, err
		}
		// The number on the car may differ from permanentNumber.
		n, err := number("number", rows[i].Number)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", driver, err)
		}
		entries = append(entries, season.Entry{Driver: driver, Team: team, Number: n})
	}
	slices.SortStableFunc(entries, func(a, b season.Entry) int { return cmp.Compare(a.Number, b.Number) })
	return entries, nil
}

// fastest lists the fastest laps by rank. It skips rows without a rank.
func (r *reader) fastest(year int, rows []row) []season.FastestLap {
	ranked := make(map[int]season.FastestLap)
	for i := range rows {
		w := &rows[i]
		rank, errRank := strconv.Atoi(string(w.FastestLap.Rank))
		lap, errLap := strconv.Atoi(string(w.FastestLap.Lap))
		driver, errDriver := r.names.Driver(string(w.Driver.DriverID), year)
		if errors.Join(errRank, errLap, errDriver) == nil && rank > 0 {
			ranked[rank] = season.FastestLap{Driver: driver, Lap: lap, Time: lapTime(w.FastestLap.Time.Time)}
		}
	}
	var laps []season.FastestLap
	for rank := range len(rows) + 1 {
		if lap, ok := ranked[rank]; ok {
			laps = append(laps, lap)
		}
	}
	return laps
}
