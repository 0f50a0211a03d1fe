//go:build linux

package main

import (
	"context"
	"slices"
)

// The load of the open loop.
const (
	openSuffix = ", at half"
	openLoad   = "open loop"
)

// openServers are those that are measured in the open loop.
var openServers = []string{gridcastName, fasthttpName, epollName, nginxName}

// openLoop measures at half of what gridcast answers under wrk, the same for all servers. Requests
// are sent when they are due, whether others have been answered or not, and their latency counts
// from then: a stall is seen by all requests that fall into it.
func (o *options) openLoop(ctx context.Context, f *fixture, said *progress, series *series) error {
	for _, c := range slices.Concat(f.comparisons(o.only)...) {
		full, loaded := find(series.medians(), row{Server: gridcastName, Case: c.name, Connections: c.connections, Load: wrkLoad})
		if !loaded || c.connections != usual || c.name != smallCase && c.name != largeCase {
			continue
		}
		c.name += openSuffix
		c.servers, c.perSecond = openServers, full.PerSecond/2
		said.stage = "open loop"
		if err := o.hold(ctx, f, []benchCase{c}, said, series); err != nil {
			return err
		}
	}
	return nil
}
