package builder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/predict"
	"gridcast/builder/render"
	"gridcast/builder/season"
	"gridcast/builder/units"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// Observations of a race may arrive from WatchedBefore lights out until Watched after it. A race may be interrupted for
// hours.
const (
	WatchedBefore  = time.Hour
	Watched        = 9 * time.Hour
	WatchedStopped = 36 * time.Hour // after the latest observation of a suspended race
)

// Observed returns the log of observations of this builder's store.
func (b *Builder) Observed() *live.Log {
	b.observed.once.Do(func() { b.observed.log = &live.Log{Store: b.Store} })
	return b.observed.log
}

// LiveRound returns the round of /live at the instant of the view: the one of the latest start among the rounds with a
// pick and the rounds that have started, of this year and the last; nil if there is none.
func LiveRound(v *season.View, s *ledger.Fold) *almanac.Round {
	return liveRound(almanac.Rounds(v, s, v.At.UTC().Year()-1), v.At)
}

func liveRound(rounds []*almanac.Round, now time.Time) *almanac.Round {
	var latest *almanac.Round
	for _, r := range rounds {
		if r.Session != 0 && r.Year >= now.UTC().Year()-1 && !r.Off() && (r.Pick != nil || r.State != almanac.Scheduled) && (latest == nil || r.Start.After(latest.Start)) {
			latest = r
		}
	}
	return latest
}

// Fixture returns the race of a round, for the judgement of its observations. Until a grid is known, it is the order of the
// chances of the pick.
func Fixture(r *almanac.Round) live.Fixture {
	of := live.Fixture{Session: r.Session, Start: r.Start, Laps: r.Facts.ScheduledLaps}
	slots := slices.Clone(r.Facts.Grid)
	season.SortGrid(slots)
	out := r.NotStarting()
	for _, slot := range slots {
		if !slices.Contains(out, slot.Driver) {
			of.Grid = append(of.Grid, slot.Driver)
		}
	}
	if r.Pick != nil && of.Grid == nil {
		for _, c := range frozenForecast(r.Pick).Candidates {
			if !slices.Contains(out, c.Driver) {
				of.Grid = append(of.Grid, c.Driver)
			}
		}
	}
	return of
}

// WatchedUntil returns the instant until which observations of a race may arrive: Watched after lights out or after the
// latest observation. A suspended race may go on the next day.
func WatchedUntil(r *almanac.Round, tape *live.Tape) time.Time {
	until := r.Start.Add(Watched)
	if tape == nil || len(tape.Observations) == 0 {
		return until
	}
	race := live.Reduce(tape.Observations, Fixture(r))
	if race.State == live.Stopped {
		return race.Seen.Add(WatchedStopped)
	}
	return season.Later(until, race.Seen.Add(Watched))
}

// observe reads the observations of the round of /live while some may arrive, or if they were never read. If the store
// does not answer, the ones read before count, because results must not wait for them.
func (b *Builder) observe(ctx context.Context, v *season.View, s *ledger.Fold) *live.Tape {
	r := LiveRound(v, s)
	if r == nil {
		return &live.Tape{}
	}
	known := b.Observed().Known(r.Session)
	if known != nil && (r.Result != nil || v.At.Before(r.Start.Add(-WatchedBefore)) || v.At.After(WatchedUntil(r, known))) {
		return known
	}
	tape, err := b.Observed().Refresh(ctx, r.Session)
	if err != nil {
		b.Log.Error("the observations of the race cannot be read; /live shows the earlier ones", "session_key", r.Session, "err", err)
		tape = cmp.Or(known, &live.Tape{})
	}
	return tape
}

// Look reads the observations of the race that runs at an instant, and returns the hash of their head; empty: there are
// none.
func (b *Builder) Look(ctx context.Context, facts archive.Stored, at time.Time) string {
	return b.observe(ctx, facts.Archive.AsOf(at), b.Ledger.Fold()).Head.Hash
}

// scheduledLaps returns the laps of a race: those of the archive, else those that its source said; 0 if unknown.
func scheduledLaps(r *almanac.Round, race *live.Race) int {
	return cmp.Or(r.Facts.ScheduledLaps, race.Laps)
}

