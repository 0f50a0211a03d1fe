package render

import (
	"slices"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/schemas/wire"
)

func driverStandings(y *almanac.Year) []wire.DriverStanding {
	rows := make([]wire.DriverStanding, len(y.Drivers()))
	for i, s := range y.Drivers() {
		rows[i] = wire.DriverStanding{
			Position:   s.Position,
			Driver:     y.Codes()[s.Driver.ID],
			Name:       s.Driver.Name,
			Team:       s.Team.Name,
			TeamColour: s.Colour,
			Points:     s.Shown(),
			Wins:       s.Wins,
			Podiums:    s.Podiums,
		}
	}
	return rows
}

func constructorStandings(y *almanac.Year) []wire.ConstructorStanding {
	rows := make([]wire.ConstructorStanding, len(y.Constructors()))
	for i, s := range y.Constructors() {
		rows[i] = wire.ConstructorStanding{
			Position:   s.Position,
			Team:       s.Team.Name,
			Engine:     s.Engine,
			TeamColour: s.Colour,
			Points:     s.Shown(),
			Wins:       s.Wins,
			Podiums:    s.Podiums,
		}
	}
	return rows
}

// Status returns the API's name of a state.
func Status(s almanac.State) wire.Status { return wire.Status(s) }

func calendar(y *almanac.Year) []wire.CalendarEntry {
	entries := make([]wire.CalendarEntry, len(y.Rounds))
	for i, r := range y.Rounds {
		e := wire.CalendarEntry{
			Round:      r.Facts.Number,
			SessionKey: r.Session,
			GPName:     r.Facts.Name,
			Circuit:    r.Circuit.Name,
			Locality:   r.Circuit.Locality,
			Country:    r.Circuit.Country,
			Date:       r.Start.UTC().Format("2006-01-02"),
			Sprint:     r.Facts.HasSprint(),
			Status:     Status(r.State),
		}
		if !r.Provisional {
			e.DateStart = wire.Instant(r.Start)
		}
		if r.State == almanac.Finished {
			e.Winner = podium(y, almanac.Podium(r.Result.Rows)).P1
		}
		entries[i] = e
	}
	return entries
}

func drivers(grid []almanac.GridEntry) []wire.Driver {
	entries := make([]wire.Driver, len(grid))
	for i, e := range grid {
		entries[i] = wire.Driver{
			Driver:      e.Code,
			Name:        e.Driver.Name,
			FirstName:   e.Driver.FirstName,
			LastName:    e.Driver.LastName,
			Number:      e.Number,
			Team:        e.Team.Name,
			TeamColour:  e.Colour,
			HeadshotURL: headshot(e),
			Country:     e.Driver.Country,
		}
	}
	return entries
}

func podium(y *almanac.Year, drivers season.Podium) wire.Podium {
	return wire.Podium{P1: y.Codes()[drivers[0]], P2: y.Codes()[drivers[1]], P3: y.Codes()[drivers[2]]}
}

func prediction(y *almanac.Year, p *ledger.FrozenPick) *wire.Prediction {
	if p == nil {
		return nil
	}
	places := podium(y, almanac.Picked(p))
	return &wire.Prediction{
		Winner:        places.P1,
		ConfidencePct: wire.PercentFrom(p.WinProbability),
		Podium:        places,
	}
}

func predictionRecord(y *almanac.Year, r *almanac.Round) wire.PredictionRecord {
	rec := wire.PredictionRecord{SessionKey: r.Session, GPName: r.Facts.Name, Prediction: *prediction(y, r.Pick)}
	if r.Result != nil {
		places := podium(y, almanac.Podium(r.Result.Rows))
		hit := places.P1 == rec.Prediction.Winner
		rec.Result = &wire.Result{Winner: places.P1, Podium: places}
		rec.WinnerHit = &hit
	}
	return rec
}

