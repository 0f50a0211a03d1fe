// Package deploy_test checks the imports between packages against a table, so that a
// wrong import fails the build and not a review.
package deploy_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gridcast/deploy/must"
)

const module = "gridcast/"

// arrows says which of our packages a package may import, by the longest matching prefix of
// its path. A package may always import packages below its own path.
var arrows = map[string][]string{
	"schemas":                       {},
	"schemas/wire":                  {},
	"schemas/catalog":               {},
	"schemas/ordered":               {},
	"schemas/docs":                  {"schemas"},
	"schemas/frame":                 {},
	"schemas/generate":              {"schemas/catalog", "schemas/wire"},
	"snapshots":                     {"schemas", "snapshots/blob"},
	"snapshots/backup":              {"snapshots"},
	"snapshots/blob":                {"snapshots/blob", "snapshots/retry", "snapshots/watch"},
	"snapshots/clock":               {},
	"snapshots/notes":               {"snapshots/blob", "snapshots/blob/dirblob"},
	"snapshots/retry":               {},
	"snapshots/watch":               {},
	"builder":                       {"schemas", "snapshots", "builder"},
	"builder/season":                {},
	"builder/archive":               {"builder/assemble", "builder/ledger", "builder/season", "builder/archive", "snapshots/blob"},
	"builder/bulk":                  {"schemas", "snapshots", "builder/check"},
	"builder/names":                 {},
	"builder/source":                {"builder/names", "builder/season", "builder/source", "snapshots/retry"},
	"builder/assemble":              {"builder/names", "builder/season", "builder/assemble"},
	"builder/settings":              {"builder/season", "snapshots"},
	"builder/provenance":            {"builder/season"},
	"builder/ingest":                {"snapshots/blob", "snapshots/retry", "builder/almanac", "builder/archive", "builder/assemble", "builder/ledger", "builder/provenance", "builder/season", "builder/settings", "builder/source", "builder/stewards"},
	"builder/predict":               {"builder/season", "builder/predict"},
	"builder/tiles":                 {"snapshots", "builder/ledger"},
	"builder/ledger":                {"builder/season", "snapshots/blob"},
	"builder/live":                  {"builder/season", "snapshots/blob"},
	"builder/almanac":               {"builder/names", "builder/season", "builder/ledger"},
	"builder/picks":                 {"builder/almanac", "builder/ledger", "builder/predict", "builder/season"},
	"builder/running":               {"builder/almanac", "builder/ledger", "builder/live", "builder/picks", "builder/predict", "builder/season"},
	"builder/derive":                {"schemas", "snapshots", "builder/almanac", "builder/archive", "builder/ledger", "builder/live", "builder/picks", "builder/predict", "builder/season", "builder/source"},
	"builder/proof":                 {"schemas", "snapshots", "builder/almanac", "builder/archive", "builder/derive", "builder/ledger", "builder/live", "builder/predict", "builder/render", "builder/running", "builder/tiles", "builder/units"},
	"builder/stewards":              {"builder/almanac", "builder/names", "builder/ledger", "builder/season"},
	"builder/render":                {"schemas", "builder/almanac", "builder/ledger", "builder/live", "builder/picks", "builder/predict", "builder/running", "builder/season", "builder/source"},
	"builder/check":                 {"schemas", "builder/check"},
	"builder/units":                 {"schemas", "snapshots", "builder/almanac", "builder/check", "builder/render", "builder/season"},
	"edge":                          {"schemas", "snapshots", "edge"},
	"edge/keys":                     {"snapshots/blob", "snapshots/notes", "edge/limit"},
	"edge/limit":                    {"edge/limit"},
	"edge/limit/redislimit":         {"edge/limit"},
	"scheduler":                     {"schemas", "snapshots", "scheduler"},
	"scheduler/cadence":             {},
	"scheduler/cadence/cadencetest": {"scheduler/cadence"},
	"deploy/operator":               {"schemas", "snapshots", "builder", "edge", "scheduler", "deploy/auditlog", "deploy/view"},
	"deploy/view":                   {"builder/almanac", "builder/ledger", "edge/keys", "snapshots"},
	"deploy":                        {"schemas", "snapshots", "builder", "edge", "scheduler", "deploy"},
}

