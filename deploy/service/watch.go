package service

import (
	"context"
	"time"

	"gridcast/builder/live"
	"gridcast/builder/running"
	"gridcast/scheduler"
)

// watchFrom is the time before lights out from which the source of the running order is read.
const watchFrom = 10 * time.Minute

// Watcher is a source of the running order in this process. Watch hands the observations of a race to the host until the
// race is over or ctx ends.
type Watcher interface {
	Watch(ctx context.Context, host live.Host, race live.Fixture) error
}

// Watch makes the service read the running order of races from a source. Call it before Start.
func (s *Service) Watch(from Watcher) { s.watcher, s.feed = from, true }

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

// watchRaces watches each race while it runs, until ctx ends. Every scheduler of a store may watch, because the log keeps
// each lap once.
func (s *Service) watchRaces(ctx context.Context) error {
	over := map[int64]bool{} // watched to the end
	minute := time.Duration(float64(time.Minute) / s.clock.Speed())
	return scheduler.Every(ctx, max(minute, time.Millisecond), func(ctx context.Context) {
		race, ok := s.raceNow()
		if !ok || over[race.Session] {
			return
		}
		actions, err := s.Operator(ctx, nil)
		if err != nil {
			s.log.Error("the running race is not watched", "session_key", race.Session, "err", err)
			return
		}
		host := live.Host{Now: s.clock.Now, Wait: s.wait, Observe: func(ctx context.Context, o live.Observation) (bool, error) {
			return actions.Observe(ctx, o, o.Source)
		}}
		s.log.Info("watching a race", "session_key", race.Session, "lights_out", race.Start)
		if err := s.watcher.Watch(ctx, host, race); err == nil {
			over[race.Session] = true
			s.log.Info("the race is over, or its time is", "session_key", race.Session)
		} else if ctx.Err() == nil {
			s.log.Warn("the running race is watched again in a minute", "session_key", race.Session, "err", err)
		}
	})
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
