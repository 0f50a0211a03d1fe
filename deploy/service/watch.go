package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gridcast/builder/live"
	"gridcast/builder/running"
)

// watchFrom is the time before lights out from which the laps of a race are replayed.
const watchFrom = 10 * time.Minute

// Laps returns the observations of a recorded race, ascending by their instants; none for an unknown race.
type Laps func(race live.Fixture) []live.Observation

// Replay makes the service observe the laps of recorded races at their instants. Call it before Start.
func (s *Service) Replay(laps Laps) { s.laps, s.feed = laps, true }

// ExpectFeed says that a source will send lines of running races, so that its silence is a fault. Call it before Start.
func (s *Service) ExpectFeed() { s.feed = true }

// wait waits for a duration of race time. It returns early with an error when ctx ends.
func (s *Service) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(float64(d) / s.clock.Speed())):
	}
	return ctx.Err()
}

// replayLaps replays each race while it runs, until ctx ends. Every scheduler of a store may do so, because the log keeps
// each lap once.
func (s *Service) replayLaps(ctx context.Context) error {
	over := map[int64]bool{} // replayed to the end
	minute := time.Duration(float64(time.Minute) / s.clock.Speed())
	return s.intervals.Every(ctx, max(minute, time.Millisecond), func(ctx context.Context) {
		race, ok := s.raceNow()
		if !ok || over[race.Session] {
			return
		}
		err := s.replayRace(ctx, race)
		over[race.Session] = err == nil
		if err != nil && ctx.Err() == nil {
			s.log.Warn("the laps of a race are replayed again in a minute", "session_key", race.Session, "err", err)
		}
	})
}

// replayRace observes the laps of a race at their instants.
func (s *Service) replayRace(ctx context.Context, race live.Fixture) error {
	actions, err := s.Operator(ctx, nil)
	if err != nil {
		return err
	}
	for _, o := range s.laps(race) {
		if err := s.wait(ctx, o.At.Sub(s.clock.Now())); err != nil {
			return err
		}
		if _, err := actions.Observe(ctx, o, o.Source); err != nil && !errors.Is(err, live.ErrHeld) {
			return fmt.Errorf("lap %d: %w", o.Lap, err)
		}
	}
	return nil
}

// raceNow returns the race that starts in the next minutes or has started, and has no verified result.
func (s *Service) raceNow() (race live.Fixture, ok bool) {
	now := s.clock.Now()
	r := running.Round(s.facts.Load().Archive.AsOf(now), s.builder.Ledger.Current(now))
	if r == nil || r.Result != nil || now.Before(r.Start.Add(-watchFrom)) {
		return live.Fixture{}, false
	}
	return running.Fixture(r), !now.After(running.WatchedUntil(r, s.builder.Observed().Known(r.Session)))
}
