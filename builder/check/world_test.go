package check_test

import (
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// world is a version of two small seasons: one race of 2024 and the first of 2025 are over, the second of
// 2025 is cancelled and the third is to come. A test changes it before it is rendered.
type world struct {
	seasons  map[int]*smallSeason
	grid     []wire.Driver
	changes  []wire.Change
	accuracy wire.Accuracy
	coming   []wire.CountdownRound
	forecast wire.ForecastRecord
}

type smallSeason struct {
	calendar []wire.CalendarEntry
	weekends []wire.Weekend
	results  []wire.ResultRecord
	picks    []wire.PredictionRecord
	chances  []wire.ProbabilityRecord
	drivers  []wire.DriverStanding
	teams    []wire.ConstructorStanding
	accuracy wire.Accuracy
	odds     wire.TitleOdds

	sessions []wire.WeekendSessions
	progress []wire.DriverProgress
	teamwise []wire.ConstructorProgress
	pairs    []wire.HeadToHead
	careers  []wire.Career
	overview func(*wire.Overview) // changes a value that follows from the others
}

// overviewOf returns the overview that follows from the other documents of a season.
func (s *smallSeason) overviewOf(year int) wire.Overview {
	o := wire.NewOverview(year)
	for _, e := range s.calendar {
		r := wire.OverviewRound{SessionKey: e.SessionKey, GPName: e.GPName, Circuit: e.Circuit, Country: e.Country, Date: e.Date, DateStart: e.DateStart, Status: e.Status, Winner: e.Winner}
		for i := range s.picks {
			if s.picks[i].SessionKey == e.SessionKey {
				r.Prediction = &s.picks[i].Prediction
			}
		}
		o.Rounds = append(o.Rounds, r)
	}
	for _, d := range s.drivers {
		o.Drivers = append(o.Drivers, wire.OverviewDriver{
			Driver: d.Driver, DriverID: d.Name, Name: d.Name, LastName: d.Name, Team: d.Team,
			Standing: &wire.Figures{Position: d.Position, Wins: d.Wins, Podiums: d.Podiums, Points: d.Points},
		})
	}
	o.TeamMates = append(o.TeamMates, s.pairs...)
	if s.overview != nil {
		s.overview(&o)
	}
	return o
}

var (
	renderedAt = time.Date(2025, 6, 9, 12, 0, 0, 0, time.UTC)
	known      = catalog.Known{Current: 2025, Seasons: []int{2024, 2025}}
)

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{seasons: map[int]*smallSeason{2024: newSeason(2024), 2025: newSeason(2025)}}
	s := w.seasons[2025]
	s.add(2, time.Date(2025, 6, 15, 13, 0, 0, 0, time.UTC), wire.Cancelled)
	s.add(3, time.Date(2025, 6, 22, 13, 0, 0, 0, time.UTC), wire.Scheduled)
	s.picks = append(s.picks, wire.PredictionRecord{
		SessionKey: 2025003, GPName: "Grand Prix 3",
		Prediction: wire.Prediction{Winner: "BOB", ConfidencePct: 600, Podium: wire.Podium{P1: "BOB", P2: "ANN", P3: "CAY"}},
	})
	w.grid = []wire.Driver{
		{Driver: "ANN", Name: "Ann", FirstName: "Ann", LastName: "A", Number: 1, Team: "Alpha", Country: "ITA"},
		{Driver: "BOB", Name: "Bob", FirstName: "Bob", LastName: "B", Number: 2, Team: "Beta", Country: "ITA"},
	}
	w.changes = []wire.Change{{
		SessionKey: 2025002, GPName: "Grand Prix 2", Kind: wire.RoundCancelled, At: wire.Instant(renderedAt), By: "operator",
		Old: &wire.ChangeState{Status: wire.Scheduled}, New: &wire.ChangeState{Status: wire.Cancelled},
	}}
	w.forecast = wire.ForecastRecord{
		SessionKey: 2025003, GPName: "Grand Prix 3", Date: "2025-06-22", Model: "m-1", Basis: "form", Podium: wire.Podium{P1: "ANN", P2: "BOB", P3: "CAY"},
		Drivers: []wire.ForecastChance{{Driver: "ANN", DriverID: "ann", WinPct: 600, PodiumPct: 1000}, {Driver: "BOB", DriverID: "bob", WinPct: 300, PodiumPct: 1000}, {Driver: "CAY", DriverID: "cay", WinPct: 100, PodiumPct: 1000}},
	}
	w.accuracy = wire.Accuracy{RacesEvaluated: 2, PreRace: wire.HitRates{WinnerHitRatePct: 1000, PodiumAccuracyPct: 1000}}
	round := must.Get(wire.NewCountdownRound(wire.NextRace{Name: "Grand Prix 3", Circuit: "Ring", Country: "Italy", DateStart: s.calendar[2].DateStart}))(t)
	w.coming = []wire.CountdownRound{round}
	return w
}

