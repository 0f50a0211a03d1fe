package render

import (
	"cmp"
	"math"
	"slices"

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
				i, rows = len(rows), append(rows, wire.DriverProgress{
					Driver: y.Codes()[s.Driver.ID], DriverID: id, Name: s.Driver.Name,
					Decisions: championshipDecisions(y, func(d *almanac.ChampionshipDecision) bool {
						return !d.Constructors && d.Competitor == string(s.Driver.ID)
					}),
				})
			}
			row := &rows[i]
			row.Team, row.TeamID, row.TeamColour = s.Team.Name, string(s.Team.ID), s.Colour
			row.Rounds = append(row.Rounds, roundProgress(after.Round, s.Tally))
		}
	}
	last := func(p wire.DriverProgress) int { return p.Rounds[len(p.Rounds)-1].Position }
	slices.SortStableFunc(rows, func(a, b wire.DriverProgress) int { return season.ComparePlaces(last(a), last(b)) })
	return rows
}

func constructorProgress(y *almanac.Year) []wire.ConstructorProgress {
	type constructor struct {
		team  season.TeamID
		maker season.EngineID
		entry int
	}
	rows, index := []wire.ConstructorProgress{}, map[constructor]int{}
	for _, after := range y.Progress() {
		listed := map[constructor]bool{} // the first row is of the entry that goes on
		for _, s := range after.Constructors {
			is := constructor{s.Team.ID, s.Maker, y.Entry(s.Team.ID, after.Round)}
			i, known := index[is]
			if !known {
				i = len(rows)
				index[is], rows = i, append(rows, wire.ConstructorProgress{
					Team: s.Team.Name, TeamID: string(s.Team.ID), Entry: is.entry,
					Decisions: championshipDecisions(y, func(d *almanac.ChampionshipDecision) bool {
						return d.Is(true, string(s.Team.ID), s.Maker) && (d.Round == nil || y.Entry(s.Team.ID, d.Round) == is.entry)
					}),
				})
			}
			if listed[is] {
				continue
			}
			listed[is] = true
			rows[i].TeamColour, rows[i].Engine = s.Colour, s.Engine
			rows[i].Rounds = append(rows[i].Rounds, roundProgress(after.Round, s.Tally))
		}
	}
	ended := func(p wire.ConstructorProgress) bool { // another entry of the team goes on
		return slices.ContainsFunc(rows, func(o wire.ConstructorProgress) bool { return o.TeamID == p.TeamID && o.Entry > p.Entry })
	}
	last := func(p wire.ConstructorProgress) int {
		if ended(p) {
			return 0
		}
		return p.Rounds[len(p.Rounds)-1].Position
	}
	slices.SortStableFunc(rows, func(a, b wire.ConstructorProgress) int { return season.ComparePlaces(last(a), last(b)) })
	return rows
}

func ruling(c *ledger.Championship) wire.Ruling {
	switch {
	case c.Excluded:
		return wire.ExcludedFrom
	case c.NewEntry:
		return wire.EnteredAnew
	case c.Points > 0:
		return wire.PointsAdded
	}
	return wire.PointsTaken
}

func championshipDecisions(y *almanac.Year, about func(*almanac.ChampionshipDecision) bool) (list []wire.ChampionshipDecision) {
	all := y.Decisions()
	for i := range all {
		if d := &all[i]; about(d) {
			list = append(list, wire.ChampionshipDecision{
				SessionKey: d.Session, Decision: ruling(&d.Championship), Points: math.Abs(d.Points), By: role(d.Actor), At: wire.Instant(d.At), Reason: d.Reason,
			})
		}
	}
	return list
}

func roundProgress(r *almanac.Round, t almanac.Tally) wire.RoundProgress {
	return wire.RoundProgress{SessionKey: r.Session, Round: r.Facts.Number, Position: t.Position, Points: t.Shown(), Wins: t.Wins}
}

// subtotal is the share of one season in the documents about all seasons. It is immutable.
type subtotal struct {
	drivers, teams statistics
	codes          map[season.DriverID]string
}

func subtotalOf(a *almanac.Almanac, y *almanac.Year) *subtotal {
	return almanac.Shared(a, y, makeSubtotal)
}

func makeSubtotal(y *almanac.Year) *subtotal {
	p := &subtotal{drivers: statistics{by: map[string]*career{}}, teams: statistics{teams: true, by: map[string]*career{}}}
	if y.Codes != nil {
		p.codes = y.Codes()
	}
	for _, r := range y.Rounds {
		if r.Result != nil {
			race, sprint := verifiedRows(r)
			p.drivers.race(r, race, sprint)
			p.teams.race(r, race, sprint)
		}
	}
	p.drivers.title(y)
	p.teams.title(y)
	return p
}

// careers lists the careers of drivers or constructors in a season, or in all seasons those for which among holds.
func careers(a *almanac.Almanac, v catalog.Variant, among func(*almanac.Almanac, wire.Career) bool) []wire.Career {
	sum := statistics{teams: v.Type == catalog.ConstructorsType, by: map[string]*career{}}
	for _, y := range a.Years {
		switch {
		case v.Year != 0 && v.Year != y.Year:
		case sum.teams:
			sum.add(&subtotalOf(a, y).teams)
		default:
			sum.add(&subtotalOf(a, y).drivers)
		}
	}
	return slices.DeleteFunc(sum.list(), func(c wire.Career) bool { return v.Year == 0 && !among(a, c) })
}

