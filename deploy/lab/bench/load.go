//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"gridcast/deploy/lab/bench/loadgen"
)

// loadCommand makes this program the load generator.
const loadCommand = "load"

// loadRequest tells the load generator its work, on standard input.
type loadRequest struct {
	Config  loadgen.Config
	Connect connectMode
}

// load loads a server for a while and returns the sample. Runs that resume sessions take four times as long,
// because the first connections of a run have no ticket yet.
func (f *fixture) load(ctx context.Context, p *process, c benchCase, length time.Duration) (sample, error) {
	if c.connect == withTicket {
		length *= 4
	}
	server, err := netip.ParseAddrPort(p.address)
	if err != nil {
		return sample{}, fmt.Errorf("server to load: %w", err)
	}
	request := f.request(c)
	if c.conditional {
		tag, err := p.tag(request)
		if err != nil {
			return sample{}, err
		}
		request = slices.Concat(request[:len(request)-len("\r\n")], []byte("If-None-Match: "+tag+"\r\n\r\n"))
	}
	input, err := json.Marshal(loadRequest{Connect: c.connect, Config: loadgen.Config{
		Server: server, Connections: c.connections, Length: length, Request: request, TLS: c.tls, PerSecond: c.perSecond,
	}})
	if err != nil {
		return sample{}, fmt.Errorf("load: %w", err)
	}
	used, err := p.cpu()
	if err != nil {
		return sample{}, err
	}
	args := onCore(1, []string{os.Args[0], loadCommand})
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var out, faults bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &faults
	started := time.Now()
	if err := cmd.Run(); err != nil {
		return sample{}, fmt.Errorf("load: %w\n%s", err, &faults)
	}
	took := time.Since(started)
	usedAfter, err := p.cpu()
	if err != nil {
		return sample{}, err
	}
	var r loadgen.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return sample{}, fmt.Errorf("report of the load: %w", err)
	}
	if r.Requests == 0 {
		return sample{}, errors.New("load: no request was answered")
	}
	return sample{
		PerSecond: float64(r.Requests) / r.Length.Seconds(), P50: milliseconds(r.P50), P99: milliseconds(r.P99),
		CPUMicros: 1000 * milliseconds(usedAfter-used) / float64(r.Requests),
		LoadBusy:  float64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()) / float64(took),
	}, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// request returns the bytes of the request of a case, without its ETag.
func (f *fixture) request(c benchCase) []byte {
	lines := []string{"GET " + f.target(c) + " HTTP/1.1", "Host: " + host, "X-API-Key: " + f.key}
	if c.gzip {
		lines = append(lines, "Accept-Encoding: gzip")
	}
	if c.connect != keepAlive {
		lines = append(lines, "Connection: close")
	}
	return []byte(strings.Join(lines, "\r\n") + "\r\n\r\n")
}

// generateLoad is the load generator's process.
func generateLoad([]string) error {
	var r loadRequest
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		return fmt.Errorf("load to generate: %w", err)
	}
	var (
		report loadgen.Report
		err    error
	)
	if r.Connect == keepAlive {
		report, err = loadgen.Run(r.Config)
	} else {
		report, err = loadgen.RunShort(r.Config, r.Connect == withTicket)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}
