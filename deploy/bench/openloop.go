//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// The load of the open loop.
const (
	openLength = 3 * time.Second
	openSuffix = ", at half"
	openLoad   = "open loop"
)

// openLoop measures latencies at half of the capacity that rows have. Requests are sent when
// they are due, whether others have been answered or not, and their latency counts from then:
// a stall is seen by all requests that fall into it.
func (f *fixture) openLoop(ctx context.Context, rows []row, only string, said *progress) ([]row, error) {
	var measured series
	for _, c := range slices.Concat(f.comparisons(only)...) {
		if c.connections != usual || c.name != smallCase && c.name != largeCase {
			continue
		}
		for _, s := range f.servers(c, "") {
			closed, loaded := find(rows, row{Server: s.name, Case: c.name, Connections: c.connections, Load: wrkLoad})
			if !loaded {
				continue
			}
			at := row{Server: s.name, Case: c.name + openSuffix, Connections: c.connections, Load: openLoad}
			run := at.Server + ", " + at.Case
			said.begins(run)
			m, err := f.openRun(ctx, s, c, closed.PerSecond/2)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", run, err)
			}
			said.ends(run, m.row())
			measured.add(at, m)
		}
	}
	return measured.medians(), nil
}

// openRun measures that.
func (f *fixture) openRun(ctx context.Context, s server, c benchCase, perSecond float64) (measurement, error) {
	p, err := f.warm(ctx, s, c)
	if err != nil {
		return measurement{}, err
	}
	defer p.stop()
	return p.loaded(func() (report, error) { return f.due(ctx, p, c, perSecond, openLength) })
}