// newSeason has one race, which ANN has won before BOB and CAY, as predicted.
func newSeason(year int) *smallSeason {
	key := int64(year)*catalog.KeysPerSeason + 1
	podium, hit := wire.Podium{P1: "ANN", P2: "BOB", P3: "CAY"}, true
	s := &smallSeason{
		results: []wire.ResultRecord{{SessionKey: key, GPName: "Grand Prix 1", Revisions: []wire.Revision{}, Race: []wire.ResultRow{
			{Position: 1, Driver: "ANN", DriverID: "ann", Name: "Ann", Team: "Alpha", TeamID: "alpha", Status: wire.Classified, Points: 25},
			{Position: 2, Driver: "BOB", DriverID: "bob", Name: "Bob", Team: "Beta", TeamID: "beta", Status: wire.Classified, Points: 18},
		}}},
		picks: []wire.PredictionRecord{{
			SessionKey: key, GPName: "Grand Prix 1", Prediction: wire.Prediction{Winner: "ANN", ConfidencePct: 600, Podium: podium},
			Result: &wire.Result{Winner: "ANN", Podium: podium}, WinnerHit: &hit,
		}},
		chances: []wire.ProbabilityRecord{{
			SessionKey: key, GPName: "Grand Prix 1", Model: "v2", Basis: "grid", FrozenAt: wire.Instant(renderedAt),
			Drivers: []wire.DriverChance{
				{Driver: "ANN", DriverID: "ann", WinPct: 600, PodiumPct: 1000}, {Driver: "BOB", DriverID: "bob", WinPct: 300, PodiumPct: 1000}, {Driver: "CAY", DriverID: "cay", WinPct: 100, PodiumPct: 1000},
			},
		}},
		drivers: []wire.DriverStanding{
			{Position: 1, Driver: "ANN", Name: "Ann", Team: "Alpha", Points: 25, Wins: 1, Podiums: 1},
			{Position: 2, Driver: "BOB", Name: "Bob", Team: "Beta", Points: 18, Podiums: 1},
			{Driver: "CAY", Name: "Cay", Team: "Beta", Points: 20},
		},
		teams: []wire.ConstructorStanding{
			{Position: 1, Team: "Alpha", Points: 25, Wins: 1, Podiums: 1},
			{Position: 2, Team: "Beta", Engine: "V6", Points: 18, Podiums: 1},
			{Team: "Beta", Engine: "V6", Points: 3},
		},
		accuracy: wire.Accuracy{RacesEvaluated: 1, PreRace: wire.HitRates{WinnerHitRatePct: 1000, PodiumAccuracyPct: 1000}},
		odds: wire.TitleOdds{
			RacesCounted: 1, RacesRemaining: 1, Simulations: 100,
			Drivers:      []wire.DriverOdds{{Driver: "ANN", DriverID: "ann", Name: "Ann", Points: 25, TitlePct: 700, PointsLow: 25, PointsHigh: 50}, {Driver: "BOB", DriverID: "bob", Name: "Bob", Points: 18, TitlePct: 300, PointsLow: 18, PointsHigh: 43}},
			Constructors: []wire.ConstructorOdds{{Team: "Alpha", TeamID: "alpha", Points: 25, TitlePct: 1000, PointsLow: 25, PointsHigh: 50}},
		},
	}
	s.sessions = []wire.WeekendSessions{{
		SessionKey: key, GPName: "Grand Prix 1",
		Drivers:    []wire.SessionDriver{{DriverID: "Bob", Driver: "BOB", Name: "Bob", Team: "Beta", TeamID: "beta"}, {DriverID: "Cay", Driver: "CAY", Name: "Cay", Team: "Beta", TeamID: "beta"}},
		Qualifying: []wire.QualifyingRow{{Position: 1, DriverID: "Bob", Q1MS: 70_000}, {Position: 2, DriverID: "Cay", Q1MS: 70_100}},
	}}
	after := func(position int, points float64, wins int) []wire.RoundProgress {
		return []wire.RoundProgress{{SessionKey: key, Round: 1, Position: position, Points: points, Wins: wins}}
	}
	s.progress = []wire.DriverProgress{
		{Driver: "ANN", DriverID: "Ann", Name: "Ann", Team: "Alpha", TeamID: "alpha", Rounds: after(1, 25, 1)},
		{Driver: "BOB", DriverID: "Bob", Name: "Bob", Team: "Beta", TeamID: "beta", Rounds: after(2, 18, 0)},
		{Driver: "CAY", DriverID: "Cay", Name: "Cay", Team: "Beta", TeamID: "beta", Rounds: after(0, 20, 0)},
	}
	s.teamwise = []wire.ConstructorProgress{
		{Team: "Alpha", TeamID: "alpha", Rounds: after(1, 25, 1)}, {Team: "Beta", TeamID: "beta", Engine: "V6", Rounds: after(2, 18, 0)},
	}
	s.pairs = []wire.HeadToHead{{
		Team: "Beta", TeamID: "beta", QualifyingRounds: 1,
		First: wire.Teammate{Driver: "BOB", DriverID: "Bob", Name: "Bob", QualifyingAhead: 1}, Second: wire.Teammate{Driver: "CAY", DriverID: "Cay", Name: "Cay"},
	}}
	s.careers = []wire.Career{
		{ID: "Ann", Name: "Ann", Starts: 1, Wins: 1, Points: 25, FirstSession: key, LastSession: key},
		{ID: "Bob", Name: "Bob", Starts: 1, Points: 18, FirstSession: key, LastSession: key},
	}
	s.add(1, time.Date(year, 6, 1, 13, 0, 0, 0, time.UTC), wire.Finished)
	s.calendar[0].Winner = "ANN"
	return s
}

