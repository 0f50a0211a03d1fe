package jolpica

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/source/media"
)

// text is a JSON string, or another value as it is written, which no cell accepts. Null, absent and empty are equal.
type text string

func (t *text) UnmarshalJSON(data []byte) error {
	switch {
	case string(data) == "null":
		*t = ""
	case data[0] == '"':
		return json.Unmarshal(data, (*string)(t))
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
	races map[int]map[[2]text]*race // by year, and by round and name, because cancelled rounds may have no number
	lists []standings
	notes []string

	unread []season.Unread
}

func (r *reader) page(p page) error {
	var body struct {
		MRData struct {
			RaceTable      struct{ Races []race }
			StandingsTable struct{ StandingsLists []standings }
		}
	}
	// A value of another type in a row stays empty, and the check of its cell names it.
	wrongType := new(json.UnmarshalTypeError)
	if err := json.Unmarshal(p.Body, &body); err != nil && (!errors.As(err, &wrongType) || strings.Count(wrongType.Field, ".") < 3) {
		return err
	}
	r.lists = append(r.lists, body.MRData.StandingsTable.StandingsLists...)
	year := r.races[p.Year]
	if year == nil {
		year = make(map[[2]text]*race)
		r.races[p.Year] = year
	}
	for _, said := range body.MRData.RaceTable.Races {
		if said.Season != text(strconv.Itoa(p.Year)) {
			r.unread = append(r.unread, season.Unread{
				Year: p.Year, Section: season.CalendarSection, Reason: fmt.Sprintf("%s of %d, round %s: season %q", p.Resource, p.Year, said.Round, said.Season),
			})
			continue
		}
		of := [2]text{said.Round, said.RaceName}
		known := year[of]
		if known == nil {
			year[of] = &said
			continue
		}
		known.Results = append(known.Results, said.Results...)
		known.SprintResults = append(known.SprintResults, said.SprintResults...)
		known.QualifyingResults = append(known.QualifyingResults, said.QualifyingResults...)
	}
	return nil
}

// facts returns everything that can be read. The other parts are in r.unread.
func (r *reader) facts() season.Facts {
	for _, year := range slices.Sorted(maps.Keys(r.races)) { // the latest season names drivers and teams
		races, s := r.races[year], season.Season{Year: year}
		rounds := make(map[season.GrandPrixID][]text)
		order := slices.SortedFunc(maps.Keys(races), func(a, b [2]text) int { return slices.Compare(a[:], b[:]) })
		for _, of := range order {
			if gp, err := r.names.GrandPrix(string(of[1]), year); err == nil {
				rounds[gp] = append(rounds[gp], of[0])
			}
		}
		for _, of := range order {
			said := races[of]
			gp, err := r.names.GrandPrix(string(said.RaceName), year)
			if len(rounds[gp]) > 1 {
				err = fmt.Errorf("raceName %q: it is the name of the rounds %q", said.RaceName, rounds[gp])
			}
			if err != nil {
				r.unread = append(r.unread, season.Unread{Year: year, Section: season.CalendarSection, Reason: fmt.Sprintf("races of %d, round %s: %v", year, said.Round, err)})
				continue
			}
			s.Rounds = append(s.Rounds, r.round(year, gp, said))
		}
		if len(s.Rounds) == 0 {
			continue
		}
		slices.SortFunc(s.Rounds, func(a, b season.Round) int { return a.StartsAt().Compare(b.StartsAt()) })
		r.out.Seasons = append(r.out.Seasons, s)
	}
	slices.Sort(r.notes)
	r.out.CheckThings(func(kind, id string, err error) {
		r.out.Forget(kind, id)
		r.unread = append(r.unread, season.Unread{Reason: err.Error()})
	})
	media.Default().Apply(&r.out)
	season.SortUnread(r.unread)
	return r.out
}

// resourceOf holds the resource of each part of a round that is not of the races.
var resourceOf = map[season.Section]string{
	season.Section(season.Qualifying): "qualifying", season.Section(season.Sprint): "sprint", season.ResultSection: "results", season.FastestLapsSection: "results",
	season.DriverStandingsSection: "driverstandings", season.TeamStandingsSection: "constructorstandings",
}

// round converts a race. It leaves out the parts that cannot be read, and the tables that follow from them.
func (r *reader) round(year int, gp season.GrandPrixID, said *race) season.Round {
	unread := make(map[season.Section]bool)
	refuse := func(section season.Section, err error) {
		if err != nil && !unread[section] {
			unread[section] = true
			r.unread = append(r.unread, season.Unread{Year: year, GrandPrix: gp, Section: section, Reason: fmt.Sprintf("%s of %d, round %s, %v", cmp.Or(resourceOf[section], "races"), year, said.Round, err)})
		}
	}
	circuit, errCircuit := r.names.Circuit(string(said.Circuit.CircuitID), year)
	number, errNumber := count("round", said.Round)
	refuse(season.CalendarSection, errors.Join(errCircuit, errNumber))
	if errCircuit == nil {
		r.out.Circuits[circuit] = season.Circuit{
			ID: circuit, Name: string(said.Circuit.CircuitName), Locality: string(said.Circuit.Location.Locality), Country: string(said.Circuit.Location.Country),
		}
	}
	round := season.Round{Number: number, GrandPrix: gp, Name: string(said.RaceName), Circuit: circuit, Sprint: said.Sprint != nil}
	var err error
	round.Date, round.Start, err = instant(said.Date, said.Time)
	refuse(season.StartSection, err)
	round.Sessions = sessionsOf(said, refuse)
	// table converts the rows of a table one by one.
	table := func(section season.Section, rows []row, convert func(w *row) error) {
		for i := range rows {
			if err := convert(&rows[i]); err != nil {
				refuse(section, fmt.Errorf("row %d: %w", i+1, err))
			}
		}
	}
	table(season.Section(season.Qualifying), said.QualifyingResults, func(w *row) error { return r.qualifying(year, w, &round.Qualifying) })
	table(season.Section(season.Sprint), said.SprintResults, func(w *row) error { return r.classified(year, w, &round.SprintResults, &round.SprintGrid) })
	table(season.ResultSection, said.Results, func(w *row) error { return r.classified(year, w, &round.Results, &round.Grid) })
	ranked := make(map[int]season.FastestLap)
	table(season.FastestLapsSection, said.Results, func(w *row) error { return r.fastest(year, w, ranked) })
	for _, rank := range slices.Sorted(maps.Keys(ranked)) {
		round.FastestLaps = append(round.FastestLaps, ranked[rank])
	}
	for _, list := range r.lists {
		if list.Season == said.Season && list.Round == said.Round {
			table(season.DriverStandingsSection, list.DriverStandings, func(w *row) error { return r.driverStanding(year, w, &round.DriverStandings) })
			table(season.TeamStandingsSection, list.ConstructorStandings, func(w *row) error { return r.teamStanding(year, w, &round.TeamStandings) })
		}
	}
	slices.SortStableFunc(round.Qualifying, func(a, b season.QualifyingRow) int { return cmp.Compare(uint(a.Position-1), uint(b.Position-1)) }) // without a place: last
	finished(round.Results)
	finished(round.SprintResults)
	round.SprintGrid, _ = wholeGrid(said.SprintResults, round.SprintGrid)
	var whole bool
	if round.Grid, whole = wholeGrid(said.Results, round.Grid); !whole {
		r.notes = append(r.notes, fmt.Sprintf("%d %s: the result is without the grid", year, said.RaceName))
	}
	entered, from := said.Results, season.ResultSection
	if len(entered) == 0 {
		entered, from = said.QualifyingResults, season.Section(season.Qualifying)
	}
	table(from, entered, func(w *row) error { return r.entry(year, w, &round.Entries) })
	slices.SortStableFunc(round.Entries, func(a, b season.Entry) int { return cmp.Compare(a.Number, b.Number) })
	r.out.CheckRound(year, &round, refuse)
	// A table that follows from another waits with it.
	for _, of := range [][2]season.Section{
		{season.ResultSection, season.GridSection}, {season.Section(season.Sprint), season.SprintGridSection}, {from, season.EntriesSection},
	} {
		if unread[of[0]] {
			round.Clear(of[1])
		}
	}
	for section := range unread {
		round.Clear(section)
	}
	return round
}

// sessionsOf returns the sessions of a weekend that Jolpica has dates of.
func sessionsOf(said *race, refuse func(season.Section, error)) (sessions []season.Session) {
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
			refuse(season.SessionsSection, fmt.Errorf("%s: %w", s.kind, err))
		}
		sessions = append(sessions, season.Session{Kind: s.kind, Date: day, Start: at})
	}
	season.SortSessions(sessions)
	return sessions
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

