// Package running follows the race that /live shows: its round, its observations, and the live picks that follow
// from them.
package running

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/picks"
	"gridcast/builder/predict"
	"gridcast/builder/season"
)

// Observations of a race may arrive from WatchedBefore lights out until Watched after it. A race may be interrupted for
// hours.
const (
	WatchedBefore  = time.Hour
	Watched        = 9 * time.Hour
	WatchedStopped = 36 * time.Hour // after the latest observation of a suspended race
)

// Round returns the round of /live at the instant of the view: the one of the latest start among the rounds with a
// pick and the rounds that have started, of this year and the last; nil if there is none.
func Round(v *season.View, s *ledger.Fold) *almanac.Round {
	return latest(almanac.Rounds(v, s, v.At.UTC().Year()-1), v.At)
}

// RoundIn returns the round of /live at the instant of an almanac, nil if there is none.
func RoundIn(a *almanac.Almanac) *almanac.Round {
	return latest(slices.Collect(a.All()), a.At)
}

func latest(rounds []*almanac.Round, now time.Time) *almanac.Round {
	var last *almanac.Round
	for _, r := range rounds {
		if r.Session != 0 && r.Year >= now.UTC().Year()-1 && !r.Off() && (r.Pick != nil || r.State != almanac.Scheduled) && (last == nil || r.Start.After(last.Start)) {
			last = r
		}
	}
	return last
}