// add adds a round to the calendar and to the weekends.
func (s *smallSeason) add(number int, start time.Time, status wire.Status) {
	name, date := "Grand Prix "+string(rune('0'+number)), start.Format(time.DateOnly)
	key := int64(start.Year())*catalog.KeysPerSeason + int64(number)
	s.calendar = append(s.calendar, wire.CalendarEntry{
		Round: number, SessionKey: key, GPName: name, Circuit: "Ring", Locality: "Town", Country: "Italy",
		Date: date, DateStart: wire.Instant(start), Status: status,
	})
	s.weekends = append(s.weekends, wire.Weekend{
		SessionKey: key, Round: number, GPName: name, GPID: "gp", Status: status,
		Circuit:  wire.Circuit{ID: "ring", Name: "Ring", Locality: "Town", Country: "Italy"},
		Sessions: []wire.WeekendSession{{Session: "race", Date: date, DateStart: wire.Instant(start), Status: status}},
	})
}

// bodies renders all documents by path.
func (w *world) bodies(t *testing.T) map[string][]byte {
	t.Helper()
	bodies := map[string][]byte{}
	put := func(v catalog.Variant, data any) {
		body := must.Get(wire.Marshal(data))(t)
		bodies[v.Path()] = body
	}
	for year, s := range w.seasons {
		of := func(endpoint catalog.Name) catalog.Variant { return catalog.Variant{Endpoint: endpoint, Year: year} }
		put(catalog.Variant{Endpoint: catalog.Standings, Type: catalog.DriversType, Year: year}, wire.Wrap(s.drivers, renderedAt))
		put(catalog.Variant{Endpoint: catalog.Standings, Type: catalog.ConstructorsType, Year: year}, wire.Wrap(s.teams, renderedAt))
		put(of(catalog.Calendar), wire.Wrap(s.calendar, renderedAt))
		put(of(catalog.Accuracy), wire.Wrap(s.accuracy, renderedAt))
		put(of(catalog.Changes), wire.Wrap([]wire.Change{}, renderedAt))
		put(of(catalog.TitleOdds), wire.Wrap(s.odds, renderedAt))
		put(of(catalog.Predictions), wire.Wrap(s.picks, renderedAt))
		put(of(catalog.Probabilities), wire.Wrap(s.chances, renderedAt))
		put(of(catalog.Results), wire.Wrap(s.results, renderedAt))
		put(of(catalog.Weekends), wire.Wrap(s.weekends, renderedAt))
		put(of(catalog.HeadToHead), wire.Wrap(s.pairs, renderedAt))
		put(of(catalog.Circuits), wire.Wrap([]wire.CircuitRecord{}, renderedAt))
		put(catalog.Variant{Endpoint: catalog.StandingsProgress, Type: catalog.DriversType, Year: year}, wire.Wrap(s.progress, renderedAt))
		put(catalog.Variant{Endpoint: catalog.StandingsProgress, Type: catalog.ConstructorsType, Year: year}, wire.Wrap(s.teamwise, renderedAt))
		put(catalog.Variant{Endpoint: catalog.Careers, Type: catalog.DriversType, Year: year}, wire.Wrap(s.careers, renderedAt))
		put(catalog.Variant{Endpoint: catalog.Careers, Type: catalog.ConstructorsType, Year: year}, wire.Wrap([]wire.Career{}, renderedAt))
		for _, r := range s.sessions {
			put(catalog.Variant{Endpoint: catalog.Sessions, SessionKey: r.SessionKey}, wire.Wrap([]wire.WeekendSessions{r}, renderedAt))
		}
		for _, r := range s.picks {
			put(catalog.Variant{Endpoint: catalog.Predictions, SessionKey: r.SessionKey}, wire.Wrap([]wire.PredictionRecord{r}, renderedAt))
		}
		for _, r := range s.chances {
			put(catalog.Variant{Endpoint: catalog.Probabilities, SessionKey: r.SessionKey}, wire.Wrap([]wire.ProbabilityRecord{r}, renderedAt))
		}
		for _, r := range s.results {
			put(catalog.Variant{Endpoint: catalog.Results, SessionKey: r.SessionKey}, wire.Wrap([]wire.ResultRecord{r}, renderedAt))
		}
		for _, r := range s.weekends {
			put(catalog.Variant{Endpoint: catalog.Weekends, SessionKey: r.SessionKey}, wire.Wrap([]wire.Weekend{r}, renderedAt))
		}
	}
	for year, s := range w.seasons {
		put(catalog.Variant{Endpoint: catalog.Overview, Year: year}, wire.Wrap(s.overviewOf(year), renderedAt))
	}
	for _, v := range catalog.All(catalog.Known{Current: known.Current}, nil) {
		put(v, wire.Wrap([]struct{}{}, renderedAt)) // for session keys without a document
	}
	put(catalog.Variant{Endpoint: catalog.Live}, wire.Wrap(wire.LiveRace{State: wire.LiveNone}, renderedAt))
	put(catalog.Variant{Endpoint: catalog.Live, SessionKey: catalog.NoSession}, wire.Wrap(wire.LiveRace{State: wire.LiveNone}, renderedAt))
	delete(bodies, catalog.Variant{Endpoint: catalog.TrackRecord}.Path())
	put(catalog.Variant{Endpoint: catalog.Forecast}, wire.Wrap([]wire.ForecastRecord{w.forecast}, renderedAt))
	put(catalog.Variant{Endpoint: catalog.Overview}, wire.Wrap(w.seasons[2025].overviewOf(2025), renderedAt))
	put(catalog.Variant{Endpoint: catalog.Drivers}, wire.Wrap(w.grid, renderedAt))
	put(catalog.Variant{Endpoint: catalog.Changes}, wire.Wrap(w.changes, renderedAt))
	put(catalog.Variant{Endpoint: catalog.ChangesLog, Page: catalog.NoPage}, wire.Wrap(wire.ChangesPage{Changes: []wire.LoggedChange{}}, renderedAt))
	put(catalog.Variant{Endpoint: catalog.Accuracy}, wire.Wrap(w.accuracy, renderedAt))
	put(catalog.Variant{Endpoint: catalog.NextRace}, &wire.Countdown{Rounds: w.coming})
	return bodies
}
