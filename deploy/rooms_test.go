package deploy_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridcast/deploy/must"
)

// rooms lists the season of tests, the files of builder's root, which are the sequence of a build, and then the packages
// directly below it. Each may use those that stand after it.
var rooms = []string{
	"testseason",
	"builder.go", "replay.go", "import.go", "documents.go", "state.go", "due.go", "rules.go",
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
	paths, err := filepath.Glob("../builder/*.go")
	if err != nil {
		t.Fatal(err)
	}
	uses, set := map[string]bool{}, token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
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
