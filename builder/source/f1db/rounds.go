package f1db

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gridcast/builder/season"
)

// round converts a race. It leaves out the parts that cannot be read. A race without a Grand Prix is no round.
func (c *converter) round(r *race) (season.Round, bool) {
	name, known := c.names[r.GrandPrix]
	if !known {
		c.refuse(r, season.CalendarSection, fmt.Errorf("%s: unknown grand prix %q", c.place(r, season.CalendarSection), r.GrandPrix))
		return season.Round{}, false
	}
	round := season.Round{GrandPrix: r.GrandPrix}
	unread := make(map[season.Section]bool)
	refuse := func(section season.Section, err error) {
		if !unread[section] {
			c.refuse(r, section, fmt.Errorf("%s: %w", c.place(r, section), err))
		}
		unread[section] = true
	}
	for _, f := range c.rel.faults {
		if f.race == r.ID {
			unread[f.section] = true
			c.refuse(r, f.section, f.err)
		}
	}
	for _, u := range c.report.Unread {
		if u.Year == r.Year && u.GrandPrix == r.GrandPrix {
			unread[u.Section] = true
		}
	}
	circuit, ok := c.things.Circuits[r.Circuit]
	if !ok {
		refuse(season.CalendarSection, fmt.Errorf("unknown circuit %q", r.Circuit))
	}
	if !unread[season.CalendarSection] {
		c.facts.Circuits[circuit.ID] = circuit
		round.Number, round.Name, round.Circuit = r.Round, name, circuit.ID
		round.Street, round.CourseKm = r.CircuitType == "STREET", r.CourseLength
		round.ScheduledLaps = cmp.Or(r.ScheduledLaps, r.Laps) // the release says so only where they differ
		round.Sprint = r.QualifyingFormat == "SPRINT_RACE" || r.SprintFormat != "" || r.SprintDate != "" || r.SprintLaps > 0 ||
			len(c.rel.rows[sprintResults][r.ID]) > 0
	}
	var err error
	if !unread[season.StartSection] {
		if round.Date, round.Start, err = instant(r.Date, r.Time); err != nil {
			refuse(season.StartSection, err)
		}
	}
	if !unread[season.SessionsSection] {
		if round.Sessions, err = sessions(r); err != nil {
			refuse(season.SessionsSection, err)
		}
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
	round.FastestLaps = c.fastestLaps(r.ID)
	round.PitStops = c.pitStops(r.ID)
	round.DriverStandings = c.driverStandings(driverStandings, c.rel.rows[driverStandings][r.ID])
	round.TeamStandings = c.teamStandings(teamStandings, c.rel.rows[teamStandings][r.ID])
	c.facts.CheckRound(r.Year, &round, func(section season.Section, err error) {
		refuse(section, fmt.Errorf("season %d, round %d: %w", r.Year, r.Round, err))
	})
	// Entries follow from three tables. Without one of them they would be others.
	if unread[season.GridSection] || unread[season.Section(season.Qualifying)] || unread[season.ResultSection] {
		round.Entries = nil
	}
	for section := range unread {
		round.Clear(section)
	}
	c.sheets(r)
	return round, true
}

// place names the file of a part of a race, and the row of a race in a release.
func (c *converter) place(r *race, section season.Section) string {
	for _, t := range raceTables {
		switch file := c.rel.files[t][r.ID]; {
		case t.section != section:
		case file != "":
			return file
		case c.rel.files == nil:
			return t.file()
		}
	}
	at := slices.IndexFunc(c.rel.races, func(other race) bool { return other.ID == r.ID })
	return cmp.Or(c.rel.files[racesTable][r.ID], c.at(racesTable, at+1))
}

// sheets keeps the tables of a race as the source has them.
func (c *converter) sheets(r *race) {
	for _, t := range raceTables {
		rows := c.rel.rows[t][r.ID]
		if len(rows) == 0 || t == driverStandings || t == teamStandings {
			continue
		}
		file := cmp.Or(c.rel.files[t][r.ID], t.file())
		sheet := season.Sheet{Year: r.Year, GrandPrix: r.GrandPrix, Section: t.section, File: file, Unknown: c.rel.unknown[file], Rows: make([]season.SheetRow, len(rows))}
		for i := range rows {
			w := &rows[i]
			sheet.Rows[i] = season.SheetRow{
				Driver: w.Driver, Team: w.Team, Engine: w.Engine, Number: c.number(w), Place: w.PositionText, Laps: w.Laps,
				Time: millis(cmp.Or(w.Q3, w.Q2, w.Q1, w.Time)), Gap: w.Gap, Interval: w.Interval, Reason: w.Reason, Grid: w.GridText, NoLaps: file != t.file() && w.LapsText == "",
			}
		}
		c.report.sheets = append(c.report.sheets, sheet)
	}
}

// sessions returns the sessions of known date in order of time. Where qualifying was held in
// two sessions, the last of them is its date.
func sessions(r *race) ([]season.Session, error) {
	qualifyingDate, qualifyingTime := r.QualifyingDate, r.QualifyingTime
	for _, s := range [][2]string{{r.Qualifying2Date, r.Qualifying2Time}, {r.Qualifying1Date, r.Qualifying1Time}} {
		if qualifyingDate == "" && s[0] != "" {
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
		if s.date == "" && s.hour != "" {
			return nil, fmt.Errorf("%s: time %q without a date", s.kind, s.hour)
		}
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
