//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"time"
)

// The loads. wrk is what everybody knows; on one core it is itself at its limit before a fast
// server on another one is, so that there is a second one, which leaves the limit to the server.
const (
	wrkLoad     = "wrk"
	loadgenLoad = "loadgen"
)

// report is what a load found.
type report struct {
	requests  int
	perSecond float64
	p50, p99  time.Duration
	busy      float64 // share of the time in which the generator used its core
}

// measurement is one run of a load against a server.
type measurement struct {
	report
	cpu       time.Duration // of the server, per request
	idleBytes float64       // resident for each idle connection beside the load
}

// warmUp is how long a server is loaded before it is measured.
const warmUp = time.Second

// warm starts a server that answers a case, and warms it up. The caller must stop it.
func (f *fixture) warm(ctx context.Context, s server, c benchCase) (*process, error) {
	p, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := f.generator(c.loads()[len(c.loads())-1])(ctx, p, c, warmUp); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// load loads a server that runs.
func (f *fixture) load(ctx context.Context, kind string, p *process, c benchCase, length time.Duration) (measurement, error) {
	return p.loaded(func() (report, error) { return f.generator(kind)(ctx, p, c, length) })
}

// generator returns what makes a load.
func (f *fixture) generator(kind string) func(context.Context, *process, benchCase, time.Duration) (report, error) {
	if kind == wrkLoad {
		return f.wrk
	}
	return f.loadgen
}

// loaded measures what a load costs the server.
func (p *process) loaded(load func() (report, error)) (measurement, error) {
	before, err := p.cpu()
	if err != nil {
		return measurement{}, err
	}
	r, err := load()
	if err != nil {
		return measurement{}, err
	}
	after, err := p.cpu()
	if err != nil {
		return measurement{}, err
	}
	return measurement{report: r, cpu: (after - before) / time.Duration(max(1, r.requests))}, nil
}

// onSecondCore runs a command there. It returns what the command prints, and for which share of
// the time it used the core.
func onSecondCore(ctx context.Context, command []string) (out []byte, busy float64, err error) {
	args := onCore(1, command)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	begun := time.Now()
	out, err = cmd.Output()
	took := time.Since(begun)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w\n%s%s", command[0], err, out, &errs)
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return out, float64(used) / float64(took), nil
}
