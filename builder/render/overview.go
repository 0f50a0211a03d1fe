package render

import (
	"cmp"
	"slices"

	"gridcast/builder/almanac"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// overview shows a season. If year is 0, it shows the latest season with a result, the rounds of the seasons after it, the
// grid and the careers.
func overview(a *almanac.Almanac, year int) wire.Overview {
	o := wire.NewOverview(cmp.Or(year, a.Past()))
	for _, y := range a.Years {
		if y.Year == o.Season || year == 0 && y.Year > o.Season {
			for k, e := range calendar(y) {
				o.Rounds = append(o.Rounds, wire.OverviewRound{
					SessionKey: e.SessionKey, GPName: e.GPName, Circuit: e.Circuit, Country: e.Country, Date: e.Date, DateStart: e.DateStart,
					Status: e.Status, Prediction: prediction(y, y.Rounds[k].Pick), Winner: e.Winner,
				})
			}
		}
	}
	y, ok := a.Year(o.Season)
	if !ok || len(y.Rounds) == 0 {
		return o
	}
	o.TeamMates = headToHead(y)
	for _, s := range y.Drivers() {
		o.Drivers = append(o.Drivers, wire.OverviewDriver{
			Driver: y.Codes()[s.Driver.ID], DriverID: y.Rounds[0].Lasting(s.Driver.ID), Name: s.Driver.Name, LastName: s.Driver.LastName,
			Country: s.Driver.Country, Team: s.Team.Name, TeamColour: s.Colour,
			Standing: &wire.Figures{Position: s.Position, Wins: s.Wins, Podiums: s.Podiums, Points: s.Shown()},
		})
	}
	if year != 0 {
		return o
	}
	of := func(id string) int {
		return slices.IndexFunc(o.Drivers, func(d wire.OverviewDriver) bool { return d.DriverID == id })
	}
	for _, e := range a.Grid {
		id := y.Rounds[0].Lasting(e.Driver.ID)
		i := of(id)
		if i < 0 {
			i, o.Drivers = len(o.Drivers), append(o.Drivers, wire.OverviewDriver{DriverID: id, Name: e.Driver.Name, LastName: e.Driver.LastName, Country: e.Driver.Country})
		}
		d := &o.Drivers[i]
		d.Driver, d.Number, d.Team, d.TeamColour = e.Code, e.Number, e.Team.Name, e.Colour
	}
	for _, c := range careers(a, catalog.Variant{Type: catalog.DriversType}, present) {
		if i := of(c.ID); i >= 0 {
			o.Drivers[i].Career = &wire.Figures{Starts: c.Starts, Titles: c.Titles, Wins: c.Wins, Podiums: c.Podiums, Points: c.Points}
		}
	}
	return o
}