func probabilityRecord(y *almanac.Year, r *almanac.Round) wire.ProbabilityRecord {
	rec := wire.ProbabilityRecord{
		SessionKey: r.Session, GPName: r.Facts.Name, Model: r.Pick.Model, Basis: string(r.Pick.Basis), FrozenAt: wire.Instant(r.Pick.FrozenAt),
	}
	paid := len(season.Scale(r.Year, false))
	for _, c := range r.Pick.Chances {
		chance := wire.DriverChance{
			Driver: y.Codes()[c.Driver], DriverID: r.Lasting(c.Driver), WinPct: wire.PercentFrom(float64(c.Win) / ledger.Certain), PodiumPct: wire.PercentFrom(float64(c.Podium) / ledger.Certain),
		}
		if n := len(c.Positions); n > 0 {
			row := wire.PercentagesOf(append(slices.Clone(c.Positions), c.DNF))
			points, expected := wire.Hundredths(0), wire.Hundredths((c.Points+ledger.Certain/200)/(ledger.Certain/100))
			for _, p := range row[:min(n, paid)] {
				points += p
			}
			chance.Positions, chance.PointsPct, chance.DNFPct, chance.ExpectedPoints = row[:n], &points, &row[n], &expected
		}
		rec.Drivers = append(rec.Drivers, chance)
	}
	for _, driver := range r.NotStarting() {
		rec.NotStarting = append(rec.NotStarting, y.Codes()[driver])
	}
	slices.SortStableFunc(rec.Drivers, func(a, b wire.DriverChance) int { return int(b.WinPct - a.WinPct) })
	return rec
}

// forecastHistory renders the noted forecasts of a round. The ledger notes one at each step of the weekend.
func forecastHistory(r *almanac.Round) wire.ForecastHistory {
	rec := wire.ForecastHistory{SessionKey: r.Session, GPName: r.Facts.Name}
	codes := r.ForecastCodes()
	for _, f := range r.Record.Forecasts {
		noted := wire.NotedForecast{NotedAt: wire.Instant(f.At), Step: sessionName(f.Step), Basis: almanac.BasisOf(f.Step), Model: f.Model}
		for _, c := range f.Chances {
			noted.Drivers = append(noted.Drivers, wire.ForecastChance{
				Driver: codes[c.Driver], DriverID: r.Lasting(c.Driver), WinPct: wire.PercentFrom(float64(c.Win) / ledger.Certain), PodiumPct: wire.PercentFrom(float64(c.Podium) / ledger.Certain),
			})
		}
		slices.SortStableFunc(noted.Drivers, func(a, b wire.ForecastChance) int { return int(b.WinPct - a.WinPct) })
		rec.Forecasts = append(rec.Forecasts, noted)
	}
	return rec
}

// accuracy scores the frozen picks of a year, or of all years if year is 0, against verified
// results.
func accuracy(a *almanac.Almanac, year int) wire.Accuracy {
	var preRace, live score
	for r := range a.All() {
		if year != 0 && r.Year != year || r.Pick == nil || r.Result == nil {
			continue
		}
		places := almanac.Podium(r.Result.Rows)
		preRace.add(r.Pick, places)
		if r.LivePick != nil {
			live.add(r.LivePick, places)
		}
	}
	during := live.rates()
	return wire.Accuracy{RacesEvaluated: preRace.races, PreRace: preRace.rates(), Live: wire.LiveHitRates{
		RacesEvaluated: live.races, WinnerHitRatePct: during.WinnerHitRatePct, PodiumAccuracyPct: during.PodiumAccuracyPct,
	}}
}

// score counts hits over races.
type score struct{ races, winners, podiums int }

func (s *score) add(p *ledger.FrozenPick, finished season.Podium) {
	winner, onPodium := finished.Score(almanac.Picked(p))
	s.races++
	s.podiums += onPodium
	if winner {
		s.winners++
	}
}

func (s score) rates() wire.HitRates {
	return wire.HitRates{
		WinnerHitRatePct:  wire.PercentOf(s.winners, s.races),
		PodiumAccuracyPct: wire.PercentOf(s.podiums, 3*s.races),
	}
}

func countdown(a *almanac.Almanac) (*wire.Countdown, error) {
	c := &wire.Countdown{Rounds: []wire.CountdownRound{}}
	for _, r := range a.Coming() {
		y, _ := a.Year(r.Year)
		round, err := wire.NewCountdownRound(wire.NextRace{
			Name:        r.Facts.Name,
			Circuit:     r.Circuit.Name,
			Country:     r.Circuit.Country,
			DateStart:   wire.Instant(r.Start),
			Provisional: r.Provisional,
			Prediction:  prediction(y, r.Pick),
		})
		if err != nil {
			return nil, err
		}
		c.Rounds = append(c.Rounds, round)
	}
	return c, nil
}