// chancesAt returns the chances at a moment of a race. The forecast before the race is the frozen pick.
func chancesAt(r *almanac.Round, race *live.Race, m *live.Moment) (predict.Forecast, error) {
	if r.Pick == nil {
		return predict.Forecast{}, errors.New("no pick was frozen before the race")
	}
	if !m.Whole() {
		return predict.Forecast{}, fmt.Errorf("lap %d: the line names too few running cars", m.Lap)
	}
	state := predict.RaceState{Laps: m.Lap, Scheduled: scheduledLaps(r, race), OrderOnly: orderOnly(m)}
	gap := time.Duration(0)
	for _, c := range m.Cars {
		if c.Out {
			continue
		}
		switch {
		case c.GapMS != nil:
			gap = time.Duration(*c.GapMS) * time.Millisecond
		case c.LapsDown > 0:
			gap = max(gap, time.Duration(c.LapsDown)*race.LapTime())
		}
		car := predict.Car{Driver: c.Driver, Gap: gap}
		if c.Stops != nil {
			car.Stops = *c.Stops
		}
		state.Cars = append(state.Cars, car)
	}
	return predict.Live(state, frozenForecast(r.Pick))
}

// orderOnly reports whether a moment has neither gaps nor stops.
func orderOnly(m *live.Moment) bool {
	return !slices.ContainsFunc(m.Cars, func(c live.Car) bool { return c.GapMS != nil && *c.GapMS > 0 || c.LapsDown > 0 || c.Stops != nil })
}

// checkpoint is the state of a live pick that is not frozen.
type checkpoint struct {
	percent, lap int
	moment       *live.Moment     // to freeze it from; nil: not now
	forecast     predict.Forecast // at the moment
	missed       string           // why it is not frozen and never will be; it stays the same from lap to lap
}

// checkpoints returns the live picks of a round that are not frozen. A pick is due when the leader completes its lap, and
// at the latest a lap later, from an observation that is fresh. The scheduled distance stands, also if the race is
// shortened.
func checkpoints(r *almanac.Round, race *live.Race, now time.Time) []checkpoint {
	scheduled, over := scheduledLaps(r, race), race.State == live.Ended || r.Result != nil
	var open []checkpoint
	for _, percent := range predict.Checkpoints {
		if r.Record.LivePick(percent) != nil {
			continue
		}
		c := checkpoint{percent: percent, lap: predict.CheckpointLap(percent, max(scheduled, 1))}
		switch m := race.At(c.lap); {
		case race.State == live.Waiting:
		case scheduled == 0:
			c.missed = "the scheduled distance is not known"
		case r.Pick == nil:
			c.missed = "no pick was frozen before the race"
		case race.Lap == 0 && over:
			c.missed = "the race ended before its first lap"
		case race.Lap < c.lap && over:
			c.missed = fmt.Sprintf("the race ended after lap %d of %d", race.Lap, scheduled)
		case race.Lap < c.lap, m == nil && race.Lap == c.lap && !over:
		case m != nil && !m.Seen().After(r.Start):
			c.missed = "the observation is from before lights out"
		case m == nil, race.Lap > c.lap+1, now.Sub(m.Seen()) > live.Fresh, r.Result != nil:
			c.missed = fmt.Sprintf("no complete line of lap %d or %d arrived within %d seconds", c.lap, c.lap+1, int(live.Fresh.Seconds()))
		default:
			forecast, err := chancesAt(r, race, m)
			if err = cmp.Or(err, forecast.Pickable()); err != nil {
				c.missed = fmt.Sprintf("no pick follows from lap %d: %v", m.Lap, err)
			} else {
				c.moment, c.forecast = m, forecast
			}
		}
		open = append(open, c)
	}
	return open
}