// count reads a number from 0 on.
func count(what string, t text) (int, error) {
	n, err := strconv.Atoi(string(t))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s %q is not a number", what, t)
	}
	return n, nil
}

// optional reads a number from 0 on, and 0 for an empty cell.
func optional(what string, t text) (int, error) { return count(what, cmp.Or(t, "0")) }

// lapTime reads a lap time, and 0 for an empty cell.
func lapTime(what string, t text) (time.Duration, error) {
	lap, ok := season.ParseLapTime(string(t))
	if !ok && t != "" {
		return 0, fmt.Errorf("%s %q is no time", what, t)
	}
	return lap, nil
}

// pointsOf reads points: a finite number from 0 on.
func pointsOf(t text) (float64, error) {
	points, err := strconv.ParseFloat(string(t), 64)
	if err != nil || !(points >= 0) || math.IsInf(points, 1) {
		return 0, fmt.Errorf("points %q is not a number", t)
	}
	return points, nil
}

// outcomes are the letters in place of a position, as the documentation of Ergast lists them. "-" is
// a ranked driver without a classification.
var outcomes = map[text]season.Outcome{
	"R": season.DidNotFinish, "D": season.Disqualified, "W": season.DidNotStart, "F": season.DidNotQualify,
	"E": season.ExcludedBeforeStart, "N": season.NotClassified, "-": season.NotClassified,
}

