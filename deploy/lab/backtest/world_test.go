package backtest_test

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"testing"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/season"
	"gridcast/builder/source/f1db"
	"gridcast/deploy/must"
)

// release is the F1DB release behind the published figures.
const release = "../../../../shared/data/f1db/f1db-2026-json-splitted.zip"

var importRelease = sync.OnceValues(func() (*season.Archive, error) {
	a, _, err := f1db.Import(release, f1db.Options{})
	return a, err
})

// allSeasons returns the whole release; it skips the test where the release is missing.
func allSeasons(t testing.TB) *season.Archive {
	t.Helper()
	if _, err := os.Stat(release); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no F1DB release at %s: put f1db-json-splitted.zip of a release after the Hungarian Grand Prix of 2026 there", release)
	}
	return must.Get(importRelease())(t)
}

// embedded returns the embedded seasons.
func embedded(t testing.TB) *season.Archive {
	t.Helper()
	a := archivetest.Embedded(t)
	return a
}
