package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"

	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/season"
	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob/s3test"
)

// TestMain makes this test binary the program of the scripts in testdata, which starts under another name.
func TestMain(m *testing.M) {
	switch os.Args[0] {
	case sessionName:
		session()
		return
	default:
		if filepath.Base(os.Args[0]) == "gridcast" {
			main()
		}
	}
	// Facts come from the files of the tests, and no source is polled.
	if err := os.Setenv("GRIDCAST_NO_SOURCES", "true"); err != nil {
		panic(err)
	}
	// Most tests wait for processes, so several at a time keep two cores busy.
	if err := flag.Set("test.parallel", strconv.Itoa(max(6, 2*runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	os.Exit(browsers{m}.Run())
}

// browsers are the tests of this package, which share a browser.
type browsers struct{ m *testing.M }

// Run runs them with the credentials of every test server. A script sets those of its commands itself.
func (b browsers) Run() int {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": s3test.AccessKey, "AWS_SECRET_ACCESS_KEY": s3test.SecretKey} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	return browsertest.Main(b.m)
}

// seasons returns the path of an archive of some of the embedded seasons.
func seasons(t testing.TB, from, to int) string {
	t.Helper()
	return archiveFile(t, archivetest.Seasons(t, from, to))
}

// lateSeason returns the path of an archive of 2024 from its 18th round on, for tests of the weekend of Las Vegas that
// look at the rounds of these weeks alone. The rest of the season and the one before it have most of the documents.
func lateSeason(t testing.TB) string {
	t.Helper()
	facts := archivetest.Seasons(t, 2024, 2024)
	rounds := facts.Seasons[0].Rounds[17:]
	for i := range rounds {
		rounds[i].DriverStandings, rounds[i].TeamStandings = nil, nil // those of F1DB count all rounds
	}
	facts.Seasons[0].Rounds = rounds
	return archiveFile(t, facts)
}

// archiveFile returns the path of an archive of facts.
func archiveFile(t testing.TB, facts season.Facts) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "some.archive")
	must.Do(t, archive.WriteFile(path, archivetest.Stored(t, facts)))
	return path
}

// maxBinary bounds the size of the binary, because it is copied to every edge. Templates find
// methods by name, so the linker keeps every exported method of a library with many types. The client of Redis has
// a method for each command: 8 MB of the binary are its.
const maxBinary = 42_000_000

func TestBinarySize(t *testing.T) {
	info := must.Get(os.Stat(binary(t)))(t)
	t.Logf("the binary is %.1f MB", float64(info.Size())/1e6)
	if info.Size() > maxBinary {
		t.Errorf("the binary is %d bytes, may be %d", info.Size(), maxBinary)
	}
}

// asMakeBuild are the flags of make build. What tests compile with them has its packages in the cache.
var asMakeBuild = []string{"-trimpath", "-ldflags", "-s -w"}

// built is the real binary.
var built = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../../.var/test/gridcast")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", slices.Concat([]string{"build"}, asMakeBuild, []string{"-o", path, "."})...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build gridcast: %w\n%s", err, output)
	}
	return path, nil
})

// binary returns the path of the real binary, which is built once.
func binary(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the real binary")
	}
	path := must.Get(built())(t)
	return path
}
