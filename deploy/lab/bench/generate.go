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

// generateCommand makes this program the load generator.
const generateCommand = "generate"

// generation tells the load generator its work, on standard input.
type generation struct {
	Config  loadgen.Config
	Connect connectMode
	Server  int // process whose CPU time is measured; 0: none
}

// load loads a server for a while, with requests due perSecond, or in a closed loop if that is 0. Runs that resume
// sessions take twice as long, because the first connections of a run have no ticket yet.
func (f *fixture) load(ctx context.Context, p *process, c benchCase, length time.Duration, perSecond float64) (sample, error) {
	if c.connect == withTicket {
		length *= 2
	}
	server, err := netip.ParseAddrPort(p.address)
	if err != nil {
		return sample{}, fmt.Errorf("server to load: %w", err)
	}
	request := f.request(c)
	if c.conditional {
		request = slices.Concat(request[:len(request)-len("\r\n")], []byte("If-None-Match: "+p.tag+"\r\n\r\n"))
	}
	r, err := generate(ctx, generation{Connect: c.connect, Server: p.pid, Config: loadgen.Config{
		Servers: []netip.AddrPort{server}, Connections: c.connections, Requests: [][]byte{request}, TLS: c.tls,
		Steps: []loadgen.Step{{Length: length, PerSecond: perSecond}},
	}})
	if err != nil {
		return sample{}, err
	}
	if r.Requests == 0 {
		return sample{}, errors.New("load: no request was answered")
	}
	return sample{
		PerSecond: float64(r.InTime) / min(length, r.Length).Seconds(), P50: milliseconds(r.P50), P99: milliseconds(r.P99),
		CPUMicros: 1000 * milliseconds(r.Used) / float64(r.Requests), LoadBusy: r.Busy,
	}, nil
}

// generate runs the load generator on the second core.
func generate(ctx context.Context, work generation) (r loadgen.Report, err error) {
	input, err := json.Marshal(work)
	if err != nil {
		return r, fmt.Errorf("load: %w", err)
	}
	args := onCore(1, []string{os.Args[0], generateCommand})
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var out, faults bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &faults
	if err := cmd.Run(); err != nil {
		return r, fmt.Errorf("load: %w\n%s", err, &faults)
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("report of the load: %w", err)
	}
	return r, nil
}

// sustained is the part of the due requests that a server must answer in time, so that it sustains their rate.
const sustained = 0.97

// capacity returns the requests a second that a server sustains, and the share of its core that the load generator
// then used.
func (f *fixture) capacity(ctx context.Context, p *process, c benchCase, probe time.Duration) (perSecond, busy float64, err error) {
	atOnce, err := f.load(ctx, p, c, probe, 0)
	if err != nil {
		return 0, 0, err
	}
	perSecond, err = searchCapacity(atOnce.PerSecond, func(rate float64) (bool, error) {
		s, err := f.load(ctx, p, c, probe, rate)
		onTheWay := float64(c.connections) / probe.Seconds()
		answered := s.PerSecond+onTheWay >= sustained*rate
		if answered {
			busy = s.LoadBusy
		}
		return answered, err
	})
	return perSecond, max(busy, atOnce.LoadBusy), err
}

// searchCapacity returns the highest rate that a server sustains, by bisection around a guess: from its half to a quarter
// more. It knows the capacity to a fortieth of the guess.
func searchCapacity(guess float64, sustains func(rate float64) (bool, error)) (float64, error) {
	guess = max(guess, 1) // no answer at all was in time
	low, high := guess/2, guess*1.25
	for high-low > guess/40 {
		middle := (low + high) / 2
		ok, err := sustains(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
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
	var r generation
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		return fmt.Errorf("load to generate: %w", err)
	}
	var (
		report loadgen.Report
		err    error
	)
	if r.Server > 0 {
		r.Config.Used = (&process{name: "server", pid: r.Server}).cpu
	}
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
