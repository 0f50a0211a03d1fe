package service

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gridcast/builder/settings"
	"gridcast/scheduler"
	"gridcast/scheduler/probe"
	"gridcast/snapshots/uptime"
)

type measuring struct {
	edges []string // addresses of admin ports
	ask   func(ctx context.Context, address string) (probe.State, uptime.Fault)

	mu      sync.Mutex // guards the following
	public  string     // the public address, as read last
	log     uptime.Log
	written time.Time // of the last write of the document, or of the start
	served  time.Time // race time of the latest verification that timeServed has measured
}

// servedWithin is the longest time for which a result is awaited at a target. A longer time counts as this one.
const servedWithin = 2 * time.Minute

// Measure makes the service ask the public address and these edges once a minute. It does nothing if race time is faster
// than real time. Call it before Start.
func (s *Service) Measure(edges []string) {
	if s.clock.Speed() == 1 {
		s.measuring = &measuring{edges: edges, ask: probe.Ask, written: time.Now()}
	}
}

// eachTarget calls f concurrently for each address. If f returns a function, that one enters the measurement.
func (s *Service) eachTarget(ctx context.Context, f func(address string) (enter func(l *uptime.Log, name string))) {
	m := s.measuring
	rules, err := settings.Load(ctx, s.builder.Store)
	m.mu.Lock()
	if err == nil { // else a store that is down would hide the service
		m.public = rules.PublicAddress
	}
	targets := map[string]string{uptime.Public: m.public}
	m.mu.Unlock()
	for _, edge := range m.edges {
		targets[probe.Name(edge)] = edge
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	for name, address := range targets {
		if address == "" {
			continue
		}
		asking.Go(func() {
			if enter := f(address); enter != nil {
				m.mu.Lock()
				defer m.mu.Unlock()
				enter(&m.log, name)
			}
		})
	}
}

// measure measures one minute, and writes the document in each new hour.
func (s *Service) measure(ctx context.Context, _ scheduler.Trigger) error {
	at, m := time.Now(), s.measuring
	s.eachTarget(ctx, func(address string) func(*uptime.Log, string) {
		minute, state, err := probe.Measure(ctx, m.ask, address)
		if err != nil {
			return nil
		}
		return func(l *uptime.Log, name string) { l.Add(name, at, minute, state.Age) }
	})
	return s.writeMeasured(ctx, at.Truncate(time.Hour))
}

// writeMeasured merges the measurements of this process into the document of the store, if they were last written before
// an instant. After an error they stay for the next minute.
func (s *Service) writeMeasured(ctx context.Context, before time.Time) error {
	m := s.measuring
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if !m.written.Before(before) || len(m.log.Targets) == 0 {
		return nil
	}
	m.log.Merge(&uptime.Log{}, now) // so that memory does not grow
	if _, err := uptime.Document(s.builder.Store).Update(ctx, func(l *uptime.Log) error {
		l.Merge(&m.log, now)
		return nil
	}); err != nil {
		return fmt.Errorf("write the measurements: %w", err)
	}
	m.written = now
	return nil
}

// timeServed measures how long each target takes to serve the latest verified result. Race time runs as real time.
func (s *Service) timeServed(ctx context.Context, _ scheduler.Trigger) error {
	base := s.published.Load()
	m, verified := s.measuring, s.lastVerified(base.Manifest.BuiltAt)
	m.mu.Lock()
	fresh := verified.After(m.served)
	m.served = verified
	m.mu.Unlock()
	if !fresh {
		return nil
	}
	s.eachTarget(ctx, func(address string) func(*uptime.Log, string) {
		for {
			state, fault := m.ask(ctx, address)
			took := s.clock.Now().Sub(verified)
			if fault == "" && state.Version >= base.Pointer.Version || took > servedWithin {
				return func(l *uptime.Log, name string) {
					d := l.Day(name, time.Now())
					d.Served = max(d.Served, min(took, servedWithin).Seconds())
				}
			}
			if s.wait(ctx, time.Second) != nil {
				return nil
			}
		}
	})
	return nil
}

// lastVerified is the instant of the latest verification or correction of a result up to an instant, race time.
func (s *Service) lastVerified(until time.Time) (last time.Time) {
	for r := range s.builder.Ledger.Current(until).Records() {
		if result := r.Result(); result != nil && result.At.After(last) {
			last = result.At
		}
	}
	return last
}
