package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridcast/builder/archive/archivetest"
	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/s3test"
)

// killCount makes TestKilledBuilders kill another number of builders, at most 60.
const killCount = "GRIDCAST_KILLS"

// TestKilledBuilders kills builders at random moments, most of them while they publish. An edge
// follows and clients read from it: every body matches its tag and a published manifest, and versions
// never go back. In the end prune removes the remains of the killed builders.
func TestKilledBuilders(t *testing.T) {
	t.Parallel() // fills the time in which others wait
	kills := 5
	if text := os.Getenv(killCount); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", killCount, err)
		}
	}
	t.Run("directory", func(t *testing.T) { killBuilders(t, inDirectory(t), kills, 1) })
	t.Run("versitygw", func(t *testing.T) { killBuilders(t, onServer(t, s3test.Versity(t)), kills, 2) })
}

func killBuilders(t *testing.T, s storage, kills int, seed uint64) {
	instants := changingInstants(t)
	random := rand.New(rand.NewPCG(seed, seed))
	s.build(t, instants[0].Add(-time.Hour).Format(time.RFC3339), "--archive", seasons(t, 2024, 2024))
	last := s.attempt(t, instants[0], alive)
	keys := manyKeys(t, s, 40)
	edge := startServer(t, t.TempDir(), "edge", "--store", s.name)
	r := readFrom(t, edge, keys)

	window := 50 * time.Millisecond // from claim to end of a build that is left alone
	died, abandoned := 0, 0
	for i, at := range instants[1 : len(instants)-1] {
		if died >= kills && abandoned > 0 {
			break
		}
		// Every fourth survives, because the killed ones before it must not block it.
		moment := moment{afterClaim: within(random, window)}
		switch i % 4 {
		case 0: // some die while they publish, even on a fast machine
			moment.afterClaim = 1
		case 1:
			moment.beforeClaim = within(random, 200*time.Millisecond)
		case 3:
			moment = alive
		}
		next := s.attempt(t, at, moment)
		switch {
		case next.version < last.version:
			t.Fatalf("the current version went from %d to %d", last.version, next.version)
		case moment == alive && next.version == last.version:
			t.Fatalf("the build of %s published nothing", at)
		case moment == alive:
			window = next.published
		case next.killed:
			died++
			if s.lastClaim(t) > next.version {
				abandoned++
			}
		}
		last = next
	}
	must.Require(t, died >= kills, "only %d builders were killed: the rest were done before", died)
	last = s.attempt(t, instants[len(instants)-1], alive)
	must.Until(t, "the edge serves the last version", func() bool { return servedVersion(t, edge) == last.version })
	r.stop()
	r.check(t, s)
	s.pruneLeftovers(t, died)
}

// changingInstants lists when something changes in the season of 2024: a pick is
// frozen, the lights go out, a result is verified. The first is before them.
func changingInstants(t *testing.T) []time.Time {
	t.Helper()
	instants := []time.Time{time.Date(2024, 2, 1, 0, 0, 0, 0, time.UTC)}
	for _, year := range archivetest.Seasons(t, 2024, 2024).Seasons {
		for i := range year.Rounds {
			r := &year.Rounds[i]
			start := r.StartsAt()
			instants = append(instants, r.GridKnownAt().Add(time.Minute), start.Add(time.Minute), start.Add(5*time.Hour))
		}
	}
	return instants
}

// moment says when a builder is killed: beforeClaim after its start or, if that is zero, afterClaim after
// it has claimed a number.
type moment struct{ beforeClaim, afterClaim time.Duration }

func within(random *rand.Rand, d time.Duration) time.Duration {
	return 1 + time.Duration(random.Int64N(int64(d)))
}

// alive is a moment that never comes.
var alive = moment{afterClaim: time.Hour}

// attempted is the outcome of a build.
type attempted struct {
	version   int64 // that is current afterwards, and whole
	killed    bool
	published time.Duration // how long the build lived after its claim
}

