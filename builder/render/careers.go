package render

import (
	"cmp"
	"slices"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

func driverProgress(y *almanac.Year) []wire.DriverProgress {
	rows := []wire.DriverProgress{}
	for _, after := range y.Progress() {
		for _, s := range after.Drivers {
			id := after.Round.Lasting(s.Driver.ID)
			i := slices.IndexFunc(rows, func(p wire.DriverProgress) bool { return p.DriverID == id })
			if i < 0 {
				i, rows = len(rows), append(rows, wire.DriverProgress{Driver: y.Codes()[s.Driver.ID], DriverID: id, Name: s.Driver.Name})
			}
			row := &rows[i]
			row.Team, row.TeamID, row.TeamColour = s.Team.Name, string(s.Team.ID), s.Colour
			row.Rounds = append(row.Rounds, roundProgress(after.Round, s.Tally))
		}
	}
	order(rows, func(p wire.DriverProgress) []wire.RoundProgress { return p.Rounds })
	return rows
}

func constructorProgress(y *almanac.Year) []wire.ConstructorProgress {
	rows := []wire.ConstructorProgress{}
	for _, after := range y.Progress() {
		listed := map[int]bool{} // a constructor may have two rows, of which one is unranked
		for _, s := range after.Constructors {
			i := slices.IndexFunc(rows, func(p wire.ConstructorProgress) bool { return p.TeamID == string(s.Team.ID) && p.Engine == s.Engine })
			if i < 0 {
				i, rows = len(rows), append(rows, wire.ConstructorProgress{Team: s.Team.Name, TeamID: string(s.Team.ID), Engine: s.Engine})
			}
			if listed[i] {
				continue
			}
			listed[i] = true
			rows[i].TeamColour = s.Colour
			rows[i].Rounds = append(rows[i].Rounds, roundProgress(after.Round, s.Tally))
		}
	}
	order(rows, func(p wire.ConstructorProgress) []wire.RoundProgress { return p.Rounds })
	return rows
}

func roundProgress(r *almanac.Round, t almanac.Tally) wire.RoundProgress {
	return wire.RoundProgress{SessionKey: r.Session, Round: r.Facts.Number, Position: t.Position, Points: t.Points, Wins: t.Wins}
}

// order sorts competitors by their last position, the unranked ones last.
func order[T any](rows []T, roundsOf func(T) []wire.RoundProgress) {
	last := func(row T) uint {
		rounds := roundsOf(row)
		return uint(rounds[len(rounds)-1].Position - 1) // 0 becomes the largest
	}
	slices.SortStableFunc(rows, func(a, b T) int { return cmp.Compare(last(a), last(b)) })
}

// bothCareers are the careers of drivers and of constructors.
type bothCareers struct{ drivers, teams []wire.Career }

// countCareers counts the careers of some seasons in one pass.
func countCareers(years []almanac.Year) bothCareers {
	drivers, teams := statistics{by: map[string]*wire.Career{}}, statistics{teams: true, by: map[string]*wire.Career{}}
	for i := range years {
		for j := range years[i].Rounds {
			if r := &years[i].Rounds[j]; r.Result != nil {
				race, sprint := verifiedRows(r)
				drivers.race(r, race, sprint)
				teams.race(r, race, sprint)
			}
		}
		drivers.title(&years[i])
		teams.title(&years[i])
	}
	return bothCareers{drivers.list(), teams.list()}
}

// careers lists the careers of drivers or constructors in a season, or in all seasons those for which among holds.
func careers(a *almanac.Almanac, v catalog.Variant, among func(*almanac.Almanac, wire.Career) bool) []wire.Career {
	var both bothCareers
	if i := slices.IndexFunc(a.Years, func(y almanac.Year) bool { return y.Year == v.Year }); i >= 0 {
		both = countCareers(a.Years[i : i+1])
	} else {
		both = almanac.Shared(a, countCareers)
	}
	all := both.drivers
	if v.Type == catalog.ConstructorsType {
		all = both.teams
	}
	if v.Year != 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(c wire.Career) bool { return !among(a, c) })
}

// list returns the careers: most wins first, then most podiums, then most starts.
func (c *statistics) list() []wire.Career {
	records := make([]wire.Career, 0, len(c.by))
	for _, career := range c.by {
		records = append(records, *career)
	}
	slices.SortFunc(records, func(a, b wire.Career) int {
		return cmp.Or(cmp.Compare(b.Wins, a.Wins), cmp.Compare(b.Podiums, a.Podiums), cmp.Compare(b.Starts, a.Starts), cmp.Compare(a.ID, b.ID))
	})
	return records
}

// former reports whether a career has no verified race of the current season or the one before. A result changes none of
// these careers, so a version with a new result does not write them again.
func former(a *almanac.Almanac, c wire.Career) bool {
	return c.LastSession < int64(a.Current-1)*catalog.KeysPerSeason
}

func present(a *almanac.Almanac, c wire.Career) bool { return !former(a, c) }

// car is a driver's car in a race; without a team, all cars of the driver.
type car struct {
	driver season.DriverID
	team   season.TeamID
}

// statistics counts the careers of drivers or of teams.
type statistics struct {
	teams bool
	by    map[string]*wire.Career // by identifier
}