// finished removes the times of cars that retired and were classified: Jolpica gives them the time of their last lap, which
// is below the winner's or of fewer laps.
func finished(rows []season.Result) {
	for i := range rows {
		if rows[i].Time < rows[0].Time || rows[i].Laps < rows[0].Laps {
			rows[i].Time = 0
		}
	}
}

// classified adds a row of a race or sprint, and its place on the grid.
func (r *reader) classified(year int, w *row, results *[]season.Result, grid *[]season.GridSlot) error {
	driver, team, err := r.entrant(year, w)
	points, errPoints := pointsOf(w.Points)
	laps, errLaps := optional("laps", w.Laps)
	result := season.Result{Driver: driver, Team: team, Points: points, Laps: laps, Outcome: outcomes[w.PositionText]}
	var errPlace, errGrid error
	if result.Outcome == "" {
		if result.Position, errPlace = count("position", w.PositionText); result.Position == 0 {
			errPlace = fmt.Errorf("position %q is neither a place nor a letter of %v", w.PositionText, slices.Sorted(maps.Keys(outcomes)))
		}
	} else if w.Status != "Retired" {
		result.Reason = string(w.Status)
	}
	if millis, err := strconv.ParseInt(string(w.Time.Millis), 10, 64); err == nil && millis > 0 && w.Status == "Finished" {
		result.Time = time.Duration(millis) * time.Millisecond
	}
	if w.onGrid() {
		if result.Grid, errGrid = count("grid", *w.Grid); errGrid == nil {
			*grid = append(*grid, season.GridSlot{Driver: driver, Team: team, Position: result.Grid})
		}
	}
	*results = append(*results, result)
	return errors.Join(err, errPoints, errLaps, errPlace, errGrid)
}

// onGrid reports whether a row has a place on the grid. A driver without a start may have 0 there.
func (w *row) onGrid() bool {
	return w.Grid != nil && *w.Grid != "" && (*w.Grid != "0" || outcomes[w.PositionText] != season.DidNotStart)
}

// wholeGrid returns a grid by place. whole is false, and there is no grid, if a starter has no place on it.
func wholeGrid(rows []row, grid []season.GridSlot) (sorted []season.GridSlot, whole bool) {
	for i := range rows {
		if !rows[i].onGrid() && outcomes[rows[i].PositionText] != season.DidNotStart {
			return nil, false
		}
	}
	season.SortGrid(grid)
	return grid, true
}

func (r *reader) qualifying(year int, w *row, rows *[]season.QualifyingRow) error {
	driver, team, err := r.entrant(year, w)
	position, errPlace := optional("position", w.Position) // a driver without a time may have none
	q := season.QualifyingRow{Driver: driver, Team: team, Position: position}
	fault := errors.Join(err, errPlace)
	for n, t := range []text{w.Q1, w.Q2, w.Q3} {
		q.Segments[n], err = lapTime(fmt.Sprintf("Q%d", n+1), t)
		fault = errors.Join(fault, err)
	}
	*rows = append(*rows, q)
	return fault
}

func (r *reader) entry(year int, w *row, entries *[]season.Entry) error {
	driver, team, err := r.entrant(year, w)
	number, errNumber := count("number", w.Number) // on the car, which may differ from permanentNumber
	*entries = append(*entries, season.Entry{Driver: driver, Team: team, Number: number})
	return errors.Join(err, errNumber)
}

// fastest adds a fastest lap at its rank. Rows without a rank have none.
func (r *reader) fastest(year int, w *row, ranked map[int]season.FastestLap) error {
	rank, errRank := optional("rank", w.FastestLap.Rank)
	if rank == 0 {
		return errRank
	}
	driver, err := r.names.Driver(string(w.Driver.DriverID), year)
	lap, errLap := optional("lap", w.FastestLap.Lap)
	at, errTime := lapTime("time", w.FastestLap.Time.Time)
	ranked[rank] = season.FastestLap{Driver: driver, Lap: lap, Time: at}
	return errors.Join(err, errLap, errTime)
}

func (r *reader) driverStanding(year int, w *row, rows *[]season.DriverStanding) error {
	driver, err := r.names.Driver(string(w.Driver.DriverID), year)
	points, errPoints := pointsOf(w.Points)
	position, errPlace := optional("position", w.Position) // an unranked one has none
	*rows = append(*rows, season.DriverStanding{Driver: driver, Position: position, Points: points})
	return errors.Join(err, errPoints, errPlace)
}

func (r *reader) teamStanding(year int, w *row, rows *[]season.TeamStanding) error {
	team, err := r.names.Team(string(w.Constructor.ConstructorID), year)
	points, errPoints := pointsOf(w.Points)
	position, errPlace := optional("position", w.Position) // an unranked one has none
	*rows = append(*rows, season.TeamStanding{Team: team, Position: position, Points: points})
	return errors.Join(err, errPoints, errPlace)
}
