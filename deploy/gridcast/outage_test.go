package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/source/codehosttest"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/console"
	"gridcast/deploy/must"
	"gridcast/deploy/terminal"
	"gridcast/edge"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots/blob/porttest"
	"gridcast/snapshots/blob/s3test"
)

// outageLength makes the outage of TestOutageUnderLoad longer than it usually is.
const outageLength = "GRIDCAST_OUTAGE"

// TestOutageUnderLoad stops the storage under two edges while clients ask them. One edge
// crashes meanwhile and starts again from its own copy. No request fails, and when the storage
// is back both edges follow.
func TestOutageUnderLoad(t *testing.T) {
	t.Parallel() // most of it waits
	outage := 3 * time.Second
	if text := os.Getenv(outageLength); text != "" {
		var err error
		if outage, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", outageLength, err)
		}
	}
	server := s3test.Versity(t)
	s := onServer(t, server)
	s.build(t, "2024-11-24T05:00:00Z", "--archive", lateSeason(t))
	dir := t.TempDir()
	startEdge := func(cache string) *process {
		return startServer(t, dir, "edge", "--store", s.name, "--cache-dir", cache, "--now", "2024-11-24T05:00:00Z")
	}
	keys := manyKeys(t, s, 100)
	steady := startEdge("steady")
	began := time.Now()
	crashing := startEdge("crashing")
	usual := time.Since(began) // for an edge to be ready on this machine now
	for _, copied := range []string{"keys/keys.json", "version/current.json"} {
		must.Until(t, "the edge has its own copy", func() bool {
			_, err := os.Stat(filepath.Join(dir, "crashing", copied))
			return err == nil
		})
	}

	readers := []*reader{readFrom(t, steady, keys[:50]), readFrom(t, crashing, keys[50:])}

	server.Stop()
	began = time.Now()
	must.Until(t, "the edges notice the outage", func() bool { return storeProblem(t, steady) && storeProblem(t, crashing) })

	readers[1].stop()
	crashing.kill(t)
	died := time.Now()
	restarted := startEdge("crashing")
	ready := time.Since(died)
	if ready-usual > 15*time.Second { // to ask the storage in vain takes 20
		t.Errorf("the edge was ready %v after its crash, and %v after its first start: it has waited for the storage", ready, usual)
	}
	readers = append(readers, readFrom(t, restarted, keys[50:]))

	must.Until(t, "the restarted edge notices the outage", func() bool { return storeProblem(t, restarted) })
	<-time.After(time.Until(began.Add(outage)))
	must.Hold(t, storeProblem(t, steady) && storeProblem(t, restarted), "an edge does not say any more that the storage is down")
	server.Start(t)
	back := time.Now()
	if r := s.build(t, "2024-11-24T06:00:01Z"); r.Version != 2 {
		t.Errorf("published version %d after the outage, want 2", r.Version)
	}
	published := time.Now()
	late := newKey(t, dir, s.name, "pro")
	for _, edge := range []*process{steady, restarted} {
		must.Until(t, "the edge follows again", func() bool { return servedVersion(t, edge) == 2 && !storeProblem(t, edge) })
		must.Until(t, "the edge learns of a new key", func() bool {
			return newClient(edge.url, late).do(t, "GET", "/api/v1/drivers", nil).status == 200
		})
	}
	for _, r := range readers {
		r.stop()
		r.check(t, s)
	}
	t.Logf("storage down for %.1f s; the crashed edge was ready after %.2f s; published %.2f s after the storage was back, followed by both %.2f s later",
		back.Sub(began).Seconds(), ready.Seconds(), published.Sub(back).Seconds(), time.Since(published).Seconds())
}

// edgeStatus is the public answer of /status.
type edgeStatus struct {
	Version      int64  `json:"version"`
	StoreProblem string `json:"store_problem"`
	LimitsFault  string `json:"limits_fault"`
	RaceTime     string `json:"race_time"`
}

// statusOf asks the server at an address.
func statusOf(t testing.TB, url string) edgeStatus {
	t.Helper()
	return data[edgeStatus](t, newClient(url, "").do(t, "GET", "/status", nil))
}

func servedVersion(t testing.TB, edge *process) int64 { return statusOf(t, edge.url).Version }

func storeProblem(t testing.TB, edge *process) bool {
	return statusOf(t, edge.url).StoreProblem != ""
}

// notBuilt is the sentence of log, readiness and status while a service cannot build.
const notBuilt = "versions are not built"