// race counts a verified race with its sprint. A driver of several cars counts once, with the best place.
func (c *statistics) race(r *almanac.Round, race, sprint []ledger.Row) {
	best := map[car]*ledger.Row{}
	var drivers []car
	of := func(row *ledger.Row) car {
		if c.teams { // a driver may have driven the cars of two teams
			return car{row.Driver, row.Team}
		}
		return car{driver: row.Driver}
	}
	for i := range race {
		row := &race[i]
		c.of(r, row).Points += row.Points
		switch before := best[of(row)]; {
		case before == nil:
			best[of(row)], drivers = row, append(drivers, of(row))
		case uint(row.Position-1) < uint(before.Position-1): // 0 becomes the largest
			best[of(row)] = row
		}
	}
	for i := range sprint {
		c.of(r, &sprint[i]).Points += sprint[i].Points
	}
	started, places := map[*wire.Career]bool{}, map[[2]any]bool{}
	for _, driver := range drivers {
		row := best[driver]
		career := c.of(r, row)
		if (&season.Result{Outcome: row.Status}).Started() {
			if !started[career] {
				started[career] = true
				career.Starts++
			}
			c.together(r, career, row)
		}
		if place := [2]any{career, row.Position}; c.teams && row.Position > 0 {
			if places[place] { // two drivers shared the car
				continue
			}
			places[place] = true
		}
		switch {
		case row.Position > 0:
			career.Classified++
		case row.Status == season.DidNotFinish:
			career.Retired++
		}
		if row.Position == 1 {
			career.Wins++
		}
		if row.Position >= 1 && row.Position <= 3 {
			career.Podiums++
		}
	}
	if r.Year == 2022 && r.Facts.Sprint { // that year the sprint set the grid, but the pole was that of qualifying
		if i := slices.IndexFunc(r.Facts.Qualifying, func(q season.QualifyingRow) bool { return q.Position == 1 }); i >= 0 {
			c.at(r, r.Facts.Qualifying[i].Driver, r.Facts.Qualifying[i].Team).Poles++
		}
	} else if i := slices.IndexFunc(r.Facts.Grid, func(g season.GridSlot) bool { return g.Position == 1 }); i >= 0 {
		c.at(r, r.Facts.Grid[i].Driver, r.Facts.Grid[i].Team).Poles++
	}
	var fastest time.Duration
	for _, lap := range r.Facts.FastestLaps {
		if lap.Time > 0 && (fastest == 0 || lap.Time < fastest) {
			fastest = lap.Time
		}
	}
	for _, lap := range r.Facts.FastestLaps { // several drivers may share it
		i := slices.IndexFunc(race, func(row ledger.Row) bool { return row.Driver == lap.Driver })
		if fastest > 0 && lap.Time == fastest && i >= 0 {
			c.of(r, &race[i]).FastestLaps++
		}
	}
}

// title counts the title of a season that is over: every round is verified or cancelled.
func (c *statistics) title(y *almanac.Year) {
	if len(y.Rounds) == 0 || slices.ContainsFunc(y.Rounds, func(r almanac.Round) bool { return r.State != almanac.Finished && r.State != almanac.Cancelled }) {
		return
	}
	champion := ""
	if c.teams {
		for _, s := range y.Constructors() {
			if s.Position == 1 {
				champion = string(s.Team.ID)
			}
		}
	} else {
		for _, s := range y.Drivers() {
			if s.Position == 1 {
				champion = y.Rounds[0].Lasting(s.Driver.ID)
			}
		}
	}
	if career := c.by[champion]; career != nil {
		career.Titles++
	}
}

func (c *statistics) of(r *almanac.Round, row *ledger.Row) *wire.Career {
	return c.at(r, row.Driver, row.Team)
}

// at returns the career of a driver or of the team, whose last race this is so far.
func (c *statistics) at(r *almanac.Round, driver season.DriverID, team season.TeamID) *wire.Career {
	id := r.Lasting(driver)
	if c.teams {
		id = string(team)
	}
	career := c.by[id]
	if career == nil {
		career = &wire.Career{ID: id, FirstSession: r.Session}
		if c.teams {
			career.Name, career.Country = r.Team(team).Name, r.Team(team).Country
		} else {
			career.Name, career.Country = r.Driver(driver).Name, r.Driver(driver).Country
		}
		c.by[id] = career
	}
	career.LastSession = r.Session
	return career
}

// together counts a start of a driver for a team.
func (c *statistics) together(r *almanac.Round, career *wire.Career, row *ledger.Row) {
	if c.teams {
		id := r.Lasting(row.Driver)
		i := slices.IndexFunc(career.Drivers, func(d wire.CareerDriver) bool { return d.DriverID == id })
		if i < 0 {
			i, career.Drivers = len(career.Drivers), append(career.Drivers, wire.CareerDriver{DriverID: id, Name: r.Driver(row.Driver).Name})
		}
		career.Drivers[i].Starts++
		return
	}
	i := slices.IndexFunc(career.Teams, func(t wire.CareerTeam) bool { return t.TeamID == string(row.Team) })
	if i < 0 {
		i, career.Teams = len(career.Teams), append(career.Teams, wire.CareerTeam{TeamID: string(row.Team), Name: r.Team(row.Team).Name})
	}
	career.Teams[i].Starts++
}
