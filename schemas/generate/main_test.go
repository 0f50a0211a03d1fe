package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridcast/deploy/must"

	"github.com/google/go-cmp/cmp"
)

// TestCommittedFilesAreCurrent compares the generated files with the committed ones.
func TestCommittedFilesAreCurrent(t *testing.T) {
	files := must.Get(Files(".."))(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		committed, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Errorf("%v: run go generate ./schemas", err)
			continue
		}
		if diff := cmp.Diff(string(committed), string(files[name])); diff != "" {
			t.Errorf("%s differs: run go generate ./schemas (-committed +generated):\n%s", name, diff)
		}
	}
}

// TestFaultsAreNamed checks that a struct without a schema is refused, by its field.
func TestFaultsAreNamed(t *testing.T) {
	for _, tt := range []struct{ fields, want string }{
		{"\tLaps int `json:\"laps\"`", "field Laps needs a comment"},
		{"\t// Completed laps.\n\tLaps int `json:\"laps\" minumum:\"1\"`", "field Laps: unknown tag minumum"},
		{"\t// Completed laps.\n\tLaps int", "json tag of its own"},
		{"\t// Completed laps.\n\tLaps map[string]int `json:\"laps\"`", "no schema for the type"},
		{"\t// Completed laps.\n\tLaps Laps `json:\"laps\"`\n}\n\n// Laps are laps.\n//\n//schema:minumum 1\ntype Laps = int\n\ntype rest struct {", "unknown directive //schema:minumum"},
		{"\t// Completed laps.\n\tLaps uint8 `json:\"laps\"`", "no schema for the type uint8"},
	} {
		dir := t.TempDir()
		text := "package wire\n\n// RowsBody are rows.\ntype RowsBody = Success[[]Row]\n\n// Row is a row.\ntype Row struct {\n" + tt.fields + "\n}\n"
		must.Do(t, os.WriteFile(filepath.Join(dir, "rows.go"), []byte(text), 0o600))
		structs := must.Get(readTypes(dir, "../v1/common.schema.json"))(t)
		if err := schemaFiles(map[string][]byte{}, structs); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", tt.fields, err, tt.want)
		}
	}
}
