//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// measurement is one run of a load against a server.
type measurement struct {
	perSecond float64
	p50, p99  time.Duration
	cpu       time.Duration // per request
	idleBytes float64       // resident for each idle connection beside the load
}

// measure starts a server, warms it up, and loads it.
func (f *fixture) measure(ctx context.Context, s server, c benchCase, length time.Duration) (measurement, error) {
	p, err := s.start(ctx)
	if err != nil {
		return measurement{}, err
	}
	defer p.stop()
	if _, err := f.wrk(ctx, p, c, time.Second); err != nil {
		return measurement{}, err
	}
	return f.loaded(ctx, p, c, length)
}

// loaded loads a server that runs.
func (f *fixture) loaded(ctx context.Context, p *process, c benchCase, length time.Duration) (measurement, error) {
	before, err := p.cpu()
	if err != nil {
		return measurement{}, err
	}
	report, err := f.wrk(ctx, p, c, length)
	if err != nil {
		return measurement{}, err
	}
	after, err := p.cpu()
	if err != nil {
		return measurement{}, err
	}
	return report.measurement(after - before)
}

// report is what wrk prints.
type report string

// wrk sends requests from the second core for some whole seconds.
func (f *fixture) wrk(ctx context.Context, p *process, c benchCase, length time.Duration) (report, error) {
	dir, err := os.MkdirTemp("", "gridcast-wrk-")
	if err != nil {
		return "", fmt.Errorf("folder for wrk: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	script := filepath.Join(dir, "requests.lua")
	if err := os.WriteFile(script, []byte(f.requests(c)), 0o600); err != nil {
		return "", fmt.Errorf("script of wrk: %w", err)
	}
	args := onCore(1, []string{
		"wrk", "-t1", "-c" + strconv.Itoa(c.connections), fmt.Sprintf("-d%ds", int(length.Seconds())),
		"--latency", "-s", script, "http://" + p.address + c.target,
	})
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("wrk: %w\n%s", err, out)
	}
	if bad := regexp.MustCompile(`Non-2xx.*|Socket errors.*[1-9].*`).Find(out); bad != nil {
		return "", fmt.Errorf("wrk: %s", bad)
	}
	return report(out), nil
}

var (
	perSecond = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	total     = regexp.MustCompile(`(\d+) requests in`)
	half      = regexp.MustCompile(`50%\s+([0-9.]+[a-z]+)`)
	nearlyAll = regexp.MustCompile(`99%\s+([0-9.]+[a-z]+)`)
)

// measurement reads the report of a run that cost the server some processor time.
func (r report) measurement(cpu time.Duration) (m measurement, err error) {
	number := func(pattern *regexp.Regexp) string {
		if found := pattern.FindStringSubmatch(string(r)); found != nil {
			return found[1]
		}
		err = fmt.Errorf("wrk does not say %s:\n%s", pattern, r)
		return "0"
	}
	m.perSecond, _ = strconv.ParseFloat(number(perSecond), 64)
	requests, _ := strconv.ParseFloat(number(total), 64)
	m.p50, _ = time.ParseDuration(number(half))
	m.p99, _ = time.ParseDuration(number(nearlyAll))
	if requests > 0 {
		m.cpu = time.Duration(float64(cpu) / requests)
	}
	return m, err
}
