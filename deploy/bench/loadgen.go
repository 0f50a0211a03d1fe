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

// loadgen is the load of this program, run as another process: in an open loop where requests of
// the case are due, and in a closed one otherwise.
func (f *fixture) loadgen(ctx context.Context, p *process, c benchCase, length time.Duration) (report, error) {
	requests := filepath.Join(f.dir, "requests")
	if err := os.WriteFile(requests, bytes.Join(f.inTurn(c), nil), 0o600); err != nil {
		return report{}, fmt.Errorf("requests of a load: %w", err)
	}
	out, busy, err := onSecondCore(ctx, []string{
		os.Args[0], loadgenCommand, p.address, strconv.Itoa(c.connections), length.String(), fmt.Sprint(c.perSecond), c.manner(), requests,
	})
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

// How loadgen connects.
const (
	plainManner = "plain"
	tlsManner   = "tls"
	shortManner = "tls-short"
)

// manner returns how loadgen connects in the case.
func (c *benchCase) manner() string {
	switch {
	case c.short:
		return shortManner
	case c.tls:
		return tlsManner
	}
	return plainManner
}

// runLoadgen is that process.
func runLoadgen(args []string) error {
	if len(args) != 6 {
		return fmt.Errorf("%s: want an address, a number of connections, a duration, a rate, a manner and a file", loadgenCommand)
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
	requests, err := os.ReadFile(args[5])
	if err != nil {
		return fmt.Errorf("requests of a load: %w", err)
	}
	cfg := loadgen.Config{Server: server, Connections: connections, Length: length, PerSecond: perSecond, TLS: args[4] != plainManner}
	for request := range strings.SplitAfterSeq(string(requests), "\r\n\r\n") {
		if request != "" {
			cfg.Requests = append(cfg.Requests, []byte(request))
		}
	}
	run := loadgen.Run
	if args[4] == shortManner {
		run = loadgen.RunShort
	}
	r, err := run(cfg)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
