// Command codemutants tests the tests. It draws sixty small faults by a seed, five of each operator, makes one at a time in
// the code of the product, and demands that a test of its package or of a direct user fails.
//
//	go run ./codemutants --seed 1
//
// All faults of a draw are compiled at once: each is a branch, which the environment of a test takes. Only the tests that
// reach the place of a fault run with it; the coverage of each test says which. A fault that does not compile, that overlaps
// another one, or that equivalent.txt explains is drawn again. With --all it makes every fault, in several rounds of faults
// that do not overlap. The exit status is 1 if more than --survivors faults survive.
package main

import (
	"bufio"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// packages are the packages that get faults, each with the direct users that also test it.
var packages = []struct {
	path  string
	users []string
}{
	{"snapshots", []string{"snapshots/backup", "builder"}},
	{"snapshots/backup", []string{"snapshots"}},
	{"snapshots/notes", []string{"snapshots", "edge/keys"}},
	{"snapshots/blob", []string{"snapshots", "builder/ledger", "edge/keys"}},
	{"snapshots/blob/chain", []string{"builder/ledger", "deploy/auditlog"}},
	{"snapshots/blob/dirblob", []string{"snapshots/blob", "snapshots", "builder/ledger"}},
	{"edge/keys", []string{"edge", "deploy/operator"}},
	{"edge/limit", []string{"edge"}}, // the tests of its redislimit wait in real time
	{"builder/ledger", []string{"builder", "builder/almanac"}},
	{"builder/assemble", []string{"builder/archive", "builder/ingest"}},
	{"builder/almanac", []string{"builder/render", "builder"}},
}

const (
	perOperator = 5
	// cpuSeconds bounds the CPU time of a test binary, so that an endless loop is a failure at any load of the machine.
	cpuSeconds = 30
	// patience bounds its wall time, so that a deadlock is a failure.
	patience = time.Minute
	// slow is the time from which on a test is slow.
	slow = 200 * time.Millisecond
)

//go:embed equivalent.txt
var equivalentText string

func main() {
	seed := flag.Uint64("seed", 1, "decides which faults are drawn")
	survivors := flag.Int("survivors", 3, "faults that may survive")
	within := flag.String("packages", "", "draw from these packages alone, such as builder/ledger,builder/almanac")
	only := flag.String("only", "", "make the faults of the lines that contain this text, such as publish.go:83, instead of a draw")
	all := flag.Bool("all", false, "make every fault, instead of a draw; some hours")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	alive, err := judge(ctx, *seed, *within, *only, *all || *only != "")
	stop()
	if err == nil && alive > *survivors {
		err = fmt.Errorf("seed %d: %d faults survived, at most %d may", *seed, alive, *survivors)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "codemutants:", err)
		os.Exit(1)
	}
}

// drawn is a fault with the outcome of its tests.
type drawn struct {
	site
	by string // the package with the test that failed; empty: the fault survived
}

func judge(ctx context.Context, seed uint64, within, only string, all bool) (alive int, err error) {
	h, err := openHouse(ctx)
	if err != nil {
		return 0, err
	}
	faults, err := draw(h, seed, within, only, all)
	if err != nil {
		return 0, err
	}
	w := workshop{root: h.root, suites: map[string]*suite{}}
	if w.temp, err = os.MkdirTemp("", "codemutants-"); err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(w.temp) }()
	var results []drawn
	for len(faults) > 0 {
		var round, later []site
		for _, s := range faults {
			if slices.ContainsFunc(round, s.overlaps) {
				later = append(later, s)
				continue
			}
			s.number = len(round) + 1
			round = append(round, s)
		}
		tried, err := w.round(ctx, round)
		if err != nil {
			return 0, err
		}
		results, faults = append(results, tried...), later
	}
	return report(results), nil
}

// draw returns the faults of a seed, or all of them, at places that contain the text of only. With the text of within, it
// draws from the packages that the text names.
func draw(h *house, seed uint64, within, only string, all bool) ([]site, error) {
	explained, err := equivalents(strings.NewReader(equivalentText))
	if err != nil {
		return nil, err
	}
	units, places := map[string]*unit{}, 0
	byOperator := map[string][]site{}
	for _, p := range packages {
		if within != "" && !slices.Contains(strings.Split(within, ","), p.path) {
			continue
		}
		u, err := h.open(p.path)
		if err != nil {
			return nil, err
		}
		sites, err := h.sites(u)
		if err != nil {
			return nil, err
		}
		units[p.path], places = u, places+len(sites)
		for _, s := range sites {
			byOperator[s.operator] = append(byOperator[s.operator], s)
		}
	}
	random := rand.New(rand.NewPCG(seed, 0))
	var faults []site
	for _, operator := range operators {
		sites, taken := byOperator[operator], 0
		random.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
		for _, s := range sites {
			if explained[s.key()] || !strings.Contains(s.where(), only) || !all && (taken == perOperator || slices.ContainsFunc(faults, s.overlaps)) {
				continue
			}
			if _, _, err := h.check(units[s.pkg], &s); err != nil {
				continue // it does not compile
			}
			taken++
			faults = append(faults, s)
		}
	}
	if places == 0 {
		return nil, fmt.Errorf("--packages %s names none of the packages that get faults", within)
	}
	fmt.Printf("seed %d: %d faults of %d places\n", seed, len(faults), places)
	return faults, nil
}

// report prints the table, and returns the number of survivors.
func report(results []drawn) (alive int) {
	fmt.Printf("\n%-20s %6s %8s\n", "operator", "killed", "survived")
	for _, operator := range operators {
		killed, survived := 0, 0
		for _, r := range results {
			switch {
			case r.operator != operator:
			case r.by == "":
				survived++
			default:
				killed++
			}
		}
		alive += survived
		fmt.Printf("%-20s %6d %8d\n", operator, killed, survived)
	}
	fmt.Printf("%-20s %6d %8d\n", "all", len(results)-alive, alive)
	return alive
}

// equivalents reads the keys of the faults that no test can see. A line has the key and, after the last " # ", the reason.
func equivalents(from io.Reader) (map[string]bool, error) {
	keys := map[string]bool{}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndex(line, " # ")
		if i < 0 {
			return nil, fmt.Errorf("equivalent.txt: a line without a reason after \" # \": %s", line)
		}
		keys[line[:i]] = true
	}
	return keys, lines.Err()
}