// TestServeServesWhateverIsPublished damages a file that builds need. The service still serves the
// published version, the admin port names the reason, and builds start again after the fix.
func TestServeServesWhateverIsPublished(t *testing.T) {
	t.Parallel() // most of it waits
	const at = "2024-07-01T12:00:00Z"
	for name, file := range map[string]string{
		"the last file of the ledger is cut short": "ledger",
		"a part of the archive is cut short":       "archives/parts",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			gridcast(t, dir, "build", "--store", "dir:store", "--now", at, "--model", "grid-frequency", "--archive", seasons(t, 2024, 2024))
			key := newKey(t, dir, "dir:store", "pro")
			files, err := filepath.Glob(filepath.Join(dir, "store", filepath.FromSlash(file), "*"))
			must.Require(t, err == nil && len(files) != 0, "no files of the %s: %v", file, err)
			path := files[len(files)-1]
			whole := must.Get(os.ReadFile(path))(t)
			replace(t, path, whole[:len(whole)/2])

			admin := porttest.Address(t)
			server := startServer(t, dir, "serve", "--store", "dir:store", "--now", at, "--model", "grid-frequency", "--admin-listen", admin)
			c := newClient(server.url, key)
			if got := data[[]wire.DriverStanding](t, c.get(t, "/standings")); len(got) == 0 {
				t.Error("no standings are served")
			}
			status := func() string {
				return data[edge.StatusDocument](t, newClient("http://"+admin, "").do(t, "GET", "/status", nil)).Builder
			}
			must.Until(t, "the status says why nothing is built", func() bool {
				return regexp.MustCompile(regexp.QuoteMeta(filepath.Base(path)) + "|archive").MatchString(status())
			})
			public := newClient(server.url, "")
			a := public.do(t, "GET", "/status", nil)
			must.Equal(t, "the public status of the builder", notBuilt, data[edge.StatusDocument](t, a).Builder)
			must.Equal(t, "paths in the public status", 0, bytes.Count(a.body, []byte(dir)))
			a = public.do(t, "GET", "/readyz", nil)
			must.Equal(t, "readiness", 200, a.status)
			must.Show(t, "/readyz", string(a.body), notBuilt)
			replace(t, path, whole)
			must.Until(t, "versions are built again", func() bool { return status() == "" })
		})
	}
}

// replace writes a file as the store does, in one step.
func replace(t *testing.T, path string, data []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(path+".new", data, 0o600))
	must.Do(t, os.Rename(path+".new", path))
}

// TestDiskFull fills the disk of a store. A command is refused as a whole, doctor names the problem, and the same
// command succeeds once there is room.
func TestDiskFull(t *testing.T) {
	t.Parallel() // most of it waits
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("no small disk on this machine: %v", err)
	}
	t.Cleanup(func() {
		must.Succeed(t, "Unmount", syscall.Unmount(dir, syscall.MNT_DETACH))
	})
	create := []string{"keys", "create", "--name", "two", "--tier", "pro", "--store", "dir:store"}
	gridcast(t, dir, "keys", "create", "--name", "one", "--tier", "pro", "--store", "dir:store")
	before := gridcast(t, dir, "keys", "list", "--json", "--store", "dir:store")
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	fails := func(says string, args ...string) {
		t.Helper()
		cmd := exec.Command(binary(t), args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		must.Fail(t, "on a full disk "+args[0], err)
		must.Show(t, "on a full disk "+args[0], string(out), says)
	}
	fails("was not done, because it could not be recorded", create...)
	fails("rights       gridcast snapshots prune --store 'dir:store'", "doctor", "--store", "dir:store")
	if after := gridcast(t, dir, "keys", "list", "--json", "--store", "dir:store"); after != before {
		t.Errorf("something was half done:\n%s\n%s", before, after)
	}
	must.Do(t, os.Remove(filler))
	gridcast(t, dir, create...)
}

