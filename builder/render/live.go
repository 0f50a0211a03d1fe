package render

import (
	"cmp"
	"slices"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/picks"
	"gridcast/builder/predict"
	"gridcast/builder/running"
	"gridcast/builder/season"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// LiveRaces returns the data of /live by path: the present race, and its timeline once it is over.
func LiveRaces(a *almanac.Almanac, s *ledger.Fold, tape *live.Tape) map[string]wire.LiveRace {
	now := wire.LiveRace{State: wire.LiveNone}
	races := map[string]wire.LiveRace{catalog.Variant{Endpoint: catalog.Live, SessionKey: catalog.NoSession}.Path(): now}
	if r := running.RoundIn(a); r != nil {
		race := running.RaceOf(r, s, tape)
		if now = liveData(race, a.At); now.State == wire.LiveOver && race.State != live.Waiting {
			races[catalog.Variant{Endpoint: catalog.Live, SessionKey: r.Session}.Path()] = Timeline(race, a.At)
		}
	}
	races[catalog.Variant{Endpoint: catalog.Live}.Path()] = now
	return races
}

// Timeline returns the data of a race with every observed lap.
func Timeline(race *running.Race, now time.Time) wire.LiveRace {
	data := liveData(race, now)
	data.Timeline = []wire.LiveLap{}
	for i := range race.Moments {
		m := &race.Moments[i]
		data.Timeline = append(data.Timeline, wire.LiveLap{Lap: m.Lap, ObservedAt: wire.Instant(m.Seen()), ByHand: m.Hand, Order: liveOrder(race, m)})
	}
	return data
}

// liveData describes a race as observed or, once it is verified, as verified.
func liveData(race *running.Race, now time.Time) wire.LiveRace {
	r := race.Round
	data := wire.LiveRace{
		State: wire.LiveState(race.State), Provisional: r.Result == nil, SessionKey: r.Session, GPName: r.Facts.Name,
		Lap: race.Lap, Laps: race.Scheduled(),
	}
	if race.State == live.Waiting && r.State == almanac.AwaitingResult {
		return wire.LiveRace{State: wire.LiveNone}
	}
	if !race.Seen.IsZero() {
		data.ObservedAt = wire.Instant(race.Seen)
		data.Checkpoints = liveCheckpoints(race, now)
	}
	if r.Result != nil {
		data.State = wire.LiveOver
		places := almanac.Podium(r.Result.Rows)
		podium := wire.LivePodium{P1: r.Code(places[0]), P2: r.Code(places[1]), P3: r.Code(places[2])}
		data.Result = &wire.LiveResult{Winner: podium.P1, Podium: podium, Revisions: revisions(r)}
		rows, _ := verifiedRows(r)
		for _, row := range rows {
			points := row.Points
			car := named(carOf(r, row.Driver), r, row.Driver)
			car.Position, car.TeamID, car.TeamColour, car.Points, car.Out = row.Position, string(row.Team), r.Colour(row.Team), &points, row.Position == 0
			car.Status, car.Reason = statusOf(&row), row.Reason
			data.Order = append(data.Order, car)
		}
		return data
	}
	data.ValidUntil = wire.Instant(race.ValidUntil())
	if m := race.Latest(); m != nil {
		data.ByHand, data.Order = m.Hand, liveOrder(race, m)
		for i, c := range m.Cars {
			data.Order[i] = named(data.Order[i], r, c.Driver)
		}
	} else {
		data.Order = gridOrder(r)
	}
	return data
}

// liveOrder is the order at a moment without names, with the chances if they follow from it.
func liveOrder(race *running.Race, m *live.Moment) []wire.LiveCar {
	r := race.Round
	forecast, err := race.Chances(m)
	if err != nil {
		forecast = predict.Forecast{} // the order alone is of use
	}
	order := make([]wire.LiveCar, len(m.Cars))
	for i, c := range m.Cars {
		order[i] = carOf(r, c.Driver)
		order[i].GapMS, order[i].GapLaps, order[i].Stops, order[i].Out, order[i].Carried = c.GapMS, c.LapsDown, c.Stops, c.Out, c.Carried
		if !c.Out {
			place(&order[i], r.Year, i+1, forecast, c.Driver)
		}
	}
	return order
}

// gridOrder is the order before the race: the grid, with the chances of the pick for the cars that start.
func gridOrder(r *almanac.Round) []wire.LiveCar {
	if len(r.Facts.Grid) == 0 {
		return nil // which the record omits
	}
	var before predict.Forecast
	if r.Pick != nil {
		before = picks.Frozen(r.Pick).Without(r.NotStarting())
	}
	grid := running.Fixture(r).Grid
	order := make([]wire.LiveCar, 0, len(grid))
	for i, driver := range grid {
		car := named(carOf(r, driver), r, driver)
		place(&car, r.Year, i+1, before, driver)
		order = append(order, car)
	}
	return order
}

// carOf returns the car of a driver.
func carOf(r *almanac.Round, driver season.DriverID) wire.LiveCar {
	return wire.LiveCar{Driver: r.Code(driver), DriverID: r.Lasting(driver), TeamID: string(r.TeamOf(driver))}
}

// named adds the name and the colour, which would make a timeline twice as long.
func named(car wire.LiveCar, r *almanac.Round, driver season.DriverID) wire.LiveCar {
	car.Name, car.TeamColour = r.Driver(driver).Name, r.Colour(r.TeamOf(driver))
	return car
}

// place gives a car its place, the points of the place, and its chances if the forecast has them.
func place(car *wire.LiveCar, year, position int, forecast predict.Forecast, driver season.DriverID) {
	points := 0.0
	if scale := season.Scale(year, false); position <= len(scale) {
		points = scale[position-1]
	}
	car.Position, car.Points = position, &points
	for _, c := range forecast.Candidates {
		if c.Driver == driver && c.Podium > 0 {
			win, podium := wire.PercentFrom(c.Win), wire.PercentFrom(c.Podium)
			car.WinPct, car.PodiumPct = &win, &podium
		}
	}
}

// liveCheckpoints describes every checkpoint: frozen, still to come, or missed with the reason.
func liveCheckpoints(race *running.Race, now time.Time) []wire.LiveCheckpoint {
	r := race.Round
	all := make([]wire.LiveCheckpoint, 0, len(predict.Checkpoints))
	for _, c := range race.Checkpoints(now) {
		status := wire.CheckpointPending
		if c.Missed != "" {
			status = wire.CheckpointMissed
		}
		all = append(all, wire.LiveCheckpoint{Percent: c.Percent, Lap: c.Lap, Status: status, Reason: c.Missed})
	}
	for i := range r.Record.Live {
		p := &r.Record.Live[i]
		all = append(all, wire.LiveCheckpoint{
			Percent: p.Checkpoint, Lap: predict.CheckpointLap(p.Checkpoint, max(race.Scheduled(), 1)), Status: wire.CheckpointFrozen,
			ObservedAt: wire.Instant(p.Observation.At), FrozenAt: wire.Instant(p.FrozenAt),
			Prediction: &wire.Prediction{
				Winner: r.Code(p.P1), ConfidencePct: wire.PercentFrom(p.WinProbability), Podium: wire.Podium{P1: r.Code(p.P1), P2: r.Code(p.P2), P3: r.Code(p.P3)},
			},
		})
	}
	slices.SortFunc(all, func(x, y wire.LiveCheckpoint) int { return cmp.Compare(x.Percent, y.Percent) })
	return all
}