// livePicksDue freezes the live picks that are due.
func (p Policy) livePicksDue(v *season.View, s *ledger.Fold, sum string) (events []ledger.Event) {
	r := LiveRound(v, s)
	if p.Observed == nil || r == nil || r.Result != nil {
		return nil
	}
	tape := p.Observed(r.Session)
	if tape == nil {
		return nil
	}
	race := tape.Race(Fixture(r), s.Driver)
	for _, c := range checkpoints(r, &race, v.At) {
		if c.moment == nil {
			continue
		}
		model := predict.LiveName
		if orderOnly(c.moment) {
			model = predict.OrderName
		}
		frozen := freeze(r, model, sum, c.forecast)
		e := ledger.FreezeLive(r.Session, *frozen.Pick, r.Start, c.percent, ledger.Observation{Lap: c.moment.Lap, SHA256: c.moment.SHA256, At: c.moment.Seen()})
		e.Archive, e.Chances = frozen.Archive, frozen.Chances
		events = append(events, e)
	}
	return events
}

// liveDocuments puts the documents of /live into a version. The timelines of earlier races stay those of the base,
// unless their result was verified after they were made.
func (b *Builder) liveDocuments(ctx context.Context, in Inputs, a *almanac.Almanac, version *units.Version) error {
	races := liveRaces(a, in.Ledger, in.Live)
	for _, entry := range in.Base.Manifest.Entries {
		v, err := catalog.ParsePath(entry.Path)
		if _, made := races[entry.Path]; made || err != nil || v.Endpoint != catalog.Live || v.SessionKey <= 0 {
			continue
		}
		r, err := a.Round(v.SessionKey)
		if err != nil || r.Record.Result() == nil || !r.Record.Result().At.After(entry.GeneratedAt) {
			version.Put(&units.Document{Path: entry.Path, Published: snapshots.Reused(entry), Reused: true})
			continue
		}
		tape, err := b.Observed().Refresh(ctx, r.Session)
		if err != nil {
			return err
		}
		races[entry.Path] = Timeline(r, in.Ledger, tape, a.At)
	}
	for _, r := range allRounds(a) { // of which no version has a timeline, because over never came or because it is lost
		path := catalog.Variant{Endpoint: catalog.Live, SessionKey: r.Session}.Path()
		_, made := races[path]
		_, known := in.Base.Entry(path)
		result := r.Record.Result()
		recent := result != nil && r.Year >= a.At.UTC().Year()-1 && result.At.After(in.Base.Manifest.BuiltAt)
		if made || known || result == nil || !recent && in.Base.Damage == nil {
			continue
		}
		tape, err := b.Observed().Refresh(ctx, r.Session)
		if err != nil {
			return err
		}
		if len(tape.Observations) > 0 {
			races[path] = Timeline(r, in.Ledger, tape, a.At)
		}
	}
	for path, race := range races {
		text, err := wire.Marshal(race)
		if err != nil {
			return err
		}
		version.Put(units.Render(in.Base, path, in.At, func(at time.Time) ([]byte, error) { return render.Data(text, at) }))
	}
	return nil
}

// liveRaces returns the data of /live by path: the present race, and its timeline once it is over.
func liveRaces(a *almanac.Almanac, s *ledger.Fold, tape *live.Tape) map[string]wire.LiveRace {
	now := wire.LiveRace{State: wire.LiveNone}
	races := map[string]wire.LiveRace{catalog.Variant{Endpoint: catalog.Live, SessionKey: catalog.NoSession}.Path(): now}
	if r := liveRound(allRounds(a), a.At); r != nil {
		race := tape.Race(Fixture(r), s.Driver)
		if now = liveData(a.At, r, &race); now.State == wire.LiveOver && race.State != live.Waiting {
			races[catalog.Variant{Endpoint: catalog.Live, SessionKey: r.Session}.Path()] = Timeline(r, s, tape, a.At)
		}
	}
	races[catalog.Variant{Endpoint: catalog.Live}.Path()] = now
	return races
}

func allRounds(a *almanac.Almanac) (rounds []*almanac.Round) {
	for i := range a.Years {
		rounds = append(rounds, a.Rounds(a.Years[i].Year)...)
	}
	return rounds
}

// Timeline returns the data of a race with every observed lap.
func Timeline(r *almanac.Round, s *ledger.Fold, tape *live.Tape, now time.Time) wire.LiveRace {
	race := tape.Race(Fixture(r), s.Driver)
	data := liveData(now, r, &race)
	data.Timeline = []wire.LiveLap{}
	for i := range race.Moments {
		m := &race.Moments[i]
		data.Timeline = append(data.Timeline, wire.LiveLap{Lap: m.Lap, ObservedAt: wire.Instant(m.Seen()), ByHand: m.Hand, Order: wireOrder(r, &race, m)})
	}
	return data
}