// The disk of the store is not mounted after a restart. The service goes on with its copy and opens no new ledger, an
// edge starts from its copy too, and doctor names the version and the command that helps. When the disk is back, the
// service builds again. Only --new-store begins anew.
func TestStoreNotMounted(t *testing.T) {
	must.Long(t, "starts five processes")
	dir := t.TempDir()
	archive := seasons(t, 2025, 2025)
	serve := []string{"serve", "--store", "dir:store", "--cache-dir", "cache", "--archive", archive, "--no-sources"}
	newKey(t, dir, "dir:store", "pro")
	p := startServer(t, dir, serve...)
	for _, copied := range []string{"keys/keys.json", "version/current.json"} {
		p.await(t, func() bool { _, err := os.Stat(filepath.Join(dir, "cache", copied)); return err == nil })
	}
	p.end(t)

	// A misspelt name of the store: the service says so, serves its copy, and opens no new ledger.
	misspelt := slices.Clone(serve)
	misspelt[2] = "dir:stroe"
	p = startServer(t, dir, misspelt...)
	p.await(t, func() bool { return p.answers("/readyz") && p.output.Says("is the name of the store right?", notBuilt) })
	p.end(t)
	if err := os.Mkdir(filepath.Join(dir, "stroe"), 0o700); err != nil { // there, but another folder
		t.Fatal(err)
	}
	p = startServer(t, dir, misspelt...)
	p.await(t, func() bool { return p.answers("/readyz") && p.output.Says(notBuilt) })
	p.end(t)
	startServer(t, dir, "edge", "--store", "dir:stroe", "--cache-dir", "cache").end(t)
	if entries, err := os.ReadDir(filepath.Join(dir, "stroe")); err != nil || len(entries) > 0 {
		t.Errorf("the service wrote %v into the misspelt store, %v", entries, err)
	}

	gridcast(t, dir, "store", "backup", "backup", "--store", "dir:store", "--by", "anna")
	store, gone := filepath.Join(dir, "store"), filepath.Join(dir, "unmounted")
	must.Do(t, os.Rename(store, gone))

	startServer(t, dir, "edge", "--store", "dir:store", "--cache-dir", "cache").end(t)
	p = startServer(t, dir, serve...)
	p.await(t, func() bool {
		return p.output.Says(notBuilt, "is the disk mounted? gridcast store restore, or --new-store")
	})
	if _, err := os.Stat(store); err == nil {
		t.Fatal("the service made a new store")
	}
	doctor := exec.Command(binary(t), "doctor", "edge", "--store", "dir:store", "--cache-dir", "cache", "--listen", "127.0.0.1:0")
	doctor.Dir = dir
	output, err := doctor.CombinedOutput()
	must.Fail(t, "doctor", err)
	must.Show(t, "doctor's output", string(output), "PROBLEM", "gridcast store restore BACKUP")
	must.Do(t, os.Rename(gone, store))
	p.await(t, func() bool {
		_, err := os.Stat(filepath.Join(store, "@new"))
		return err == nil && p.answers("/readyz")
	})
	p.end(t)

	// An empty folder, as where the disk should be mounted, is no new store either.
	must.Do(t, os.Rename(store, gone))
	must.Do(t, os.Mkdir(store, 0o700))
	p = startServer(t, dir, serve...)
	p.await(t, func() bool { return p.output.Says(notBuilt) })
	must.Fail(t, "the service opened a new ledger", must.Err(os.Stat(filepath.Join(store, "ledger"))))
	p.end(t)
	restore := exec.Command(binary(t), "store", "restore", "backup", "--store", "dir:store", "--cache-dir", "cache", "--by", "anna", "--yes")
	restore.Dir = dir
	if output, err := restore.CombinedOutput(); err != nil || bytes.Contains(output, []byte("is unknown")) {
		t.Errorf("restore: %v, want it to know the version from the copy:\n%s", err, output)
	}

	must.Do(t, os.RemoveAll(store))
	must.Do(t, os.Mkdir(store, 0o700))
	address := porttest.Address(t)
	p = launch(t, dir, "http://"+address, "/healthz", append(serve, "--new-store", "--operator-listen", "127.0.0.1:0", "--listen", address))
	p.await(t, func() bool { _, err := os.Stat(filepath.Join(store, "ledger")); return err == nil })
	newKey(t, dir, "dir:store", "pro")
	p.await(t, func() bool { return p.answers("/readyz") })
	p.end(t)
}