// attempt starts a build at an instant of race time and kills it at a moment.
func (s storage) attempt(t *testing.T, at time.Time, m moment) attempted {
	t.Helper()
	claim := fmt.Sprintf("versions/%d.json", s.lastClaim(t)+1)
	builder := exec.Command(binary(t), "build", "--store", s.name, "--model", "grid-frequency",
		"--auto-verify-after", "30m", "--now", at.Format(time.RFC3339))
	builder.Dir = t.TempDir()
	var output must.Buffer
	builder.Stdout, builder.Stderr = &output, &output
	must.Do(t, builder.Start())
	ended := make(chan struct{})
	var err error
	go func() {
		err = builder.Wait()
		close(ended)
	}()
	wait := m.beforeClaim
	if wait == 0 {
		s.awaitObject(t, claim, ended)
		wait = m.afterClaim
	}
	claimed := time.Now()
	select {
	case <-ended:
	case <-time.After(wait):
		_ = builder.Process.Kill() // it may just have ended
		<-ended
	}
	result := attempted{killed: err != nil && builder.ProcessState.ExitCode() < 0, published: time.Since(claimed)}
	if err != nil && !result.killed {
		t.Fatalf("build at %s: %v\n%s", at, err, output.String())
	}
	version, err := snapshots.Verify(t.Context(), s, 0, nil)
	if err = errors.Join(append(version.Faults, err)...); err != nil {
		t.Fatalf("the current version after a build at %s: %v", at, err)
	}
	result.version = version.Version
	return result
}

// awaitObject returns when the store has the object, or the builder has ended. It looks for the file of the object: a
// request a millisecond costs both the test and the server more than the builder.
func (s storage) awaitObject(t *testing.T, key string, ended <-chan struct{}) {
	t.Helper()
	for tick := time.Tick(time.Millisecond); ; {
		select {
		case <-tick:
			if _, err := os.Stat(filepath.Join(s.folder, key)); err == nil {
				return
			}
		case <-ended:
			return
		}
	}
}

// lastClaim is the highest number that any builder has claimed.
func (s storage) lastClaim(t *testing.T) int64 {
	t.Helper()
	last := int64(0)
	for info, err := range s.List(t.Context(), "versions/") {
		must.Do(t, err)
		var version int64
		if _, err := fmt.Sscanf(info.Key, "versions/%d.json", &version); err != nil {
			t.Fatalf("claim %s: %v", info.Key, err)
		}
		last = max(last, version)
	}
	return last
}

func (s storage) versions(t *testing.T) []snapshots.Summary {
	t.Helper()
	return must.Get(snapshots.List(t.Context(), s))(t)
}

// pruneLeftovers makes everything two days old, prunes by the real binary, and compares the remaining
// objects with those that the current version needs.
func (s storage) pruneLeftovers(t *testing.T, died int) {
	t.Helper()
	abandoned := 0
	for _, version := range s.versions(t) {
		if version.Status == snapshots.Unpublished {
			abandoned++
		}
	}
	must.Hold(t, abandoned != 0, "no builder was killed while it published: nothing was tested")
	before := len(s.unneeded(t))
	s.age(t, 48*time.Hour)
	gridcast(t, t.TempDir(), "snapshots", "prune", "--yes", "--keep", "1", "--store", s.name)
	if left := s.unneeded(t); len(left) > 0 {
		t.Errorf("prune left what nothing needs: %v", left)
	}
	t.Logf("%d builders killed, %d of them with a number that was never published; prune removed %d objects", died, abandoned, before)
	gridcast(t, t.TempDir(), "snapshots", "verify", "--store", s.name)
}

// unneeded lists the objects, and in a directory the unfinished files, that do not belong to the current
// version, the record, the keys or the archive.
func (s storage) unneeded(t *testing.T) []string {
	t.Helper()
	base := must.Get(snapshots.LoadBase(t.Context(), s, nil))(t)
	needed := map[string]bool{
		snapshots.PointerKey: true, snapshots.ManifestKey(base.Pointer.Version): true,
		fmt.Sprintf("versions/%d.json", base.Pointer.Version): true, "archive.json": true, "settings.json": true, "keys/keys.json": true,
		"copies/settings.json": true, "copies/keys/keys.json": true,
	}
	for _, object := range base.Manifest.Objects() {
		key := object.Key
		needed[key] = true
	}
	var left []string
	for info, err := range s.List(t.Context(), "") {
		must.Do(t, err)
		if !needed[info.Key] && !strings.HasPrefix(info.Key, "ledger/") && !strings.HasPrefix(info.Key, "archives/") && !strings.HasPrefix(info.Key, "audit/") {
			left = append(left, info.Key)
		}
	}
	half, err := os.ReadDir(filepath.Join(s.folder, "@new"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, file := range half {
		left = append(left, "@new/"+file.Name())
	}
	return left
}