// liveData describes a race as observed or, once it is verified, as verified.
func liveData(now time.Time, r *almanac.Round, race *live.Race) wire.LiveRace {
	data := wire.LiveRace{
		State: wire.LiveState(race.State), Provisional: r.Result == nil, SessionKey: r.Session, GPName: r.Facts.Name,
		Lap: race.Lap, Laps: scheduledLaps(r, race),
	}
	if race.State == live.Waiting && r.State == almanac.AwaitingResult {
		return wire.LiveRace{State: wire.LiveNone}
	}
	if !race.Seen.IsZero() {
		data.ObservedAt = wire.Instant(race.Seen)
		data.Checkpoints = wireCheckpoints(r, race, now)
	}
	if r.Result != nil {
		data.State = wire.LiveOver
		places := almanac.Podium(r.Result.Rows)
		podium := wire.LivePodium{P1: r.Code(places[0]), P2: r.Code(places[1]), P3: r.Code(places[2])}
		data.Result = &wire.LiveResult{Winner: podium.P1, Podium: podium}
		for _, row := range r.Result.Rows {
			points := row.Points
			car := carOf(r, row.Driver)
			car.Position, car.TeamID, car.Points, car.Out = row.Position, string(row.Team), &points, row.Position == 0
			data.Order = append(data.Order, car)
		}
		return data
	}
	data.ValidUntil = wire.Instant(race.ValidUntil())
	if m := race.Latest(); m != nil {
		data.ByHand, data.Order = m.Hand, wireOrder(r, race, m)
	} else {
		data.Order = gridOrder(r)
	}
	return data
}

// wireOrder is the order at a moment, with the chances if they follow from it.
func wireOrder(r *almanac.Round, race *live.Race, m *live.Moment) []wire.LiveCar {
	forecast, err := chancesAt(r, race, m)
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
		before = frozenForecast(r.Pick).Without(r.NotStarting())
	}
	grid := Fixture(r).Grid
	order := make([]wire.LiveCar, 0, len(grid))
	for i, driver := range grid {
		car := carOf(r, driver)
		place(&car, r.Year, i+1, before, driver)
		order = append(order, car)
	}
	return order
}

// carOf returns the car of a driver with its names.
func carOf(r *almanac.Round, driver season.DriverID) wire.LiveCar {
	return wire.LiveCar{Driver: r.Code(driver), DriverID: r.Lasting(driver), TeamID: string(r.TeamOf(driver))}
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

// wireCheckpoints describes every checkpoint: frozen, still to come, or missed with the reason.
func wireCheckpoints(r *almanac.Round, race *live.Race, now time.Time) []wire.LiveCheckpoint {
	all := make([]wire.LiveCheckpoint, 0, len(predict.Checkpoints))
	for _, c := range checkpoints(r, race, now) {
		status := wire.CheckpointPending
		if c.missed != "" {
			status = wire.CheckpointMissed
		}
		all = append(all, wire.LiveCheckpoint{Percent: c.percent, Lap: c.lap, Status: status, Reason: c.missed})
	}
	for i := range r.Record.Live {
		p := &r.Record.Live[i]
		all = append(all, wire.LiveCheckpoint{
			Percent: p.Checkpoint, Lap: predict.CheckpointLap(p.Checkpoint, max(scheduledLaps(r, race), 1)), Status: wire.CheckpointFrozen,
			ObservedAt: wire.Instant(p.Observation.At), FrozenAt: wire.Instant(p.FrozenAt),
			Prediction: &wire.Prediction{
				Winner: r.Code(p.P1), ConfidencePct: wire.PercentFrom(p.WinProbability), Podium: wire.Podium{P1: r.Code(p.P1), P2: r.Code(p.P2), P3: r.Code(p.P3)},
			},
		})
	}
	slices.SortFunc(all, func(x, y wire.LiveCheckpoint) int { return cmp.Compare(x.Percent, y.Percent) })
	return all
}
