package check

import (
	"reflect"

	"gridcast/schemas/wire"
)

// overviewRounds makes the rounds of an overview from the calendar and the predictions of a season.
func overviewRounds(calendar []wire.CalendarEntry, picks []wire.PredictionRecord) []wire.OverviewRound {
	frozen, rounds := map[int64]*wire.Prediction{}, make([]wire.OverviewRound, 0, len(calendar))
	for i := range picks {
		frozen[picks[i].SessionKey] = &picks[i].Prediction
	}
	for _, e := range calendar {
		rounds = append(rounds, wire.OverviewRound{
			SessionKey: e.SessionKey, GPName: e.GPName, Circuit: e.Circuit, Country: e.Country, Date: e.Date, DateStart: e.DateStart,
			Status: e.Status, Prediction: frozen[e.SessionKey], Winner: e.Winner,
		})
	}
	return rounds
}

// checkOverview compares the overview of a season with its other documents.
func (c *content) checkOverview(complain complain) {
	want := wire.Overview{Season: c.year, Rounds: overviewRounds(c.calendar, c.picks), Drivers: c.overview.Drivers, TeamMates: c.headToHead}
	if !reflect.DeepEqual(c.overview, want) || len(c.overview.Drivers) != len(c.drivers) {
		complain("rounds, number of drivers or team-mates differ from the calendar, the predictions, the standings or the comparisons")
		return
	}
	for i, d := range c.overview.Drivers {
		if s := c.drivers[i]; d.Driver != s.Driver || d.Standing == nil || *d.Standing != (wire.Figures{Position: s.Position, Wins: s.Wins, Podiums: s.Podiums, Points: s.Points}) {
			complain("%s has %+v, the standings have %+v", d.Driver, d.Standing, s)
		}
	}
}
