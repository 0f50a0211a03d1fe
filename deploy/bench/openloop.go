//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// The load of the open loop.
const (
	openConnections = usual
	openLength      = 5 * time.Second
	openSuffix      = ", at half"
	openLoad        = "open loop"
)

// openLoop measures latencies at half of the capacity that rows have. Requests are sent when
// they are due, whether others have been answered or not, and their latency counts from then:
// a stall is seen by all requests that fall into it.
func (f *fixture) openLoop(ctx context.Context, rows []row, only string, said *progress) ([]row, error) {
	var measured []row
	for _, c := range slices.Concat(f.contests(only)...) {
		if c.connections != usual || c.name != smallCase && c.name != largeCase {
			continue
		}
		for _, s := range f.servers(c, "") {
			closed, loaded := find(rows, row{Server: s.name, Case: c.name, Connections: openConnections, Load: wrkLoad})
			if !loaded {
				continue
			}
			r := row{Server: s.name, Case: c.name + openSuffix, Connections: openConnections, Load: openLoad}
			run := s.name + ", " + r.Case
			said.begins(run)
			if err := f.openRun(ctx, s, c, closed.PerSecond/2, &r); err != nil {
				return nil, fmt.Errorf("%s: %w", run, err)
			}
			said.ends(run, r)
			measured = append(measured, r)
		}
	}
	return measured, nil
}

// openRun sends so many requests a second and fills in the row.
func (f *fixture) openRun(ctx context.Context, s server, c benchCase, perSecond float64, r *row) error {
	p, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer p.stop()
	request := request(f.keys[0], c.target, c.header)
	before, err := p.cpu()
	if err != nil {
		return err
	}
	var (
		running   sync.WaitGroup
		latencies [openConnections][]time.Duration
		errs      [openConnections]error
	)
	interval := time.Duration(float64(time.Second) * openConnections / perSecond)
	begin := time.Now().Add(100 * time.Millisecond)
	for i := range openConnections {
		first := begin.Add(interval * time.Duration(i) / openConnections)
		running.Go(func() {
			latencies[i], errs[i] = sendWhenDue(p.address, request, first, interval, begin.Add(openLength))
		})
	}
	running.Wait()
	after, err := p.cpu()
	if err != nil {
		return err
	}
	all := slices.Concat(latencies[:]...)
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	slices.Sort(all)
	r.PerSecond = float64(len(all)) / openLength.Seconds()
	r.P50, r.P99 = milliseconds(all[len(all)/2]), milliseconds(all[len(all)*99/100])
	r.CPUMicros = 1000 * milliseconds(after-before) / float64(len(all))
	return nil
}

// sendWhenDue sends on one connection from an instant on, at an interval, until the end. One
// goroutine sends and one reads, so that a late answer delays no request.
func sendWhenDue(address string, request []byte, first time.Time, interval time.Duration, end time.Time) ([]time.Duration, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("open loop: %w", err)
	}
	defer func() { _ = c.Close() }()
	due := make(chan time.Time, 1<<16)
	sent := make(chan error, 1)
	go func() {
		defer close(due)
		for at := first; at.Before(end); at = at.Add(interval) {
			time.Sleep(time.Until(at))
			due <- at
			if _, err := c.Write(request); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	var latencies []time.Duration
	reader := bufio.NewReaderSize(c, 64<<10)
	for at := range due {
		if err := receive(reader); err != nil {
			return nil, fmt.Errorf("open loop: %w", err)
		}
		latencies = append(latencies, time.Since(at))
	}
	return latencies, <-sent
}
