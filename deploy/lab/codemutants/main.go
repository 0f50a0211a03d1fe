// Command codemutants tests the tests. It draws sixty small faults by a seed, five of each operator, makes one at a time in
// the code of the product, and demands that a test of its package or of a direct user fails.
//
//	go run ./codemutants --seed 1
//
// All faults of a draw are compiled at once: each is a branch, which the environment of a test takes. A fault that does not
// compile, that overlaps another one, or that equivalent.txt explains is drawn again. The exit status is 1 if more than
// --survivors faults survive.
package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
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
	cpuSeconds = 60
	// patience bounds its wall time, so that a deadlock is a failure.
	patience = 90 * time.Second
)

//go:embed equivalent.txt
var equivalentText string

func main() {
	seed := flag.Uint64("seed", 1, "decides which faults are drawn")
	survivors := flag.Int("survivors", 3, "faults that may survive")
	within := flag.String("packages", "", "draw from these packages alone, such as builder/ledger,builder/almanac")
	only := flag.String("only", "", "make the faults of the lines that contain this text, such as publish.go:83, instead of a draw")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	alive, err := judge(ctx, *seed, *within, *only)
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

func judge(ctx context.Context, seed uint64, within, only string) (alive int, err error) {
	h, err := openHouse(ctx)
	if err != nil {
		return 0, err
	}
	faults, err := draw(h, seed, within, only)
	if err != nil || len(faults) == 0 {
		return 0, err
	}
	w := &workshop{root: h.root, binaries: map[string]string{}}
	if w.temp, err = os.MkdirTemp("", "codemutants-"); err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(w.temp) }()
	if err := w.overlay(faults); err != nil {
		return 0, err
	}
	var results []drawn
	for _, s := range faults {
		began := time.Now()
		by, err := w.try(ctx, s)
		if err != nil {
			return 0, err
		}
		results = append(results, drawn{s, by})
		outcome := "killed by " + by
		if by == "" {
			outcome = "SURVIVED"
		}
		fmt.Printf("%2d/%d  %-20s %-45s %s (%.0f s)\n", s.number, len(faults), s.operator, s.where(), outcome, time.Since(began).Seconds())
	}
	return report(results), nil
}

// draw returns the faults of a seed, or all at places that contain the text of only. With the text of within, it draws from
// the packages that the text names.
func draw(h *house, seed uint64, within, only string) ([]site, error) {
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
			if only == "" && taken == perOperator || only != "" && !strings.Contains(s.where(), only) {
				continue
			}
			if explained[s.key()] || slices.ContainsFunc(faults, s.overlaps) {
				continue
			}
			if _, _, err := h.check(units[s.pkg], &s); err != nil {
				continue // it does not compile
			}
			s.number, taken = len(faults)+1, taken+1
			faults = append(faults, s)
		}
	}
	if places == 0 {
		return nil, fmt.Errorf("--packages %s names none of the packages that get faults", within)
	}
	fmt.Printf("seed %d: %d faults of %d places\n", seed, len(faults), places)
	return faults, nil
}

// report prints the table and the survivors, and returns their number.
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
	for _, r := range results {
		if r.by == "" {
			fmt.Printf("\n%s\n", r.site)
		}
	}
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

// workshop compiles and runs the tests of packages that can make the faults.
type workshop struct {
	root, temp string
	binaries   map[string]string // of tests that pass without a fault, by package
}

// overlay writes the changed files, and the list of them for the compiler.
func (w *workshop) overlay(faults []site) error {
	replace := map[string]string{}
	write := func(file string, content []byte) error {
		to := filepath.Join(w.temp, strings.ReplaceAll(file, "/", "_"))
		replace[filepath.Join(w.root, file)] = to
		return os.WriteFile(to, content, 0o600)
	}
	byFile := map[string][]site{}
	for _, s := range faults {
		byFile[s.file] = append(byFile[s.file], s)
	}
	for file, of := range byFile {
		folder := filepath.Dir(file)
		if err := errors.Join(write(file, apply(of)), write(filepath.Join(folder, helperFile), fmt.Appendf(nil, helper, filepath.Base(folder)))); err != nil {
			return err
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.temp, "overlay.json"), data, 0o600)
}

// try returns the package with a test that fails by the fault, or nothing.
func (w *workshop) try(ctx context.Context, s site) (by string, err error) {
	users := []string{s.pkg}
	for _, p := range packages {
		if p.path == s.pkg {
			users = append(users, p.users...)
		}
	}
	for _, user := range users {
		if err := w.prepare(ctx, user); err != nil {
			return "", err
		}
		if _, failed := w.test(ctx, user, s.number); failed != nil {
			return user, ctx.Err()
		}
	}
	return "", nil
}

// prepare compiles the tests of a package, which must pass without a fault.
func (w *workshop) prepare(ctx context.Context, pkg string) error {
	if w.binaries[pkg] != "" {
		return nil
	}
	binary := filepath.Join(w.temp, strings.ReplaceAll(pkg, "/", "_")+".test")
	if output, err := run(ctx, w.root, nil, "go", "test", "-c", "-vet=off", "-overlay", filepath.Join(w.temp, "overlay.json"), "-o", binary, "./"+pkg); err != nil {
		return fmt.Errorf("compile the tests of %s: %w\n%s", pkg, err, output)
	}
	w.binaries[pkg] = binary
	if output, err := w.test(ctx, pkg, 0); err != nil {
		return fmt.Errorf("the tests of %s fail without a fault: %w\n%s", pkg, err, output)
	}
	return nil
}

// test runs the short tests of a package with the fault of a number; 0: none.
func (w *workshop) test(ctx context.Context, pkg string, number int) ([]byte, error) {
	return run(ctx, filepath.Join(w.root, pkg), []string{fmt.Sprintf("CODEMUTANT=%d", number)},
		"sh", "-c", fmt.Sprintf(`ulimit -t %d; exec "$0" "$@"`, cpuSeconds), w.binaries[pkg], "-test.short", "-test.failfast", "-test.timeout="+patience.String())
}
