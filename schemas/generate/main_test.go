package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
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
		must.Equal(t, name+": run go generate ./schemas", string(committed), string(files[name]))
	}
}

// TestFaultsAreNamed checks that a struct without a schema is refused, by its field.
func TestFaultsAreNamed(t *testing.T) {
	faults := map[string]string{}
	for _, fields := range []string{
		"\tLaps int `json:\"laps\"`",
		"\t// Completed laps.\n\tLaps int `json:\"laps\" minumum:\"1\"`",
		"\t// Completed laps.\n\tLaps int",
		"\t// Completed laps.\n\tLaps map[string]int `json:\"laps\"`",
		"\t// Completed laps.\n\tLaps Laps `json:\"laps\"`\n}\n\n// Laps are laps.\n//\n//schema:minumum 1\ntype Laps = int\n\ntype rest struct {",
		"\t// Completed laps.\n\tLaps uint8 `json:\"laps\"`",
	} {
		dir := t.TempDir()
		text := "package wire\n\n// RowsBody are rows.\ntype RowsBody = Success[[]Row]\n\n// Row is a row.\ntype Row struct {\n" + fields + "\n}\n"
		must.Do(t, os.WriteFile(filepath.Join(dir, "rows.go"), []byte(text), 0o600))
		structs := must.Get(readTypes(dir, "../v1/common.schema.json"))(t)
		faults[fields] = fmt.Sprint(schemaFiles(map[string][]byte{}, structs))
	}
	golden.Inputs(t, "testdata/faults.txt", faults)
}
