//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// contest is some servers that run side by side and are loaded one after the other, again and
// again: what else the machine does then falls on all of them alike.
type contest struct {
	fixture  *fixture
	entrants []entrant
}

// entrant is a server that answers a case.
type entrant struct {
	server  server
	c       benchCase
	process *process
}

// row is what is known of the entrant before a measurement.
func (e *entrant) row(load string) row {
	return row{Server: e.server.name, Case: e.c.name, Connections: e.c.connections, Load: load}
}

func (e *entrant) String() string {
	return fmt.Sprintf("%s, %s, %d connections", e.server.name, e.c.name, e.c.connections)
}

// newContest starts the servers of some cases whose name contains a text, and warms them up.
// The caller must close the contest.
func (f *fixture) newContest(ctx context.Context, cases []benchCase, only string) (*contest, error) {
	t := &contest{fixture: f}
	for _, c := range cases {
		for _, s := range f.servers(c, only) {
			e := entrant{server: s, c: c}
			var err error
			if e.process, err = f.warm(ctx, s, c); err != nil {
				t.close()
				return nil, fmt.Errorf("%s: %w", &e, err)
			}
			t.entrants = append(t.entrants, e)
		}
	}
	return t, nil
}

func (t *contest) close() {
	for _, e := range t.entrants {
		e.process.stop()
	}
}

// round loads each entrant once with each load.
func (t *contest) round(ctx context.Context, n int, length time.Duration, said *progress, series *series) error {
	for _, load := range []string{wrkLoad, lightLoad} {
		for i := range t.entrants {
			series.expect(t.entrants[i].row(load))
		}
		for _, e := range t.order(n) {
			run := e.String() + ", " + load
			said.begins(run)
			m, err := t.fixture.load(ctx, load, e.process, e.c, length)
			if err != nil {
				return fmt.Errorf("%s: %w", run, err)
			}
			series.add(e.row(load), m)
			said.ends(run, m.row())
		}
	}
	return nil
}

// order returns the entrants in the order of a round. The first one, with which the others are
// compared, has its turn in the middle, near to all; and each round goes the other way than the
// one before.
func (t *contest) order(round int) []entrant {
	if len(t.entrants) == 0 {
		return nil
	}
	first, others := t.entrants[:1], t.entrants[1:]
	half := len(others) / 2
	order := slices.Concat(others[:half], first, others[half:])
	if round%2 == 1 {
		slices.Reverse(order)
	}
	return order
}
