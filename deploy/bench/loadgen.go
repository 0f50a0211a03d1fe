//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gridcast/deploy/bench/loadgen"
)

// loadgenCommand makes this program the load generator.
const loadgenCommand = "loadgen"

// loadgen is the load of this program in a closed loop.
func (f *fixture) loadgen(ctx context.Context, p *process, c benchCase, length time.Duration) (report, error) {
	return f.due(ctx, p, c, 0, length)
}

// due is the load of this program, run as another process, in an open loop of so many requests
// a second unless they are 0.
func (f *fixture) due(ctx context.Context, p *process, c benchCase, perSecond float64, length time.Duration) (report, error) {
	requests := filepath.Join(f.dir, "requests")
	if err := os.WriteFile(requests, bytes.Join(f.inTurn(c), nil), 0o600); err != nil {
		return report{}, fmt.Errorf("requests of a load: %w", err)
	}
	out, busy, err := onSecondCore(ctx, []string{os.Args[0], loadgenCommand, p.address, strconv.Itoa(c.connections), length.String(), fmt.Sprint(perSecond), requests})
	if err != nil {
		return report{}, err
	}
	var r loadgen.Report
	if err := json.Unmarshal(out, &r); err != nil {
		return report{}, fmt.Errorf("report of a load: %w", err)
	}
	return report{
		requests: r.Requests, perSecond: float64(r.Requests) / r.Length.Seconds(),
		p50: r.P50, p99: r.P99, busy: busy,
	}, nil
}

// runLoadgen is that process.
func runLoadgen(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("%s: want an address, a number of connections, a duration, a rate and a file", loadgenCommand)
	}
	server, err := netip.ParseAddrPort(args[0])
	if err != nil {
		return fmt.Errorf("server to load: %w", err)
	}
	connections, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("connections: %w", err)
	}
	length, err := time.ParseDuration(args[2])
	if err != nil {
		return fmt.Errorf("length of a load: %w", err)
	}
	perSecond, err := strconv.ParseFloat(args[3], 64)
	if err != nil {
		return fmt.Errorf("rate of a load: %w", err)
	}
	requests, err := os.ReadFile(args[4])
	if err != nil {
		return fmt.Errorf("requests of a load: %w", err)
	}
	cfg := loadgen.Config{Server: server, Connections: connections, Length: length, PerSecond: perSecond}
	for request := range strings.SplitAfterSeq(string(requests), "\r\n\r\n") {
		if request != "" {
			cfg.Requests = append(cfg.Requests, []byte(request))
		}
	}
	r, err := loadgen.Run(cfg)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