// add adds the careers of a later season.
func (c *statistics) add(later *statistics) {
	for id, l := range later.by {
		sum := c.by[id]
		if sum == nil {
			sum = &career{Career: wire.Career{ID: l.ID, Name: l.Name, Country: l.Country, FirstSession: l.FirstSession}}
			c.by[id] = sum
		}
		sum.Starts, sum.Classified, sum.Retired = sum.Starts+l.Starts, sum.Classified+l.Classified, sum.Retired+l.Retired
		sum.Wins, sum.Podiums, sum.Poles = sum.Wins+l.Wins, sum.Podiums+l.Podiums, sum.Poles+l.Poles
		sum.FastestLaps, sum.Titles, sum.LastSession = sum.FastestLaps+l.FastestLaps, sum.Titles+l.Titles, l.LastSession
		sum.scored = append(sum.scored, l.scored...)
		for _, p := range l.partners {
			sum.startWith(p)
		}
	}
}

// list returns the careers: most wins first, then most podiums, then most starts.
func (c *statistics) list() []wire.Career {
	records := make([]wire.Career, 0, len(c.by))
	for _, career := range c.by {
		for _, points := range career.scored {
			career.Points += points
		}
		for _, p := range career.partners {
			if c.teams {
				career.Drivers = append(career.Drivers, wire.CareerDriver{DriverID: p.id, Name: p.name, Starts: p.starts})
			} else {
				career.Teams = append(career.Teams, wire.CareerTeam{TeamID: p.id, Name: p.name, Starts: p.starts})
			}
		}
		records = append(records, career.Career)
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
	by    map[string]*career // by identifier
}

// career is a career in the making. Its points are added up at the end, because another order would give another
// rounding.
type career struct {
	wire.Career
	scored   []float64 // in each classification
	partners []partner // in the order of the first race
}

// partner is a team in the career of a driver, or a driver in that of a team.
type partner struct {
	id, name string
	starts   int // of the driver for the team
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
		c.at(r, row.Driver, row.Team).score(row)
		switch before := best[of(row)]; {
		case before == nil:
			best[of(row)], drivers = row, append(drivers, of(row))
		case season.ComparePlaces(row.Position, before.Position) < 0:
			best[of(row)] = row
		}
	}
	for i := range sprint {
		c.at(r, sprint[i].Driver, sprint[i].Team).score(&sprint[i])
	}
	started, places := map[*career]bool{}, map[[2]any]bool{}
	for _, driver := range drivers {
		row := best[driver]
		career := c.at(r, row.Driver, row.Team)
		if (&season.Result{Outcome: row.Status}).Started() {
			if !started[career] {
				started[career] = true
				career.Starts++
			}
			if c.teams {
				career.startWith(partner{r.Lasting(row.Driver), r.Driver(row.Driver).Name, 1})
			} else {
				career.startWith(partner{string(row.Team), r.Team(row.Team).Name, 1})
			}
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
	if pole, ok := onPole(r); ok {
		c.at(r, pole.driver, pole.team).Poles++
	}
	for _, lap := range r.Facts.FastestLaps { // the source's first has the fastest, which several drivers may share
		i := slices.IndexFunc(race, func(row ledger.Row) bool { return row.Driver == lap.Driver })
		if lap.Time > 0 && lap.Time == r.Facts.FastestLaps[0].Time && i >= 0 {
			c.at(r, race[i].Driver, race[i].Team).FastestLaps++
		}
	}
}

// onPole returns the driver and the team on pole. In 2022 the sprint set the grid, but the pole was that of qualifying.
func onPole(r *almanac.Round) (car, bool) {
	if r.Year == 2022 && r.Facts.Sprint {
		i := slices.IndexFunc(r.Facts.Qualifying, func(q season.QualifyingRow) bool { return q.Position == 1 })
		if i < 0 {
			return car{}, false
		}
		return car{r.Facts.Qualifying[i].Driver, r.Facts.Qualifying[i].Team}, true
	}
	i := slices.IndexFunc(r.Facts.Grid, func(g season.GridSlot) bool { return g.Position == 1 })
	if i < 0 {
		return car{}, false
	}
	return car{r.Facts.Grid[i].Driver, r.Facts.Grid[i].Team}, true
}

// title counts the title of a season that is over: every round is verified or cancelled.
func (c *statistics) title(y *almanac.Year) {
	if len(y.Rounds) == 0 || slices.ContainsFunc(y.Rounds, func(r *almanac.Round) bool { return r.State != almanac.Finished && r.State != almanac.Cancelled }) {
		return
	}
	champion := ""
	if c.teams {
		if table := y.Constructors(); len(table) > 0 && table[0].Position == 1 {
			champion = string(table[0].Team.ID)
		}
	} else if table := y.Drivers(); len(table) > 0 && table[0].Position == 1 {
		champion = y.Rounds[0].Lasting(table[0].Driver.ID)
	}
	if career := c.by[champion]; career != nil {
		career.Titles++
	}
}

// at returns the career of a driver or of the team, whose last race this is so far.
func (c *statistics) at(r *almanac.Round, driver season.DriverID, team season.TeamID) *career {
	id := r.Lasting(driver)
	if c.teams {
		id = string(team)
	}
	found := c.by[id]
	if found == nil {
		found = &career{Career: wire.Career{ID: id, FirstSession: r.Session}}
		if c.teams {
			found.Name, found.Country = r.Team(team).Name, r.Team(team).Country
		} else {
			found.Name, found.Country = r.Driver(driver).Name, r.Driver(driver).Country
		}
		c.by[id] = found
	}
	found.LastSession = r.Session
	return found
}

func (c *career) score(row *ledger.Row) {
	if row.Points != 0 {
		c.scored = append(c.scored, row.Points)
	}
}

func (c *career) startWith(p partner) {
	i := slices.IndexFunc(c.partners, func(known partner) bool { return known.id == p.id })
	if i < 0 {
		c.partners = append(c.partners, p)
		return
	}
	c.partners[i].starts += p.starts
}
