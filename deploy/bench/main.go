//go:build linux

// Bench measures gridcast beside other servers on the same machine: bare fasthttp and a raw
// epoll loop that write a constant, and nginx with a key map and a limit. All do their work on
// one core, the load comes from another one, and the runs of all servers are interleaved, so
// that what else the machine does falls on all of them alike. It reads /proc, so it runs on
// Linux only.
//
// There are two loads: wrk, and one of its own, loadgen, because wrk on one core is at its limit
// before a fast server on another one is. How busy the load itself was stands beside each row.
//
// It prints one table of medians, another of the load beside idle connections, and which of its
// goals the edge meets. The rows go to .var/bench.json.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case constantCommand:
			exit(serveConstant(os.Args[2:]))
		case loadgenCommand:
			exit(runLoadgen(os.Args[2:]))
		}
	}
	exit(run(ctx, os.Args[1:]))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// options is what the command line says.
type options struct {
	binary   string
	before   string
	out      string
	seconds  int
	rounds   int
	quick    bool
	only     string
	servers  string
	half     bool
	markdown bool
	printed  bool
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&o.binary, "binary", ".var/bin/gridcast", "the gridcast to measure")
	f.StringVar(&o.before, "before", "", "an earlier gridcast, measured beside it; the store is made by that one, which may not read what a later one writes")
	f.StringVar(&o.out, "out", ".var/bench.json", "where the rows go")
	f.IntVar(&o.seconds, "seconds", 1, "length of one run")
	f.IntVar(&o.rounds, "rounds", 7, "runs of each server under each load, of which the median counts")
	f.BoolVar(&o.quick, "quick", false, "one round with 64 connections: shows that it works, measures little")
	f.StringVar(&o.only, "case", "", "only the cases whose name begins with this")
	f.StringVar(&o.servers, "server", "", "only the servers whose name contains this")
	f.BoolVar(&o.half, "open-loop", true, "also CPU and latencies at half of the load")
	f.BoolVar(&o.markdown, "markdown", false, "print what gridcast does as a table for a README")
	f.BoolVar(&o.printed, "print", false, "measure nothing: print the rows that are in --out")
	err := f.Parse(args)
	if o.quick {
		o.seconds, o.rounds = 1, 1
	}
	return o, err
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.printed {
		rows, err := read(o.out)
		if err != nil {
			return err
		}
		o.print(rows)
		return nil
	}
	if _, err := exec.LookPath("wrk"); err != nil {
		return fmt.Errorf("wrk is needed: %w", err)
	}
	dir, err := os.MkdirTemp("", "gridcast-bench-")
	if err != nil {
		return fmt.Errorf("folder for the bench: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	f, err := newFixture(ctx, dir, o.binary, o.before)
	if err != nil {
		return err
	}
	stopRedis, err := f.startRedis(ctx)
	if err != nil {
		return err
	}
	defer stopRedis()
	began := load()
	rows, err := o.measure(ctx, f)
	if len(rows) > 0 { // also before a fault: they took their time
		fmt.Printf("%s, load average before %s, after %s; medians of %d runs of %d s\n%s\n", machine(), began, load(), o.rounds, o.seconds, &f.responses)
		o.print(rows)
		err = errors.Join(err, write(o.out, rows))
	}
	return err
}

// measure runs the series: comparison by comparison, then the load beside idle connections, then the
// open loop. With an error it returns the rows so far.
func (o *options) measure(ctx context.Context, f *fixture) ([]row, error) {
	idle, err := idleCount()
	if err != nil {
		return nil, err
	}
	var series series
	said := newProgress()
	defer said.finish()
	comparisons := f.comparisons(o.only)
	if o.quick {
		comparisons = slices.DeleteFunc(comparisons, func(cases []benchCase) bool { return cases[0].connections != usual })
	}
	for i, cases := range comparisons {
		said.stage = fmt.Sprintf("%d/%d", i+1, len(comparisons))
		if err := o.hold(ctx, f, cases, said, &series); err != nil {
			return series.medians(), err
		}
	}
	if err := o.beside(ctx, f, idle, said, &series); err != nil {
		return series.medians(), err
	}
	if o.half {
		err = o.openLoop(ctx, f, said, &series)
	}
	return series.medians(), err
}

// hold runs all rounds of a comparison.
func (o *options) hold(ctx context.Context, f *fixture, cases []benchCase, said *progress, series *series) error {
	comparison, err := f.newComparison(ctx, cases, o.servers)
	if err != nil {
		return err
	}
	defer comparison.close()
	stage := said.stage
	for round := range o.rounds {
		said.stage = fmt.Sprintf("%s, round %d/%d", stage, round+1, o.rounds)
		if err := comparison.round(ctx, round, o.length(), said, series); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) length() time.Duration { return time.Duration(o.seconds) * time.Second }

// beside measures the usual load beside idle connections.
func (o *options) beside(ctx context.Context, f *fixture, idle int, said *progress, series *series) error {
	if !strings.HasPrefix(idleCase, o.only) {
		return nil
	}
	c := f.small()
	c.servers = idleServers
	for round := range o.rounds {
		said.stage = fmt.Sprintf("idle, round %d/%d", round+1, o.rounds)
		for _, s := range f.servers(c, o.servers) {
			run := fmt.Sprintf("%s, %s, %d idle connections", s.name, c.name, idle)
			said.begins(run)
			m, err := f.measureIdle(ctx, s, c, idle, o.length())
			if err != nil {
				return fmt.Errorf("%s: %w", run, err)
			}
			series.add(row{Server: s.name, Case: idleCase, Connections: c.connections, Load: wrkLoad}, m.without)
			series.add(row{Server: s.name, Case: idleCase, Connections: c.connections, Load: wrkLoad, Idle: idle}, m.with)
			said.ends(run, m.with.row())
		}
	}
	return nil
}

// print prints the rows, and what they say about the goals.
func (o *options) print(rows []row) {
	if o.markdown {
		show(briefTable(rows), true)
	} else {
		show(fullTable(rows), false)
	}
	show(idleTable(rows), o.markdown)
	show(beforeTable(rows), o.markdown)
	show(goalTable(rows), o.markdown)
}

// read reads what write has written.
func read(path string) ([]row, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("rows of the bench: %w", err)
	}
	var rows []row
	if err := json.Unmarshal(data, &rows); err != nil {
		return nil, fmt.Errorf("rows of the bench in %s: %w", path, err)
	}
	return rows, nil
}

// write writes the rows where other tools read them.
func write(path string, rows []row) error {
	data, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return fmt.Errorf("rows of the bench: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("folder of %s: %w", path, err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("rows of the bench: %w", err)
	}
	return nil
}

// machine says what was measured on.
func machine() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown machine"
	}
	lines := strings.Split(string(info), "\n")
	model := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "model name") })
	if model < 0 {
		return "unknown processor"
	}
	_, name, _ := strings.Cut(lines[model], ": ")
	return fmt.Sprintf("%d cores of %s", strings.Count(string(info), "processor\t"), name)
}

// load returns the load average of the last minute.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
}
