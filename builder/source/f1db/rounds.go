package f1db

import (
	"cmp"
	"fmt"
	"time"

	"gridcast/builder/season"
)

func (c *converter) round(r *race) (season.Round, error) {
	name, ok := c.names[r.GrandPrix]
	if !ok {
		return season.Round{}, fmt.Errorf("unknown grand prix %q", r.GrandPrix)
	}
	circuit, ok := c.things.Circuits[r.Circuit]
	if !ok {
		return season.Round{}, fmt.Errorf("unknown circuit %q", r.Circuit)
	}
	c.facts.Circuits[circuit.ID] = circuit
	day, start, err := instant(r.Date, r.Time)
	if err != nil {
		return season.Round{}, err
	}
	round := season.Round{
		Number: r.Round, GrandPrix: r.GrandPrix, Name: name, Circuit: circuit.ID,
		Street: r.CircuitType == "STREET", CourseKm: r.CourseLength,
		ScheduledLaps: cmp.Or(r.ScheduledLaps, r.Laps), // the release says so only where they differ
		Date:          day, Start: start,
		Sprint: r.QualifyingFormat == "SPRINT_RACE" || r.SprintFormat != "" || r.SprintDate != "" || r.SprintLaps > 0 ||
			len(c.rel.rows[sprintResults][r.ID]) > 0,
	}
	if round.Sessions, err = sessions(r); err != nil {
		return season.Round{}, err
	}
	round.Entries = c.entries(r.ID)
	for i, t := range practice {
		round.Practice[i] = c.timedLaps(t, r.ID)
	}
	round.Qualifying = c.qualifying(qualifying, r.ID)
	round.SprintQualifying = c.qualifying(sprintQualifying, r.ID)
	round.SprintGrid = c.grid(sprintGrid, r.ID)
	round.SprintResults = c.results(sprintResults, r.ID, round.Entries)
	round.Grid = c.grid(startingGrid, r.ID)
	round.Results = c.results(raceResults, r.ID, round.Entries)
	for t, sprint := range map[table]bool{raceResults: false, sprintResults: true} {
		for i := range c.rel.rows[t][r.ID] {
			row := &c.rel.rows[t][r.ID][i]
			c.report.cars[season.Car{Year: r.Year, GrandPrix: r.GrandPrix, Sprint: sprint, Driver: row.Driver}] = c.number(row)
		}
	}
	round.FastestLaps = c.fastestLaps(r.ID)
	round.PitStops = c.pitStops(r.ID)
	round.DriverStandings = c.driverStandings(driverStandings, c.rel.rows[driverStandings][r.ID])
	round.TeamStandings = c.teamStandings(teamStandings, c.rel.rows[teamStandings][r.ID])
	return round, nil
}

// sessions returns the sessions of known date in order of time. Where qualifying was held in
// two sessions, the last of them is its date.
func sessions(r *race) ([]season.Session, error) {
	qualifyingDate, qualifyingTime := r.QualifyingDate, r.QualifyingTime
	for _, s := range [][2]string{{r.Qualifying2Date, r.Qualifying2Time}, {r.Qualifying1Date, r.Qualifying1Time}} {
		if qualifyingDate == "" {
			qualifyingDate, qualifyingTime = s[0], s[1]
		}
	}
	var list []season.Session
	for _, s := range []struct {
		kind       season.SessionKind
		date, hour string
	}{
		{season.Practice1, r.Practice1Date, r.Practice1Time},
		{season.Practice2, r.Practice2Date, r.Practice2Time},
		{season.Practice3, r.Practice3Date, r.Practice3Time},
		{season.Practice4, r.Practice4Date, r.Practice4Time},
		{season.SprintQualifying, r.SprintQualifyingDate, r.SprintQualifyingTime},
		{season.Sprint, r.SprintDate, r.SprintTime},
		{season.Qualifying, qualifyingDate, qualifyingTime},
	} {
		if s.date == "" {
			continue
		}
		day, start, err := instant(s.date, s.hour)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.kind, err)
		}
		list = append(list, season.Session{Kind: s.kind, Date: day, Start: start})
	}
	season.SortSessions(list)
	return list, nil
}

// instant reads a day, and the start if the hour is known. Both are UTC.
func instant(date, hour string) (day, start time.Time, err error) {
	if day, err = time.Parse(time.DateOnly, date); err != nil {
		return day, start, fmt.Errorf("date %q is not of the form 2006-01-02", date)
	}
	if hour == "" {
		return day, start, nil
	}
	clock, err := time.Parse("15:04", hour)
	if err != nil {
		return day, start, fmt.Errorf("time %q is not of the form 15:04", hour)
	}
	return day, day.Add(time.Duration(clock.Hour())*time.Hour + time.Duration(clock.Minute())*time.Minute), nil
}
