//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	// idleWanted is how many connections are open beside the usual ones, and idle.
	idleWanted = 10_000
	// idleSpare is how many files a server may have open for anything else.
	idleSpare = 1000
	// idleCase is what the load is measured on without them and with them.
	idleCase = "2 KB, idle"
)

// idleServers are those that are measured with idle connections.
var idleServers = []string{gridcastName, laneOffName, fasthttpName, nginxName}

// fileLimit returns how many files a process may open. The runtime of Go raises the limit of
// this program and of the others that are written in it so far by itself; nginx is told to.
func fileLimit() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("limit of open files: %w", err)
	}
	return int(min(limit.Max, 1<<20)), nil
}

// idleCount returns how many idle connections there can be, and says so if they are fewer.
func idleCount() (int, error) {
	limit, err := fileLimit()
	if err != nil {
		return 0, err
	}
	if limit-idleSpare < idleWanted {
		fmt.Fprintf(os.Stderr, "only %d files may be open here: %d idle connections instead of %d\n", limit, limit-idleSpare, idleWanted)
	}
	return max(0, min(idleWanted, limit-idleSpare)), nil
}

// idleMeasurement is a load on one process without and with idle connections beside it.
type idleMeasurement struct{ without, with measurement }

// measureIdle loads a server, opens n connections each of which gets one response, and loads
// the server again.
func (f *fixture) measureIdle(ctx context.Context, s server, c benchCase, n int, length time.Duration) (m idleMeasurement, err error) {
	p, err := f.warm(ctx, s, c)
	if err != nil {
		return m, err
	}
	defer p.stop()
	if m.without, err = f.load(ctx, wrkLoad, p, c, length); err != nil {
		return m, err
	}
	before, err := p.memory()
	if err != nil {
		return m, err
	}
	idle, err := f.openIdle(p.address, c, n)
	defer func() {
		for _, c := range idle {
			_ = c.Close()
		}
	}()
	if err != nil {
		return m, err
	}
	after, err := p.memory()
	if err != nil {
		return m, err
	}
	m.with, err = f.load(ctx, wrkLoad, p, c, length)
	m.with.idleBytes = float64(after-before) / float64(max(n, 1))
	return m, err
}

// openIdle opens connections and exchanges a request on each. It also returns those it opened
// before an error.
func (f *fixture) openIdle(address string, c benchCase, n int) ([]net.Conn, error) {
	request, reader := request(f.keys[0], c.target, c.header), bufio.NewReader(nil)
	opened := make([]net.Conn, 0, n)
	for range n {
		conn, err := dial(address)
		if err != nil {
			return opened, fmt.Errorf("idle connection %d: %w", len(opened), err)
		}
		opened = append(opened, conn)
		if _, err := exchange(conn, reader, request); err != nil {
			return opened, fmt.Errorf("idle connection %d: %w", len(opened), err)
		}
	}
	return opened, nil
}
