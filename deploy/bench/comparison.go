//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// comparison is some servers that run side by side and are loaded one after the other, again and
// again: what else the machine does then falls on all of them alike.
type comparison struct {
	fixture *fixture
	servers []runningServer
}

// runningServer is a server that answers a case.
type runningServer struct {
	server  server
	c       benchCase
	process *process
}

// row is what is known of the server before a measurement.
func (e *runningServer) row(load string) row {
	return row{Server: e.server.name, Case: e.c.name, Connections: e.c.connections, Load: load}
}

func (e *runningServer) String() string {
	return fmt.Sprintf("%s, %s, %d connections", e.server.name, e.c.name, e.c.connections)
}

// newComparison starts the servers of some cases whose name contains a text, and warms them up.
// The caller must close the comparison.
func (f *fixture) newComparison(ctx context.Context, cases []benchCase, only string) (*comparison, error) {
	t := &comparison{fixture: f}
	for _, c := range cases {
		for _, s := range f.servers(c, only) {
			e := runningServer{server: s, c: c}
			var err error
			if e.process, err = f.warm(ctx, s, c); err != nil {
				t.close()
				return nil, fmt.Errorf("%s: %w", &e, err)
			}
			t.servers = append(t.servers, e)
		}
	}
	return t, nil
}

func (t *comparison) close() {
	for _, e := range t.servers {
		e.process.stop()
	}
}

// round loads each server once with each load.
func (t *comparison) round(ctx context.Context, n int, length time.Duration, said *progress, series *series) error {
	if len(t.servers) == 0 {
		return nil
	}
	for _, load := range t.servers[0].c.loads() {
		for i := range t.servers {
			series.expect(t.servers[i].row(load))
		}
		for _, e := range t.order(n) {
			run := e.String() + ", " + load
			said.begins(run)
			m, err := t.fixture.load(ctx, load, e.process, e.c, e.c.lasts(length))
			if err != nil {
				return fmt.Errorf("%s: %w", run, err)
			}
			series.add(e.row(load), m)
			said.ends(run, m.row())
		}
	}
	return nil
}

// order returns the servers in the order of a round. The first one, with which the others are
// compared, has its turn in the middle, near to all; and each round goes the other way than the
// one before.
func (t *comparison) order(round int) []runningServer {
	if len(t.servers) == 0 {
		return nil
	}
	first, others := t.servers[:1], t.servers[1:]
	half := len(others) / 2
	order := slices.Concat(others[:half], first, others[half:])
	if round%2 == 1 {
		slices.Reverse(order)
	}
	return order
}
