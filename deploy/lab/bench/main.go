//go:build linux

// Bench measures the CPU time that gridcast spends on a request, beside nginx, HAProxy, lighttpd and bare fasthttp
// on the same machine. "bench load" measures two edges under a load that grows beyond their capacity.
//
// Each server runs on the first core. The load generator (package loadgen) runs on the second core. For each server of a
// case the bench first searches the capacity. It then loads the servers in turn, round after round, with 30, 50, 70 and
// 90 % of their own capacity. Whatever else the machine does therefore falls on all servers alike. The kernel counts the
// CPU time of each server.
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
		case generateCommand:
			command, args = generateLoad, args[1:]
		case loadCommand:
			command, args = func(args []string) error { return runLoad(ctx, args) }, args[1:]
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
	binary, before, only string
	rounds               int
	length               time.Duration
	out, document        string
	print, quick, idle   bool
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&o.binary, "binary", ".var/bin/gridcast", "the gridcast to measure")
	f.StringVar(&o.before, "before", "", "another gridcast to measure beside it; both must read the store that this one builds")
	f.StringVar(&o.only, "case", "", "measure only the cases whose name begins with this text")
	f.IntVar(&o.rounds, "rounds", 6, "loads of each server in each case; fewer than 6 give no interval")
	f.DurationVar(&o.length, "length", 400*time.Millisecond, "length of a load")
	f.BoolVar(&o.quick, "quick", false, "one short round: shows that the bench works, measures nothing")
	f.StringVar(&o.out, "out", ".var/bench.json", "file for the rows")
	f.StringVar(&o.document, "document", "", "write the tables into this Markdown file")
	f.BoolVar(&o.idle, "idle", false, "measure only the memory of idle connections")
	f.BoolVar(&o.print, "print", false, "measure nothing: print the rows of --out")
	err := f.Parse(args)
	if o.quick {
		o.rounds, o.length = 1, 100*time.Millisecond
	}
	if err == nil && (o.rounds < 1 || o.length <= 0) {
		err = fmt.Errorf("--rounds %d --length %s: both must be above 0", o.rounds, o.length)
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
		err = readJSON(o.out, &rows)
	} else if rows, err = o.measure(ctx); err == nil && !o.idle {
		err = writeJSON(o.out, rows)
	}
	if err != nil || o.idle {
		return err
	}
	say := func(markdown bool) string {
		return fmt.Sprintf("%s, %d rounds. CPU time of a request in gridcast at %d %% of its capacity, as a share of the time in another server at %d %% of its own:\n\n%s\n\n"+
			"Each server at shares of its own capacity:\n\n%s\n",
			machine(), len(rows[0].Rounds), summarised, summarised, summaryOf(rows, markdown), tableOf(rows, markdown))
	}
	fmt.Print(say(false))
	if o.document == "" {
		return nil
	}
	return fillDocument(o.document, "bench", say(true))
}

// fillDocument replaces the text between the markers of a name in a document.
func fillDocument(file, name, text string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("document of the bench: %w", err)
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	head, rest, _ := strings.Cut(string(data), begin)
	_, tail, found := strings.Cut(rest, end)
	if !found {
		return fmt.Errorf("document of the bench: %s has no lines %q and %q", file, strings.TrimSpace(begin), end)
	}
	if err := os.WriteFile(file, []byte(head+begin+"\n"+text+"\n"+end+tail), 0o644); err != nil {
		return fmt.Errorf("document of the bench: %w", err)
	}
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

// measureCase starts the servers of a case, searches their capacities, and loads them in turn. Every other round goes
// the other way, so that a machine that gets slower during a round favours no server.
func (o *options) measureCase(ctx context.Context, f *fixture, c benchCase, label string) (rows []row, err error) {
	err = f.with(ctx, c, o.length, func(servers []*process, missing []string) error {
		for _, s := range servers {
			fmt.Fprintf(os.Stderr, "%s: capacity of %s\n", label, s.name)
			capacity, busy, err := f.capacity(ctx, s, c, o.length)
			if err != nil {
				return fmt.Errorf("capacity of %s: %w", s.name, err)
			}
			for _, percent := range percents {
				rows = append(rows, row{Server: s.name, Case: c.name, Percent: percent, Capacity: capacity, CapacityBusy: busy})
			}
		}
		for round := range o.rounds {
			fmt.Fprintf(os.Stderr, "%s: round %d of %d\n", label, round+1, o.rounds)
			for load := range percents {
				for turn := range servers {
					i := turn
					if round%2 == 1 {
						i = len(servers) - 1 - turn
					}
					r := &rows[i*len(percents)+load]
					s, err := f.load(ctx, servers[i], c, o.length, r.Capacity*float64(r.Percent)/100)
					if err != nil {
						return fmt.Errorf("%s: %w", r.Server, err)
					}
					r.Rounds = append(r.Rounds, s)
				}
			}
		}
		for i := range rows {
			rows[i].medians()
		}
		for _, name := range missing {
			rows = append(rows, row{Server: name, Case: c.name, Missing: true})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", label, err)
	}
	return rows, nil
}

func readJSON(file string, results any) error {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, results)
	}
	if err != nil {
		return fmt.Errorf("results of the bench in %s: %w", file, err)
	}
	return nil
}

// writeJSON writes the results of a measurement.
func writeJSON(file string, results any) error {
	data, err := json.MarshalIndent(results, "", "  ")
	err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o750))
	if err == nil {
		err = os.WriteFile(file, append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("results of the bench: %w", err)
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
