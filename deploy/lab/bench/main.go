//go:build linux

// Bench measures the CPU time that gridcast spends on a request, beside nginx, HAProxy and bare fasthttp
// on the same machine.
//
// Each server runs on the first core. The load generator (package loadgen) runs on the second core and
// loads the servers of a case in turn, one second each, round after round. Whatever else the machine does
// therefore falls on all servers alike. The kernel counts the CPU time of each server.
//
// The bench prints medians over the rounds. A share compares two servers in the same round. Its 95 %
// interval comes from the order statistics of the rounds; a share whose interval contains 1 is within the
// noise, and the table says so. The rows go to .var/bench.json. Bench reads /proc, so it needs Linux.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() { os.Exit(run()) }

// run runs the command of the first argument, else the bench, and returns the exit status.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	command, args := func(args []string) error { return bench(ctx, args) }, os.Args[1:]
	if len(args) > 0 {
		switch args[0] {
		case constantCommand:
			command, args = serveConstant, args[1:]
		case loadCommand:
			command, args = generateLoad, args[1:]
		}
	}
	if err := command(args); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// options are the flags of the command line.
type options struct {
	binary, before, only   string
	rounds                 int
	out, plot              string
	markdown, print, quick bool
	idle                   bool
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&o.binary, "binary", ".var/bin/gridcast", "the gridcast to measure")
	f.StringVar(&o.before, "before", "", "another gridcast to measure beside it; both must read the store that this one builds")
	f.StringVar(&o.only, "case", "", "measure only the cases whose name begins with this text")
	f.IntVar(&o.rounds, "rounds", 11, "seconds of load for each server in each case; fewer than 6 give no interval")
	f.BoolVar(&o.quick, "quick", false, "one round: shows that the bench works, measures nothing")
	f.StringVar(&o.out, "out", ".var/bench.json", "file for the rows")
	f.StringVar(&o.plot, "plot", "", "write the shares of nginx's CPU as an SVG to this file")
	f.BoolVar(&o.idle, "idle", false, "measure only the memory of idle connections")
	f.BoolVar(&o.markdown, "markdown", false, "print the table as Markdown")
	f.BoolVar(&o.print, "print", false, "measure nothing: print the rows of --out")
	err := f.Parse(args)
	if o.quick {
		o.rounds = 1
	}
	if err == nil && o.rounds < 1 {
		err = fmt.Errorf("--rounds %d: must be at least 1", o.rounds)
	}
	return o, err
}

func bench(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	var rows []row
	if o.print {
		data, err := os.ReadFile(o.out)
		if err != nil {
			return fmt.Errorf("rows of the bench: %w", err)
		}
		if err := json.Unmarshal(data, &rows); err != nil {
			return fmt.Errorf("rows of the bench in %s: %w", o.out, err)
		}
	} else if rows, err = o.measure(ctx); err != nil || o.idle {
		return err
	} else if err := o.write(rows); err != nil {
		return err
	}
	if o.plot != "" {
		if err := os.WriteFile(o.plot, plot(rows), 0o644); err != nil {
			return fmt.Errorf("plot of the bench: %w", err)
		}
	}
	fmt.Printf("%s, %d rounds of a second\n\n%s\n", machine(), len(rows[0].Rounds), tableOf(rows, o.markdown))
	return nil
}

// measure runs every case and returns the rows.
func (o *options) measure(ctx context.Context) ([]row, error) {
	dir, err := os.MkdirTemp("", "gridcast-bench-")
	if err != nil {
		return nil, fmt.Errorf("folder for the bench: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	f, err := newFixture(ctx, dir, o.binary, o.before)
	if err != nil {
		return nil, err
	}
	if o.idle {
		sentence, err := f.idle(ctx)
		if err == nil {
			fmt.Println(sentence)
		}
		return nil, err
	}
	var rows []row
	for i, c := range cases {
		if !strings.HasPrefix(c.name, o.only) {
			continue
		}
		if c.halfOf != "" {
			full := find(rows, gridcast, c.halfOf, c.connections)
			if full == nil {
				continue // the case that it halves was not measured
			}
			c.perSecond = full.PerSecond / 2
		}
		measured, err := o.measureCase(ctx, f, c, fmt.Sprintf("case %d of %d, %s", i+1, len(cases), c.name))
		if err != nil {
			return nil, err
		}
		rows = append(rows, measured...)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("--case %q: no case begins with it", o.only)
	}
	return rows, nil
}

// measureCase starts the servers of a case and loads them in turn. Every other round goes the other way, so
// that a machine that gets slower during a round favours no server.
func (o *options) measureCase(ctx context.Context, f *fixture, c benchCase, label string) (rows []row, err error) {
	err = f.with(ctx, c, func(servers []*process) error {
		samples := make([][]sample, len(servers))
		for round := range o.rounds {
			for turn := range servers {
				i := turn
				if round%2 == 1 {
					i = len(servers) - 1 - turn
				}
				fmt.Fprintf(os.Stderr, "%s: round %d of %d, %s\n", label, round+1, o.rounds, servers[i].name)
				s, err := f.load(ctx, servers[i], c, time.Second)
				if err != nil {
					return fmt.Errorf("%s: %w", servers[i].name, err)
				}
				samples[i] = append(samples[i], s)
			}
		}
		for i, s := range servers {
			rows = append(rows, newRow(s.name, c, samples[i]))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", label, err)
	}
	return rows, nil
}

func (o *options) write(rows []row) error {
	data, err := json.MarshalIndent(rows, "", "  ")
	err = errors.Join(err, os.MkdirAll(filepath.Dir(o.out), 0o750))
	if err == nil {
		err = os.WriteFile(o.out, append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("rows of the bench: %w", err)
	}
	return nil
}

// machine names the processor of this machine.
func machine() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	_, name, _ := strings.Cut(string(info), "model name\t: ")
	name, _, _ = strings.Cut(name, "\n")
	return fmt.Sprintf("%d cores of %s", strings.Count(string(info), "processor\t"), name)
}
