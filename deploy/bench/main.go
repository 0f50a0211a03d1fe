//go:build linux

// Bench measures gridcast beside other servers on the same machine: bare fasthttp and a raw
// epoll loop that write a constant, and nginx with a key map and a limit. All do their work on
// one core, the load comes from another one, and the runs of all servers are interleaved, so
// that what else the machine does falls on all of them alike. It reads /proc, so it runs on
// Linux only.
//
// It prints one table of medians and writes its rows to .var/bench.json.
package main

import (
	"context"
	"encoding/json"
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
	if len(os.Args) > 1 && os.Args[1] == constantCommand {
		exit(serveConstant(os.Args[2:]))
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
	out      string
	seconds  int
	rounds   int
	quick    bool
	only     string
	servers  string
	openLoop bool
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&o.binary, "binary", ".var/bin/gridcast", "the gridcast to measure")
	f.StringVar(&o.out, "out", ".var/bench.json", "where the rows go")
	f.IntVar(&o.seconds, "seconds", 3, "length of one run")
	f.IntVar(&o.rounds, "rounds", 3, "runs of each server in each case, of which the median counts")
	f.BoolVar(&o.quick, "quick", false, "one round of one second with 64 connections: shows that it works, measures little")
	f.StringVar(&o.only, "case", "", "only the cases whose name begins with this")
	f.StringVar(&o.servers, "server", "", "only the servers whose name contains this")
	f.BoolVar(&o.openLoop, "open-loop", true, "also latencies at half of the capacity")
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
	if _, err := exec.LookPath("wrk"); err != nil {
		return fmt.Errorf("wrk is needed: %w", err)
	}
	dir, err := os.MkdirTemp("", "gridcast-bench-")
	if err != nil {
		return fmt.Errorf("folder for the bench: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	f, err := newFixture(ctx, dir, o.binary)
	if err != nil {
		return err
	}
	stopRedis, err := f.startRedis(ctx)
	if err != nil {
		return err
	}
	defer stopRedis()
	connections := []int{64, 256}
	if o.quick {
		connections = connections[:1]
	}
	began := load()
	var series series
	for round := range o.rounds {
		for _, c := range f.cases(o.only) {
			for _, n := range connections {
				for _, s := range f.servers(c, o.servers) {
					fmt.Fprintf(os.Stderr, "\rround %d of %d: %-60s", round+1, o.rounds, fmt.Sprintf("%s, %s, %d connections", s.name, c.name, n))
					m, err := f.measure(ctx, s, c, n, time.Duration(o.seconds)*time.Second)
					if err != nil {
						return fmt.Errorf("%s, %s: %w", s.name, c.name, err)
					}
					series.add(s.name, c.name, n, m)
				}
			}
		}
	}
	fmt.Fprintf(os.Stderr, "\r%80s\r", "")
	rows := series.medians()
	if o.openLoop {
		open, err := f.openLoop(ctx, rows, o.only)
		if err != nil {
			return err
		}
		rows = append(rows, open...)
	}
	fmt.Printf("%s, load average before %s, after %s; medians of %d runs of %d s\n\n", machine(), began, load(), o.rounds, o.seconds)
	printTable(os.Stdout, rows)
	return write(o.out, rows)
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
