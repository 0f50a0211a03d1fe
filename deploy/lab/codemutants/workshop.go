package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/tools/cover"
)

// workshop compiles and runs the tests of packages that can make the faults.
type workshop struct {
	root, temp string
	suites     map[string]*suite // by package
}

// suite is the tests of a package.
type suite struct {
	binary string // makes the faults of a round
	tests  []reacher
}

// reacher is a test with the statements that it reaches, by file below the root.
type reacher struct {
	name   string
	slow   bool
	blocks map[string][]cover.ProfileBlock
}

// reaching returns the names of the slow or the quick tests that reach a fault.
func (s *suite) reaching(of site, lasting bool) (names []string) {
	for _, t := range s.tests {
		if t.slow == lasting && t.reaches(of) {
			names = append(names, t.name)
		}
	}
	return names
}

// reaches goes by the block of the fault. The condition of a case stands in no block: the function's first one decides.
// Each test reaches a fault outside of functions.
func (t reacher) reaches(of site) bool {
	reached, inBlock := t.at(of.file, of.at)
	if !inBlock && of.entry.line > 0 {
		reached, _ = t.at(of.file, of.entry)
	}
	return reached || !inBlock && of.entry.line == 0
}

// at reports whether a place lies in a block, and whether the test reaches that.
func (t reacher) at(file string, p place) (reached, inBlock bool) {
	for _, b := range t.blocks[file] {
		if !p.before(place{b.StartLine, b.StartCol}) && p.before(place{b.EndLine, b.EndCol}) {
			reached, inBlock = reached || b.Count > 0, true
		}
	}
	return reached, inBlock
}

// testers returns a package and its users.
func testers(pkg string) []string {
	for _, p := range packages {
		if p.path == pkg {
			return append([]string{pkg}, p.users...)
		}
	}
	return nil
}

// round makes faults that do not overlap, several at a time, and returns their outcomes.
func (w *workshop) round(ctx context.Context, faults []site) ([]drawn, error) {
	if err := w.overlay(faults); err != nil {
		return nil, err
	}
	for _, s := range w.suites {
		s.binary = ""
	}
	for _, fault := range faults {
		for _, user := range testers(fault.pkg) {
			if err := w.prepare(ctx, user); err != nil {
				return nil, err
			}
		}
	}
	var mu sync.Mutex
	var results []drawn
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * runtime.GOMAXPROCS(0)) // a deadlock uses none
	for _, fault := range faults {
		group.Go(func() error {
			by := w.try(ctx, fault)
			mu.Lock()
			defer mu.Unlock()
			results = append(results, drawn{fault, by})
			outcome := "killed by " + by
			if by == "" {
				outcome = "SURVIVED\n\t" + fault.String()
			}
			fmt.Printf("%2d/%d  %-20s %-45s %s\n", len(results), len(faults), fault.operator, fault.where(), outcome)
			return ctx.Err()
		})
	}
	return results, group.Wait()
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

// try returns the package with a test that fails by the fault, or nothing. The quick tests run first.
func (w *workshop) try(ctx context.Context, fault site) (by string) {
	for _, lasting := range []bool{false, true} {
		wait := patience
		if !lasting {
			wait /= 3
		}
		for _, user := range testers(fault.pkg) {
			s := w.suites[user]
			names := s.reaching(fault, lasting)
			if len(names) == 0 {
				continue
			}
			if _, failed := w.test(ctx, user, s.binary, fault.number, "-test.timeout="+wait.String(), "-test.run", "^("+strings.Join(names, "|")+")$"); failed != nil {
				return user
			}
		}
	}
	return ""
}

// prepare compiles the tests of a package, which must pass without a fault, and finds what they reach.
func (w *workshop) prepare(ctx context.Context, pkg string) error {
	s := w.suites[pkg]
	if s == nil {
		s = &suite{}
		if err := w.reach(ctx, pkg, s); err != nil {
			return err
		}
		w.suites[pkg] = s
	}
	if s.binary != "" {
		return nil
	}
	binary, err := w.compile(ctx, pkg, ".test", "-overlay", filepath.Join(w.temp, "overlay.json"))
	if err != nil {
		return err
	}
	s.binary = binary
	return w.passes(w.test(ctx, pkg, binary, 0))
}

// passes returns the error of tests without a fault.
func (w *workshop) passes(output []byte, err error) error {
	if err != nil {
		return fmt.Errorf("tests fail without a fault: %w\n%s", err, output)
	}
	return nil
}

// reach runs each test of a package alone, and notes the statements that it reaches.
func (w *workshop) reach(ctx context.Context, pkg string, s *suite) error {
	var covered []string
	for _, p := range packages {
		if slices.Contains(testers(p.path), pkg) {
			covered = append(covered, "gridcast/"+p.path)
		}
	}
	binary, err := w.compile(ctx, pkg, ".cover", "-cover", "-coverpkg", strings.Join(covered, ","))
	if err != nil {
		return err
	}
	list, err := w.test(ctx, pkg, binary, 0, "-test.list", "^(Test|Fuzz|Example)")
	if err := w.passes(list, err); err != nil {
		return err
	}
	names := slices.DeleteFunc(strings.Fields(string(list)), func(name string) bool { return name == "PASS" })
	s.tests = make([]reacher, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		group.Go(func() error {
			profile, began := fmt.Sprintf("%s.%d", binary, i), time.Now()
			if err := w.passes(w.test(ctx, pkg, binary, 0, "-test.run", "^"+name+"$", "-test.coverprofile", profile)); err != nil {
				return err
			}
			files, err := cover.ParseProfiles(profile)
			s.tests[i] = reacher{name: name, slow: time.Since(began) > slow, blocks: map[string][]cover.ProfileBlock{}}
			for _, f := range files {
				s.tests[i].blocks[strings.TrimPrefix(f.FileName, "gridcast/")] = f.Blocks
			}
			return err
		})
	}
	return group.Wait()
}

// compile returns the test binary of a package.
func (w *workshop) compile(ctx context.Context, pkg, ending string, flags ...string) (binary string, err error) {
	binary = filepath.Join(w.temp, strings.ReplaceAll(pkg, "/", "_")+ending)
	if output, err := run(ctx, w.root, nil, "go", slices.Concat([]string{"test", "-c", "-vet=off", "-o", binary}, flags, []string{"./" + pkg})...); err != nil {
		return "", fmt.Errorf("compile the tests of %s: %w\n%s", pkg, err, output)
	}
	return binary, nil
}

// test runs short tests of a package with the fault of a number; 0: none.
func (w *workshop) test(ctx context.Context, pkg, binary string, number int, flags ...string) ([]byte, error) {
	return run(ctx, filepath.Join(w.root, pkg), []string{fmt.Sprintf("CODEMUTANT=%d", number)},
		"sh", append([]string{"-c", fmt.Sprintf(`ulimit -t %d; exec "$0" "$@"`, cpuSeconds), binary, "-test.short", "-test.failfast", "-test.timeout=" + patience.String()}, flags...)...)
}
