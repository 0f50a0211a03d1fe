package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// helper is compiled into each package with faults. The environment says which fault is made.
const helper = `package %s

import (
	"os"
	"strconv"
)

var codemutantOn, _ = strconv.Atoi(os.Getenv("CODEMUTANT"))

func codemutant(number int) bool { return number == codemutantOn }

func codemutantPick[T any](number int, is, fault T) T {
	if codemutant(number) {
		return fault
	}
	return is
}
`

// helperFile is its name in each package.
const helperFile = "codemutant.go"

// house is the code of the product.
type house struct {
	root     string
	files    *token.FileSet
	importer types.Importer
}

// unit is a parsed package.
type unit struct {
	path, name string
	sources    map[string][]byte // by the name below the root
	parsed     map[string]*ast.File
}

// openHouse finds the product's module, and compiles the imports of its packages.
func openHouse(ctx context.Context) (*house, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "gridcast").Output()
	if err != nil {
		return nil, fmt.Errorf("find the module gridcast: %w", err)
	}
	h := &house{root: strings.TrimSpace(string(dir)), files: token.NewFileSet()}
	arguments := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, p := range packages {
		arguments = append(arguments, "./"+p.path)
	}
	c := exec.CommandContext(ctx, "go", arguments...)
	c.Dir = h.root
	list, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("compile the packages: %w", err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(list)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	h.importer = importer.ForCompiler(h.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return h, nil
}

// open parses a package.
func (h *house) open(path string) (*unit, error) {
	built, err := build.ImportDir(filepath.Join(h.root, path), 0)
	if err != nil {
		return nil, err
	}
	u := &unit{path: path, name: built.Name, sources: map[string][]byte{}, parsed: map[string]*ast.File{}}
	for _, name := range built.GoFiles {
		file := filepath.Join(path, name)
		if u.sources[file], err = os.ReadFile(filepath.Join(h.root, file)); err != nil {
			return nil, err
		}
		if u.parsed[file], err = parser.ParseFile(h.files, file, u.sources[file], parser.ParseComments); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// check finds the types of a package. With a fault they are those of the package that can make it.
func (h *house) check(u *unit, fault *site) (*types.Package, *types.Info, error) {
	parsed := map[string]*ast.File{}
	for file, syntax := range u.parsed {
		parsed[file] = syntax
	}
	if fault != nil {
		for file, source := range map[string][]byte{fault.file: apply([]site{*fault}), helperFile: fmt.Appendf(nil, helper, u.name)} {
			syntax, err := parser.ParseFile(h.files, file, source, 0)
			if err != nil {
				return nil, nil, err
			}
			parsed[file] = syntax
		}
	}
	list := make([]*ast.File, 0, len(parsed))
	for _, syntax := range parsed {
		list = append(list, syntax)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	pkg, err := (&types.Config{Importer: h.importer}).Check("gridcast/"+u.path, h.files, list, info)
	return pkg, info, err
}

// sites returns the places in a package, in their order.
func (h *house) sites(u *unit) ([]site, error) {
	own, info, err := h.check(u, nil)
	if err != nil {
		return nil, fmt.Errorf("types of %s: %w", u.path, err)
	}
	var sites []site
	names := make([]string, 0, len(u.parsed))
	for file := range u.parsed {
		names = append(names, file)
	}
	slices.Sort(names)
	for _, file := range names {
		f := &finder{files: h.files, types: info.Types, own: own, site: site{pkg: u.path, file: file, source: u.sources[file]}}
		f.walk(u.parsed[file])
		sites = append(sites, f.sites...)
	}
	return sites, nil
}

// apply returns a file that can make each of its faults.
func apply(faults []site) []byte {
	fromEnd := slices.SortedFunc(slices.Values(faults), func(a, b site) int { return b.start - a.start })
	source := faults[0].source
	for _, s := range fromEnd {
		source = slices.Concat(source[:s.start], []byte(strings.ReplaceAll(s.both, "§", strconv.Itoa(s.number))), source[s.end:])
	}
	return source
}

// overlaps reports whether two faults change the same code.
func (s site) overlaps(other site) bool {
	return s.file == other.file && s.start <= other.end && other.start <= s.end
}

// run runs a program in a folder, and returns its output.
func run(ctx context.Context, dir string, environment []string, name string, arguments ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, name, arguments...)
	c.Dir, c.Env = dir, append(os.Environ(), environment...)
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	err := c.Run()
	return output.Bytes(), errors.Join(err, ctx.Err())
}