// TestSchedulerTakesOver runs two schedulers on one store and kills one while it builds: the
// pick is frozen once, and the other goes on without being told.
func TestSchedulerTakesOver(t *testing.T) {
	t.Parallel() // most of it waits
	must.Long(t, "half a weekend takes most of a minute")
	const session = 2024022 // Las Vegas
	w := replayedWeekend(t)
	// Nobody has frozen the pick yet: the schedulers find that it is due.
	began := time.Now()
	h := newHouse(t, "dir:store", lateSeason(t), w.Round.GridKnownAt().Add(-time.Hour), "--model", "grid-frequency")
	// Four processes start until lights out, in half a minute or in a dozen times the time that the store
	// has taken on this machine now. The race is live for almost three times as long.
	const before = 90 * time.Minute
	lead := max(30*time.Second, 12*time.Since(began))
	race := raceClock(t, w.Round.StartsAt().Add(-before), before.Seconds()/lead.Seconds())
	h.run(t, race)
	dir := h.scheduler.cmd.Dir
	startScheduler(t, dir, "--store", "dir:store", "--race-clock", race.String(), "--model", "grid-frequency")

	h.await(t, "the pick is frozen", func(c *client) bool {
		a := c.do(t, http.MethodGet, "/api/v1/predictions?session_key="+terminal.Number(session), nil)
		return a.status == http.StatusOK && len(data[[]wire.PredictionRecord](t, a)) == 1
	})
	// On a busy machine the rebuild may have ended before the kill, or before its phases were read: then another scheduler
	// is started, and asked again.
	for tries := 1; !h.killWhileRendering(t); tries++ {
		must.Require(t, tries < 10, "no rebuild was killed while it rendered")
		h.scheduler = startScheduler(t, dir, "--store", "dir:store", "--race-clock", race.String(), "--model", "grid-frequency")
	}
	h.await(t, "the other scheduler publishes lights out", func(c *client) bool { // and perhaps more, until the last kill succeeds
		s := entry(t, c, session).Status
		return s == wire.Live || s == wire.AwaitingResult
	})

	var events []ledger.Event
	must.Do(t, json.Unmarshal([]byte(gridcast(t, dir, "ledger", "list", "--json", "--session", terminal.Number(session), "--store", "dir:store")), &events))
	events = slices.DeleteFunc(events, func(e ledger.Event) bool { return e.Type == ledger.ForecastNoted })
	must.Hold(t, len(events) == 1 && events[0].Type == ledger.PickFrozen, "got %+v, want the pick frozen once", events)
	gridcast(t, dir, "ledger", "audit", "--store", "dir:store")
	gridcast(t, dir, "snapshots", "verify", "--store", "dir:store")
}

// killWhileRendering asks the scheduler to rebuild and kills it as soon as it says that it
// renders. It reports whether that was in time: the audit log has the rebuild, which was announced
// before it began, and nothing of its end.
func (h *house) killWhileRendering(t *testing.T) bool {
	t.Helper()
	audited := func() int {
		files := must.Get(filepath.Glob(filepath.Join(h.dir, "store", "audit", "*.json")))(t)
		return len(files)
	}
	before := audited()
	must.Hold(t, before != 0, "the audit log has not even the key")
	c := console.Client{Address: strings.TrimPrefix(h.scheduler.url, "http://"), Token: h.token, Operator: "anna"}
	run, err := c.Rebuild(t.Context(), "", "to be killed")
	must.Do(t, err)
	var last console.Phase
	_, err = c.Follow(t.Context(), run, func(e console.Event) {
		if h.scheduler.killed {
			return // it had said more before it died
		}
		if last = e.Phase; last == console.Render {
			h.scheduler.kill(t)
		}
	})
	if last != console.Render {
		h.scheduler.kill(t)
		t.Logf("the rebuild ended in the phase %q before it was seen to render", last)
		return false
	}
	switch n := audited() - before; {
	case n < 1:
		t.Fatal("the audit log has nothing of the rebuild")
	case n > 1 || err == nil:
		t.Log("the scheduler was killed too late")
		return false
	}
	return true
}

// TestTimer fills a store with the two commands that a timer runs where no scheduler does, and reads every
// endpoint of the catalog.
func TestTimer(t *testing.T) {
	must.Long(t, "derives the track record")
	t.Parallel() // most of it waits
	const now = "2026-03-09T20:00:00Z"
	instant := must.Get(time.Parse(time.RFC3339, now))(t)
	f1db := codehosttest.New(t, sourcetest.Path(t, sourcetest.F1DBHistory), func() time.Time { return instant })
	dir, store := t.TempDir(), []string{"--store", "dir:store", "--now", now}
	gridcast(t, dir, append([]string{"source", "pull", "--source", "f1db=" + f1db.URL, "--archive", lateSeason(t)}, store...)...)
	must.Show(t, "the output of a build, for title odds,", gridcast(t, dir, append([]string{"build"}, store...)...), "gridcast build --all")
	gridcast(t, dir, append([]string{"build", "--all"}, store...)...)
	must.Show(t, "a second run without new facts", gridcast(t, dir, append([]string{"build", "--all"}, store...)...), "up to date")
	key := newKey(t, dir, "dir:store", "pro")
	edge := startServer(t, dir, append([]string{"edge", "--cache-dir", "cache"}, store...)...)
	c := newClient(edge.url, key)
	edge.await(t, func() bool { return c.do(t, http.MethodGet, "/api/v1/bulk", nil).status == http.StatusOK }) // made beside other requests
	for _, e := range catalog.Endpoints {
		if a := c.do(t, http.MethodGet, catalog.BasePath+e.Path, nil); a.status != http.StatusOK {
			t.Errorf("%s: got status %d, want 200", e.Path, a.status)
		}
	}
}
