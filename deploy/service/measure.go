package service

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"gridcast/builder/settings"
	"gridcast/scheduler"
	"gridcast/scheduler/probe"
	"gridcast/snapshots/uptime"
)

// measuring holds the measurements of this process.
type measuring struct {
	edges []string // addresses of admin ports
	probe func(ctx context.Context, address string) (uptime.Minute, probe.State, error)
	ask   func(ctx context.Context, address string) (probe.State, uptime.Fault)

	mu      sync.Mutex        // guards the following
	targets map[string]string // addresses by name, as read last
	log     uptime.Log
	written time.Time // of the last write of the document, or of the start
	served  time.Time // the verification of the latest result whose serving was measured, race time
}

// servedWithin is the longest time for which a result is awaited at a target. A longer time counts as this one.
const servedWithin = 2 * time.Minute

// Measure makes the service ask the public address and these edges once a minute. It does nothing if race time is faster
// than real time. Call it before Start.
func (s *Service) Measure(edges []string) {
	if s.clock.Speed() == 1 {
		s.measuring = &measuring{edges: edges, probe: probe.Measure, ask: probe.Ask, written: time.Now()}
	}
}

// measureTargets returns the addresses to ask, by name. While the settings cannot be read they are those read last.
func (s *Service) measureTargets(ctx context.Context) map[string]string {
	m := s.measuring
	rules, err := settings.Load(ctx, s.builder.Store)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil || m.targets == nil {
		m.targets = map[string]string{}
		for _, edge := range m.edges {
			m.targets[edge] = edge
		}
		if rules.PublicAddress != "" {
			m.targets[uptime.Public] = rules.PublicAddress
		}
	}
	return maps.Clone(m.targets)
}

// measure measures one minute, and writes the document in each new hour.
func (s *Service) measure(ctx context.Context, _ scheduler.Trigger) error {
	at, m := time.Now(), s.measuring
	s.eachTarget(ctx, func(name, address string) {
		if minute, state, err := m.probe(ctx, address); err == nil {
			m.mu.Lock()
			m.log.Add(name, at, minute, time.Duration(state.Age)*time.Second)
			m.mu.Unlock()
		}
	})
	m.mu.Lock()
	due := !at.Truncate(time.Hour).Equal(m.written.Truncate(time.Hour))
	m.mu.Unlock()
	if due {
		return s.writeMeasured(ctx)
	}
	return nil
}

func (s *Service) eachTarget(ctx context.Context, f func(name, address string)) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for name, address := range s.measureTargets(ctx) {
		asking.Go(func() { f(name, address) })
	}
}

// writeMeasured merges the measurements of this process into the document of the store.
func (s *Service) writeMeasured(ctx context.Context) error {
	m := s.measuring
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.log.Merge(&uptime.Log{}, now) // closes days, so that memory does not grow
	if len(m.log.Targets) == 0 {
		m.written = now
		return nil
	}
	if _, err := uptime.Document(s.builder.Store).Update(ctx, func(l *uptime.Log) error {
		l.Merge(&m.log, now)
		return nil
	}); err != nil {
		return fmt.Errorf("write what was measured; it is kept for the next minute: %w", err)
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
	s.eachTarget(ctx, func(name, address string) {
		for ctx.Err() == nil {
			state, fault := m.ask(ctx, address)
			took := s.clock.Now().Sub(verified)
			if fault == "" && state.Version >= base.Pointer.Version || took > servedWithin {
				m.mu.Lock()
				m.log.AddServed(name, uptime.Served{Verified: verified, Seconds: min(took, servedWithin).Seconds()})
				m.mu.Unlock()
				return
			}
			if s.wait(ctx, time.Second) != nil {
				return
			}
		}
	})
	return nil
}

// lastVerified is the instant of the latest verification or correction of a result up to an instant, race time.
func (s *Service) lastVerified(until time.Time) (last time.Time) {
	for r := range s.builder.Ledger.Current(until).Records() {
		if n := len(r.Revisions); n > 0 && r.Revisions[n-1].At.After(last) {
			last = r.Revisions[n-1].At
		}
	}
	return last
}