// borders says where a foreign module may be imported; modules that are not listed are free.
var borders = map[string][]string{
	"github.com/minio/minio-go/v7":    {"snapshots/blob/s3blob", "snapshots/blob/s3test"},
	"github.com/fsnotify/fsnotify":    {"snapshots/watch"},
	"github.com/failsafe-go":          {"snapshots/retry"},
	"github.com/redis/go-redis/v9":    {"edge/limit/redislimit"},
	"github.com/valyala/fasthttp":     {"edge", "deploy/lab"},
	"github.com/go-co-op/gocron/v2":   {"scheduler"},
	"github.com/jonboulle/clockwork":  {"scheduler"},
	"github.com/google/uuid":          {"scheduler"},
	"github.com/klauspost/compress":   {"snapshots", "builder/archive", "builder/source"},
	"github.com/molecule-man/go-brrr": {"snapshots"},
	"github.com/arran4/golang-ical":   {"builder/source/calendar"},
	"github.com/alecthomas/kong":      {"deploy/gridcast", "deploy/flags", "deploy/operator", "deploy/lab"},
	"code.dny.dev/ssrf":               {"scheduler/webhook"},
	"golang.org/x/mod":                {"snapshots/notes", "builder/tiles", "deploy/kit"},

	"github.com/go-json-experiment/json": {"builder/archive", "builder/bulk", "builder/check", "builder/source/f1db", "schemas", "snapshots"},
}

// pure lists packages that may know neither files, network nor clock.
var pure = []string{"builder/season", "builder/names", "builder/provenance", "builder/predict", "builder/almanac", "builder/live", "builder/picks", "builder/running", "builder/stewards", "builder/assemble", "builder/render", "builder/check", "scheduler/cadence", "schemas/wire", "schemas/catalog"}

var impure = []string{"os", "net", "net/http", "io/ioutil", "os/exec", "syscall"}

func TestArrows(t *testing.T) {
	packages := imports(t)
	must.Require(t, len(packages) >= 10, "found only %d packages: the walk does not see the house", len(packages))
	used := map[string]bool{}
	for pkg, imported := range packages {
		allowed := arrows[longestPrefix(pkg)]
		must.Hold(t, longestPrefix(pkg) != "", "%s has no place in the house", pkg)
		for _, path := range imported {
			if ours, ok := strings.CutPrefix(path, module); ok {
				must.Hold(t, below(ours, pkg) || slices.ContainsFunc(allowed, func(a string) bool { return below(ours, a) }),
					"%s may not import %s", pkg, ours)
				continue
			}
			for border, places := range borders {
				used[border] = used[border] || below(path, border)
				must.Hold(t, !below(path, border) || slices.ContainsFunc(places, func(p string) bool { return below(pkg, p) }),
					"%s may not import %s: it stays in %v", pkg, path, places)
			}
			must.Hold(t, !slices.Contains(pure, pkg) || !slices.Contains(impure, path), "%s may not import %s: it is pure", pkg, path)
		}
	}
	for border := range borders {
		must.Hold(t, used[border], "no package imports %s, which the table of borders places", border)
	}
}

// TestTopLevel keeps the top of the repository as agreed.
func TestTopLevel(t *testing.T) {
	want := []string{"Makefile", "README.md", "builder", "deploy", "edge", "go.mod", "go.sum", "scheduler", "schemas", "snapshots"}
	entries := must.Get(os.ReadDir(".."))(t)
	var got []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			got = append(got, e.Name())
		}
	}
	must.Hold(t, slices.Equal(got, want), "top level: got %v, want %v", got, want)
}

// imports maps each package of the project, by its path, to the packages that its files import outside
// tests.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	packages := map[string][]string{}
	for pkg, files := range sources(t) {
		for _, file := range files {
			for _, spec := range file.Imports {
				packages[pkg] = append(packages[pkg], strings.Trim(spec.Path.Value, `"`))
			}
		}
	}
	return packages
}

// sources maps each package of the project, by its path, to its files outside tests.
func sources(t *testing.T) map[string][]*ast.File {
	t.Helper()
	packages := map[string][]*ast.File{}
	must.Do(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "tools"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		pkg := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../"))
		packages[pkg] = append(packages[pkg], file)
		return err
	}))
	return packages
}

