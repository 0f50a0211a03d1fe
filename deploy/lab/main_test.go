package main

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/season"
	"gridcast/deploy/must"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"lab": main}) }

// TestScripts runs each script of testdata with archives of a few seasons.
func TestScripts(t *testing.T) {
	t.Parallel() // it takes as long as the figures of the page
	eight := archivetest.Seasons(t, 2023, 2024)
	eight.Seasons[1].Rounds = eight.Seasons[1].Rounds[:8] // a simulation of their titles takes a fifth of the time
	variables := map[string]string{
		"GRIDCAST_ARCHIVE": archiveFile(t, archivetest.Seasons(t, 2024, 2024)),
		"SEASONS_2023":     archiveFile(t, archivetest.Seasons(t, 2023, 2024)),
		"EIGHT_ROUNDS":     archiveFile(t, eight),
	}
	testscript.Run(t, testscript.Params{Dir: "testdata", ContinueOnError: true, Setup: func(env *testscript.Env) error {
		for name, value := range variables {
			env.Setenv(name, value)
		}
		return nil
	}})
}

// archiveFile writes an archive of facts and returns its path.
func archiveFile(t *testing.T, facts season.Facts) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.archive")
	must.Do(t, archive.WriteFile(path, archivetest.Stored(t, facts)))
	return path
}
