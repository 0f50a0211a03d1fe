// Package sourcetest finds real data for tests. The data is too large for the repository. On a machine
// without it a test is skipped, and the reason names the file and its place.
package sourcetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The releases of F1DB that tests read, as files of the data folder.
const (
	F1DB2024 = "f1db/f1db-json-splitted.zip"      // whole seasons from 1950 to 2024
	F1DB2026 = "f1db/f1db-2026-json-splitted.zip" // up to the Hungarian Grand Prix of 2026

	// The history of src/data in F1DB's repository from 31 December 2024 to 14 June 2026.
	F1DBHistory = "f1db-history/f1db-2025-2026.bundle"
)

var whatItIs = map[string]string{
	F1DB2024:    "the f1db-json-splitted.zip of F1DB's last release of the season 2024 (https://github.com/f1db/f1db/releases)",
	F1DB2026:    "the f1db-json-splitted.zip of F1DB's release after the Hungarian Grand Prix of 2026 (https://github.com/f1db/f1db/releases)",
	F1DBHistory: "a git bundle of the branch main of F1DB's repository, with its commits of 2025 and 2026",
}

// Path returns the absolute path of a file of the data folder, which GRIDCAST_TEST_DATA names. Its
// default is shared/data beside the checkout. Without the file the test is skipped.
func Path(t testing.TB, file string) string {
	t.Helper()
	folder := os.Getenv("GRIDCAST_TEST_DATA")
	if folder == "" {
		folder = filepath.Join(root(t), "..", "shared", "data")
	}
	path, err := filepath.Abs(filepath.Join(folder, file))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		what := whatItIs[file]
		if what == "" {
			what = "the data that the test reads"
		}
		t.Skipf("no real data here: put %s at %s below a folder, and name the folder in GRIDCAST_TEST_DATA", what, file)
	}
	return path
}

// root returns the folder of the product's module: a test runs in the folder of its package, and a module below
// deploy has a go.mod of its own.
func root(t testing.TB) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if text, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(text), "module gridcast\n") {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod of gridcast above the test")
		}
		dir = parent
	}
}