func longestPrefix(pkg string) string {
	longest := ""
	for prefix := range arrows {
		if below(pkg, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	return longest
}

// below reports whether the path is dir or inside it.
func below(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// TestGocronSchedules: nothing but gocron keeps a schedule in the packages that run jobs. Only the race time that gocron
// gets as its clock sets timers.
func TestGocronSchedules(t *testing.T) {
	own := regexp.MustCompile(`\btime\.(NewTicker|Tick|AfterFunc)\(`)
	read := 0
	for _, dir := range []string{"scheduler", "scheduler/webhook", "deploy/service", "deploy/servers"} {
		files := must.Get(filepath.Glob(filepath.Join("..", dir, "*.go")))(t)
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") || path == "../scheduler/clock.go" {
				continue
			}
			source := must.Get(os.ReadFile(path))(t)
			read++
			if found := own.Find(source); found != nil {
				t.Errorf("%s has a schedule of its own, %s…): make it a job of the scheduler or use scheduler.Every", path, found)
			}
			must.Hold(t, !strings.Contains(string(source), "go-co-op/gocron") || path == "../scheduler/gocron.go",
				"%s imports gocron, which only scheduler/gocron.go does", path)
		}
	}
	must.Hold(t, read >= 15, "read %d files, want all of the packages that run jobs", read)
}

// rooms lists the season of tests, the files of builder's root, which are the sequence of a build, and then the packages
// directly below it. Each may use those that stand after it.
var rooms = []string{
	"testseason",
	"builder.go", "documents.go", "due.go", "rules.go",
	"proof", "derive", "units", "bulk", "check", "render", "running", "picks", "tiles",
	"ingest", "stewards", "almanac", "archive", "assemble", "predict", "live", "ledger", "settings", "source",
	"provenance", "names", "season",
}

// backUp lists the uses of a room before the user in the list, "user room", each with its reason. Three are the most.
var backUp = map[string]string{}

// TestNothingRunsBackUp: within builder, each file of the root and each package uses only rooms after it. A file of the
// root uses another if it names something declared there.
func TestNothingRunsBackUp(t *testing.T) {
	must.Hold(t, len(backUp) <= 3, "%d uses may run back up, want at most 3", len(backUp))
	uses := usesOfRoot(t)
	for pkg, imported := range imports(t) {
		from, ok := roomOf(pkg)
		for _, path := range imported {
			if to, below := roomOf(strings.TrimPrefix(path, module)); ok && below && to != from {
				uses[from+" "+to] = true
			}
		}
	}
	must.Hold(t, len(uses) >= 2*len(rooms), "found %d uses, want at least two for each of %d rooms", len(uses), len(rooms))
	for use := range uses {
		from, to, _ := strings.Cut(use, " ")
		i, j := slices.Index(rooms, from), slices.Index(rooms, to)
		must.Hold(t, i >= 0 && j >= 0, "builder/%s uses builder/%s, and one of them has no place in the list of rooms", from, to)
		if _, allowed := backUp[use]; j < i && !allowed {
			t.Errorf("builder/%s uses builder/%s, which stands before it", from, to)
		}
	}
	for use := range backUp {
		must.Hold(t, uses[use], "%s may run back up, but nothing does", use)
	}
}

// roomOf returns the room of a package below builder. The root has a room for each file; its users use the first.
func roomOf(pkg string) (string, bool) {
	path, ok := strings.CutPrefix(pkg+"/", "builder/")
	room, _, _ := strings.Cut(path, "/")
	if room == "" {
		room = "builder.go"
	}
	return room, ok
}

// usesOfRoot returns the uses of the files of builder's root: of one another, and of the packages that they import.
func usesOfRoot(t *testing.T) map[string]bool {
	t.Helper()
	paths := must.Get(filepath.Glob("../builder/*.go"))(t)
	uses, set := map[string]bool{}, token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(set, path, nil, parser.SkipObjectResolution))(t)
		for _, spec := range file.Imports {
			if to, ok := roomOf(strings.TrimPrefix(strings.Trim(spec.Path.Value, `"`), module)); ok {
				uses[filepath.Base(path)+" "+to] = true
			}
		}
		files = append(files, file)
	}
	// Only names of the root itself are looked up, so no import is read and their errors do not matter.
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noImports{}, Error: func(error) {}}
	root, _ := config.Check("builder", set, files, &info)
	for name, object := range info.Uses {
		from, to := filepath.Base(set.Position(name.Pos()).Filename), filepath.Base(set.Position(object.Pos()).Filename)
		if object.Pkg() == root && from != to {
			uses[from+" "+to] = true
		}
	}
	return uses
}

type noImports struct{}

func (noImports) Import(path string) (*types.Package, error) {
	return nil, errors.New(path + " is not read")
}
