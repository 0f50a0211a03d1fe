package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"gridcast/schemas/catalog"
)

// types are the declarations of package wire.
type types struct {
	specs    map[string]*ast.TypeSpec
	docs     map[string]*ast.CommentGroup // of specs
	values   map[string][]string          // the constants of a named string, in their order
	defined  map[string]bool              // the definitions of the common file
	ordering []string                     // the names of specs in the order of the text
}

func readTypes(dir, common string) (*types, error) {
	t := &types{specs: map[string]*ast.TypeSpec{}, docs: map[string]*ast.CommentGroup{}, values: map[string][]string{}, defined: map[string]bool{}}
	text, err := os.ReadFile(common)
	if err != nil {
		return nil, err
	}
	var definitions struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(text, &definitions); err != nil {
		return nil, fmt.Errorf("%s: %w", common, err)
	}
	for name := range definitions.Defs {
		t.defined[name] = true
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			if d, ok := declaration.(*ast.GenDecl); ok {
				t.read(d)
			}
		}
	}
	return t, nil
}

func (t *types) read(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			t.specs[spec.Name.Name], t.docs[spec.Name.Name] = spec, d.Doc
			t.ordering = append(t.ordering, spec.Name.Name)
		case *ast.ValueSpec:
			if kind, ok := spec.Type.(*ast.Ident); ok && d.Tok == token.CONST {
				if value, ok := spec.Values[0].(*ast.BasicLit); ok && value.Kind == token.STRING {
					text, _ := strconv.Unquote(value.Value) // the parser has accepted it
					t.values[kind.Name] = append(t.values[kind.Name], text)
				}
			}
		}
	}
}

// paragraphs returns the paragraphs of a comment, each in one line. The first one lacks "NAME is" at its beginning.
func paragraphs(doc *ast.CommentGroup, name string) []string {
	var all []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(doc.Text()), "\n\n") {
		all = append(all, strings.Join(strings.Fields(paragraph), " "))
	}
	for _, verb := range []string{" is ", " are "} {
		if text, ok := strings.CutPrefix(all[0], name+verb); ok {
			all[0] = string(unicode.ToUpper(rune(text[0]))) + text[1:]
		}
	}
	return all
}

// directives returns the lines of a comment that begin with //schema:, without that.
func directives(doc *ast.CommentGroup) []string {
	var all []string
	if doc == nil {
		return nil
	}
	for _, line := range doc.List {
		if text, ok := strings.CutPrefix(line.Text, "//schema:"); ok {
			all = append(all, text)
		}
	}
	return all
}

// name is an endpoint's name in the catalog: the constant, and the comment behind it for the README.
type name struct{ constant, data string }

// readNames returns the names of the endpoints.
func readNames(file string) (map[catalog.Name]name, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	names := map[catalog.Name]name{}
	for _, declaration := range parsed.Decls {
		d, ok := declaration.(*ast.GenDecl)
		if !ok || d.Tok != token.CONST {
			continue
		}
		for _, spec := range d.Specs {
			spec := spec.(*ast.ValueSpec)
			if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Name" {
				continue
			}
			value, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value) // the compiler has accepted it
			names[catalog.Name(value)] = name{spec.Names[0].Name, strings.TrimSpace(spec.Comment.Text())}
		}
	}
	return names, nil
}