// Fixture returns the race of a round, for the judgement of its observations. Until a grid is known, it is the order of the
// chances of the pick.
func Fixture(r *almanac.Round) live.Fixture {
	of := live.Fixture{Session: r.Session, Start: r.Start, Laps: r.Facts.ScheduledLaps}
	slots := slices.Clone(r.Facts.Grid)
	season.SortGrid(slots)
	for _, slot := range slots {
		of.Grid = append(of.Grid, slot.Driver)
	}
	if r.Pick != nil && of.Grid == nil {
		for _, c := range picks.Frozen(r.Pick).Candidates {
			of.Grid = append(of.Grid, c.Driver)
		}
	}
	out := r.NotStarting()
	of.Grid = slices.DeleteFunc(of.Grid, func(driver season.DriverID) bool { return slices.Contains(out, driver) })
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

// Observe reads the observations of the round of /live while some may arrive, or if they were never read. If the
// store does not answer, it returns those that were read before with the error; nil if none were, or if the log is damaged.
func Observe(ctx context.Context, log *live.Log, v *season.View, s *ledger.Fold) (*live.Tape, error) {
	r := Round(v, s)
	if r == nil {
		return &live.Tape{}, nil
	}
	known := log.Known(r.Session)
	if known != nil && (r.Result != nil || v.At.Before(r.Start.Add(-WatchedBefore)) || v.At.After(WatchedUntil(r, known))) {
		return known, nil
	}
	tape, err := log.Refresh(ctx, r.Session)
	if err != nil {
		return log.Known(r.Session), err
	}
	return tape, nil
}

// Race is the race of a round as observed. The frozen pick of the round is the forecast before the race.
type Race struct {
	Round *almanac.Round
	live.Race
}

// RaceOf returns the race of a round that a tape of observations shows. The drivers have the ids that the ledger gives
// them.
func RaceOf(r *almanac.Round, s *ledger.Fold, tape *live.Tape) *Race {
	return &Race{Round: r, Race: tape.Race(Fixture(r), s.Driver)}
}

// Scheduled returns the laps of the race: those of the archive, else those that its source said; 0 if unknown.
func (r *Race) Scheduled() int { return cmp.Or(r.Round.Facts.ScheduledLaps, r.Laps) }

// Chances returns the chances at a moment of the race.
func (r *Race) Chances(m *live.Moment) (predict.Forecast, error) {
	if r.Round.Pick == nil {
		return predict.Forecast{}, errors.New("no pick was frozen before the race")
	}
	if !m.Complete() {
		return predict.Forecast{}, fmt.Errorf("lap %d: the line names too few running cars", m.Lap)
	}
	state := predict.RaceState{Laps: m.Lap, Scheduled: r.Scheduled(), OrderOnly: orderOnly(m)}
	gap := time.Duration(0)
	for _, c := range m.Cars {
		if c.Out {
			continue
		}
		switch {
		case c.GapMS != nil:
			gap = time.Duration(*c.GapMS) * time.Millisecond
		case c.LapsDown > 0:
			gap = max(gap, time.Duration(c.LapsDown)*r.LapTime())
		}
		car := predict.Car{Driver: c.Driver, Gap: gap}
		if c.Stops != nil {
			car.Stops = *c.Stops
		}
		state.Cars = append(state.Cars, car)
	}
	return predict.Live(state, picks.Frozen(r.Round.Pick))
}

// orderOnly reports whether a moment has neither gaps nor stops.
func orderOnly(m *live.Moment) bool {
	return !slices.ContainsFunc(m.Cars, func(c live.Car) bool { return c.GapMS != nil && *c.GapMS > 0 || c.LapsDown > 0 || c.Stops != nil })
}

// Checkpoint is the state of a live pick that is not frozen.
type Checkpoint struct {
	Percent, Lap int
	Moment       *live.Moment     // to freeze it from; nil: not now
	Forecast     predict.Forecast // at the moment
	Missed       string           // why it is not frozen and never will be; it stays the same from lap to lap
}

// Checkpoints returns the live picks that are not frozen. A pick is due when the leader completes its lap, and
// at the latest a lap later, from an observation that is fresh. The scheduled distance stands, also if the race is
// shortened.
func (r *Race) Checkpoints(now time.Time) []Checkpoint {
	round, scheduled, over := r.Round, r.Scheduled(), r.State == live.Ended || r.Round.Result != nil
	var open []Checkpoint
	for _, percent := range predict.Checkpoints {
		if round.Record.LivePick(percent) != nil {
			continue
		}
		c := Checkpoint{Percent: percent, Lap: predict.CheckpointLap(percent, max(scheduled, 1))}
		switch m := r.At(c.Lap); {
		case r.State == live.Waiting:
		case scheduled == 0:
			c.Missed = "the scheduled distance is not known"
		case round.Pick == nil:
			c.Missed = "no pick was frozen before the race"
		case r.Lap == 0 && over:
			c.Missed = "the race ended before its first lap"
		case r.Lap < c.Lap && over:
			c.Missed = fmt.Sprintf("the race ended after lap %d of %d", r.Lap, scheduled)
		case r.Lap < c.Lap, m == nil && r.Lap == c.Lap && !over:
		case m != nil && !m.Seen().After(round.Start):
			c.Missed = "the observation is from before lights out"
		case m == nil, r.Lap > c.Lap+1, now.Sub(m.Seen()) > live.Fresh, round.Result != nil:
			c.Missed = fmt.Sprintf("no complete line of lap %d or %d arrived within %d seconds", c.Lap, c.Lap+1, int(live.Fresh.Seconds()))
		default:
			forecast, err := r.Chances(m)
			if err = cmp.Or(err, forecast.Pickable()); err != nil {
				c.Missed = fmt.Sprintf("no pick follows from lap %d: %v", m.Lap, err)
			} else {
				c.Moment, c.Forecast = m, forecast
			}
		}
		open = append(open, c)
	}
	return open
}

// PicksDue freezes the live picks that are due at an instant. archive is the digest of the archive in use.
func (r *Race) PicksDue(now time.Time, archive string) (events []ledger.Event) {
	for _, c := range r.Checkpoints(now) {
		if c.Moment == nil {
			continue
		}
		model := predict.LiveName
		if orderOnly(c.Moment) {
			model = predict.OrderName
		}
		frozen := picks.Freeze(r.Round, model, archive, c.Forecast)
		e := ledger.FreezeLive(r.Round.Session, *frozen.Pick, r.Round.Start, c.Percent, ledger.Observation{Lap: c.Moment.Lap, SHA256: c.Moment.SHA256, At: c.Moment.Seen()})
		e.Archive, e.Chances = frozen.Archive, frozen.Chances
		events = append(events, e)
	}
	return events
}
