package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/settings"
	"gridcast/builder/source/codehosttest"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/blob/porttest"
)

// goldenStores has a store of each release that added a kind, as that release wrote it, with the keys that
// signed it. Every later build reads them all. The keys are public, so they protect nothing.
const goldenStores = "../testdata/stores"

// maxGolden bounds the size of a golden store in bytes.
const maxGolden = 5 << 18

// TestGoldenStores opens stores that earlier builds wrote: this build audits, verifies, reproduces, restores and serves each, extends
// it by a signed version, and the edge that trusts the store's key serves that one too. Each contents.txt counts the
// kinds in a store. A kind of event, block, document or setting that no store has needs another store: make a folder named after the
// coming release. A folder without a store gets one, and a store is never changed.
func TestGoldenStores(t *testing.T) {
	must.Long(t, "starts an edge")
	unseen := map[string]bool{}
	folders := must.Get(filepath.Glob(goldenStores + "/*"))(t)
	must.Hold(t, len(folders) > 0, "no golden store in %s", goldenStores)
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			if _, err := os.Stat(folder + "/store.tar.gz"); errors.Is(err, fs.ErrNotExist) {
				packed := packStore(t, makeGolden(t))
				must.Hold(t, len(packed) < maxGolden, "the golden store has %d bytes, want less than %d", len(packed), maxGolden)
				must.Do(t, os.WriteFile(folder+"/store.tar.gz", packed, 0o644))
			}
			dir := t.TempDir()
			unpackStore(t, folder+"/store.tar.gz", dir)
			var text strings.Builder
			counts := contents(t, filepath.Join(dir, "store"))
			for _, kind := range slices.Sorted(maps.Keys(counts)) {
				if n := counts[kind]; n > 0 {
					unseen[kind] = false
					fmt.Fprintf(&text, "%s %d\n", kind, n)
				} else if _, seen := unseen[kind]; !seen {
					unseen[kind] = true
				}
			}
			golden.File(t, folder+"/contents.txt", text.String())
			readGolden(t, dir)
		})
	}
	for kind, missing := range unseen {
		must.Hold(t, !missing, "no golden store has the kind %q", kind)
	}
}

// readGolden reads and extends the store of a folder.
func readGolden(t *testing.T, dir string) {
	t.Helper()
	const store, at = "dir:store", "2026-03-20T12:00:00Z"
	status := printed[struct{ Version int64 }](t, dir, "status", "--store", store, "--now", at)
	must.Hold(t, status.Version > 1, "it has version %d", status.Version)
	gridcast(t, dir, "ledger", "audit", "--store", store)
	gridcast(t, dir, "snapshots", "verify", "--store", store)
	gridcast(t, dir, "snapshots", "reproduce", "--all", "--store", store)

	public := strings.TrimSpace(gridcast(t, dir, "signing", "show", "key.key"))
	keys := strings.TrimSpace(gridcast(t, dir, "signing", "show", "keys.key"))
	edge := startServer(t, dir, "edge", "--store", store, "--cache-dir", "cache", "--trust", public, "--trust-keys", keys, "--race-clock", at+"@"+time.Now().UTC().Format(time.RFC3339)+"*1")
	client := newClient(edge.url, strings.TrimSpace(string(must.Get(os.ReadFile(filepath.Join(dir, "client-key")))(t))))
	served := 0
	for i := range catalog.Endpoints {
		e := &catalog.Endpoints[i]
		switch a := client.do(t, "GET", catalog.BasePath+e.Path, nil); {
		case a.status == http.StatusOK:
			served++
		case a.status != http.StatusServiceUnavailable || !e.Derived && !e.File:
			t.Errorf("%s of the golden store: got %d %.200s", e.Path, a.status, a.body)
		}
	}
	must.Hold(t, served > len(catalog.Endpoints)/2, "the edge serves %d endpoints of the golden store", served)

	gridcast(t, dir, "store", "restore", "dir:backup", "--store", "dir:restored", "--sign", "key.key", "--yes")
	gridcast(t, dir, "ledger", "audit", "--store", "dir:restored")

	const later = "2026-03-29T04:55:00Z" // another race starts
	gridcast(t, dir, "build", "--store", store, "--now", later, "--sign", "key.key", "--model", "grid-frequency")
	after := printed[struct{ Version int64 }](t, dir, "status", "--store", store, "--now", later)
	must.Hold(t, after.Version == status.Version+1, "after a build it has version %d, want the one after %d", after.Version, status.Version)
	gridcast(t, dir, "snapshots", "verify", "--store", store)
	gridcast(t, dir, "snapshots", "reproduce", "--all", "--store", store)
	edge.await(t, func() bool { return servedVersion(t, edge) == after.Version })
}

// laterRelease is the version that the test binary has when it runs under this name, so that no third binary is linked.
const laterRelease = "v1.99.0"

// TestUpgradeAndWayBack replaces the edges and then the scheduler of a 1.0 store by a later build, one after the other, and goes
// back in the other order, while a client asks. The client gets every answer, and no version falls. Each build publishes.
func TestUpgradeAndWayBack(t *testing.T) {
	older, dir := binary(t), t.TempDir()
	newer := filepath.Join(dir, laterRelease)
	must.Do(t, os.Symlink(must.Get(os.Executable())(t), newer))
	unpackStore(t, goldenStores+"/1.0/store.tar.gz", dir)
	secret := strings.TrimSpace(string(must.Get(os.ReadFile(filepath.Join(dir, "client-key")))(t)))
	public := strings.TrimSpace(gridcast(t, dir, "signing", "show", "key.key"))
	const store, clock = "dir:store", "2026-03-20T12:00:00Z"
	common := []string{"--store", store, "--race-clock", clock + "@" + time.Now().UTC().Format(time.RFC3339) + "*1"}
	edges := make([]*process, 2)
	startEdge := func(i int, program string) {
		t.Helper()
		address := porttest.Address(t)
		if edges[i] != nil {
			edges[i].end(t)
			address = strings.TrimPrefix(edges[i].url, "http://")
		}
		edges[i] = beginProgram(t, program, dir, "http://"+address, append([]string{"edge", "--listen", address, "--cache-dir", fmt.Sprint("cache", i), "--trust", public}, common...))
		edges[i].await(t, func() bool { return edges[i].answers("/readyz") })
	}
	var scheduler *process
	startBuilder := func(program string) {
		t.Helper()
		if scheduler != nil {
			scheduler.end(t)
		}
		address := porttest.Address(t)
		scheduler = beginProgram(t, program, dir, "http://"+address, append([]string{"scheduler", "--operator-listen", address, "--operator-token-file", "token", "--sign", "key.key", "--webhook-master-file", "master"}, common...))
		scheduler.await(t, func() bool { return scheduler.answers("/readyz") })
	}
	for i := range edges {
		startEdge(i, older)
	}
	clients := []*client{newClient(edges[0].url, secret), newClient(edges[1].url, secret)}

	asking, stop := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() { // as a balancer does, which asks the other edge when one does not answer
		seen := make([]int64, len(clients))
		for pace := time.NewTicker(100 * time.Millisecond); ; <-pace.C {
			failed := 0
			for i, c := range clients {
				version, err := c.version(t.Context())
				if err != nil {
					failed++
				} else if version < seen[i] {
					asked <- fmt.Errorf("edge %d: version %d after version %d", i, version, seen[i])
					return
				}
				seen[i] = max(seen[i], version)
			}
			switch {
			case failed == len(clients):
				asked <- errors.New("no edge answers")
				return
			case asking.Err() != nil:
				asked <- nil
				return
			}
		}
	}()
	publish := func(program, line string) {
		t.Helper()
		before := printed[struct{ Version int64 }](t, dir, slices.Concat([]string{"status"}, common)...).Version
		command := exec.Command(program, slices.Concat(strings.Fields(line), []string{"--yes", "--by", "anna", "--reason", "the upgrade"}, common)...)
		command.Dir = dir
		out, err := command.CombinedOutput()
		must.Require(t, err == nil, "%s: %v\n%s", line, err, out)
		for i := range edges {
			edges[i].await(t, func() bool {
				version, err := clients[i].version(t.Context())
				return err == nil && version > before
			})
		}
	}

	startBuilder(older)
	publish(older, "championship deduct 2026 mercedes 1 --constructors")
	startEdge(0, newer)
	startEdge(1, newer)
	publish(older, "championship deduct 2026 ferrari 2 --constructors") // a newer edge reads the version of an older scheduler
	startBuilder(newer)
	publish(newer, "championship deduct 2026 mclaren 3 --constructors")
	edges[0].await(t, func() bool { return edges[0].output.Says("release=" + laterRelease) })
	scheduler.await(t, func() bool { return scheduler.output.Says("release=" + laterRelease) })

	startBuilder(older) // the way back
	publish(older, "championship deduct 2026 haas 4 --constructors")
	startEdge(0, older)
	startEdge(1, older)
	publish(older, "championship restore 2026 haas --constructors")
	stop()
	must.Succeed(t, "the client", <-asked)
	scheduler.end(t)
	gridcast(t, dir, "ledger", "audit", "--store", store)
	gridcast(t, dir, "snapshots", "verify", "--store", store)
	gridcast(t, dir, "snapshots", "reproduce", "--all", "--store", store)
}

// version asks an edge for an answer, and for the number of its version.
func (c *client) version(ctx context.Context) (int64, error) {
	var a answer
	for _, path := range []string{"/api/v1/calendar", "/status"} {
		var err error
		if a, err = c.ask(ctx, http.MethodGet, path, nil); err != nil || a.status != http.StatusOK {
			return 0, fmt.Errorf("%s: %d %w", path, a.status, err)
		}
	}
	found := regexp.MustCompile(`"version":(\d+)`).FindSubmatch(a.body)
	if found == nil {
		return 0, fmt.Errorf("no version in %s", a.body)
	}
	return strconv.ParseInt(string(found[1]), 10, 64)
}

// makeGolden makes a small store by commands alone, and returns the folder with the store and the keys. Everything that can happen
// to a round happens to Las Vegas of 2024; China of 2026 is followed in F1DB's own history.
func makeGolden(t *testing.T) string {
	dir := t.TempDir()
	facts := archivetest.Seasons(t, 2024, 2024)
	rounds := facts.Seasons[0].Rounds[20:]
	for i := range rounds {
		rounds[i].DriverStandings, rounds[i].TeamStandings = nil, nil // those of F1DB count all rounds
	}
	facts.Seasons[0].Rounds = rounds
	must.Do(t, os.WriteFile(filepath.Join(dir, "entries"), []byte("VER PER\nHAM LEC NOR PIA ALO STR GAS OCO ALB COL TSU MAG HUL BOT ZHO LAW\n"), 0o600))
	must.Do(t, os.WriteFile(filepath.Join(dir, "china"), []byte("RUS ANT HAM LEC NOR PIA ALO STR GAS COL ALB SAI HAD LAW LIN HUL BOR OCO BEA PER BOT\n"), 0o600)) // without VER
	smallRelease(t, filepath.Join(dir, "release"))
	must.Do(t, os.WriteFile(filepath.Join(dir, "master"), []byte("Z29sZGVuIHN0b3JlIG9mIGdyaWRjYXN0LCBub3QgYSBzZWNyZXQh\n"), 0o600))
	const store = "dir:store"
	command := func(line string, more ...string) string {
		t.Helper()
		return gridcast(t, dir, append(append(strings.Fields(line), more...), "--store", store)...)
	}
	at := func(instant, line string, more ...string) {
		t.Helper()
		command(line, append(more, "--now", instant)...)
	}
	decide := func(instant, line string, more ...string) {
		t.Helper()
		at(instant, line, append(more, "--yes", "--by", "anna", "--reason", "for the golden store")...)
	}
	build := func(instant string) { t.Helper(); at(instant, "build --sign key.key --model grid-frequency") }
	gridcast(t, dir, "signing", "new", "key.key", "--origin", "gridcast/golden")
	gridcast(t, dir, "signing", "new", "keys.key", "--origin", "gridcast/golden")
	at("2024-11-22T12:00:00Z", "build --sign key.key --model grid-frequency --archive "+archiveFile(t, facts))
	command("store backup dir:backup --by anna")
	command("archive import f1db release --from 2022 --to 2024 --yes", "--reason", "for the golden store")
	key := newKey(t, dir, store, "pro", "--sign-keys", "keys.key")
	must.Do(t, os.WriteFile(filepath.Join(dir, "client-key"), []byte(key+"\n"), 0o600))
	command("keys create --name Widget --tier trial --origin https://example.org --sign-keys keys.key")
	command("keys create --name Developer --tier sandbox --sign-keys keys.key")
	command("settings set --model grid-frequency --auto-verify-after 2h --auto-revise-after 0s --no-headshots --public-address https://api.example.com"+
		" --contact api@example.com --terms https://example.com/terms --security-policy https://example.com/security --languages en --yes --by anna", "--reason", "for the golden store")
	command("operators add anna --role read")
	command("webhooks add https://hook.invalid/token --endpoint standings --webhook-master-file master --yes", "--reason", "for the golden store")
	decide("2024-11-22T12:10:00Z", "rounds move 2024024 --start 2024-12-08T14:00:00Z")
	decide("2024-11-22T12:11:00Z", "rounds release 2024024")
	decide("2024-11-22T12:12:00Z", "rounds postpone 2024023")
	decide("2024-11-22T12:13:00Z", "rounds reinstate 2024023 --start 2024-12-01T17:00:00Z")
	decide("2024-11-22T12:14:00Z", "championship deduct 2024 mclaren 30.5 --constructors")
	build("2024-11-22T12:20:00Z")
	build("2024-11-23T14:30:00Z") // the pick, void by the next line
	decide("2024-11-23T15:00:00Z", "rounds cancel 2024022")
	build("2024-11-23T15:10:00Z")
	decide("2024-11-23T15:20:00Z", "rounds reinstate 2024022 --start 2024-11-24T06:00:00Z")
	build("2024-11-24T01:30:00Z")
	decide("2024-11-24T02:00:00Z", "entries set 2024022 --force --file", "entries")
	build("2024-11-24T02:10:00Z")
	decide("2024-11-24T02:20:00Z", "facts release 2024022 entries")
	build("2024-11-24T02:30:00Z")
	at("2024-11-24T06:02:00Z", "live set 2024022 --lap 1 --order RUS,LEC,SAI --out GAS --by anna")
	build("2024-11-24T06:02:30Z")
	at("2024-11-24T07:25:00Z", "live set 2024022 --phase over --by anna")
	build("2024-11-24T10:00:00Z")
	decide("2024-11-24T10:10:00Z", "results correct 2024022 --disqualify RUS")
	build("2024-11-24T10:20:00Z")

	var now time.Time
	f1db := codehosttest.New(t, sourcetest.Path(t, sourcetest.F1DBHistory), func() time.Time { return now })
	f1db.Edit(codehosttest.Edit{At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Change: func(files map[string][]byte) {
		maps.DeleteFunc(files, func(name string, _ []byte) bool {
			return strings.HasPrefix(name, "src/data/seasons/2025") || regexp.MustCompile(`2026/races/(0[4-9]|[12])`).MatchString(name)
		})
	}})
	pull := func(instant string) {
		t.Helper()
		now = must.Get(time.Parse(time.RFC3339, instant))(t)
		at(instant, "source pull --sign key.key --source f1db="+f1db.URL)
	}
	pull("2026-03-13T03:00:00Z")
	build("2026-03-13T03:10:00Z")
	pull("2026-03-14T23:00:00Z")
	at("2026-03-14T23:10:00Z", "build --all --sign key.key")
	build("2026-03-15T06:50:00Z") // the pick
	decide("2026-03-15T06:51:00Z", "entries set 2026002 --force --file", "china")
	build("2026-03-15T06:52:00Z")
	decide("2026-03-15T06:53:00Z", "facts release 2026002 entries")
	build("2026-03-15T06:54:00Z")
	pull("2026-03-15T12:00:00Z")
	build("2026-03-15T15:00:00Z")
	f1db.Edit(codehosttest.Edit{At: time.Date(2026, 3, 17, 0, 0, 0, 0, time.UTC), Change: func(files map[string][]byte) {
		const driver = "src/data/drivers/sergio-perez.yml"
		files[driver] = bytes.Replace(files[driver], []byte("abbreviation: PER"), []byte("abbreviation: PEZ"), 1)
	}}, codehosttest.Edit{At: time.Date(2026, 3, 18, 0, 0, 0, 0, time.UTC), Change: func(files map[string][]byte) {
		for name, data := range files {
			files[name] = bytes.ReplaceAll(data, []byte("arvid-lindblad"), []byte("arvid-anand-lindblad"))
		}
		const driver = "src/data/drivers/arvid-lindblad.yml"
		files[strings.Replace(driver, "arvid", "arvid-anand", 1)] = files[driver]
		delete(files, driver)
	}})
	pull("2026-03-17T12:00:00Z")
	held := gridcast(t, dir, "source", "check", "--json", "--store", store, "--source", "f1db="+f1db.URL, "--now", "2026-03-17T12:01:00Z")
	id := regexp.MustCompile(`"id": "([0-9a-f]+)"`).FindStringSubmatch(held)
	must.Require(t, len(id) == 2, "no change of a code is held: %s", held)
	decide("2026-03-17T12:02:00Z", "source accept "+id[1]+" --source f1db="+f1db.URL)
	pull("2026-03-18T12:00:00Z")

	// A scheduler measures an edge and reads its counters.
	const clock = "2026-03-19T12:00:00Z"
	race, admin := clock+"@"+time.Now().UTC().Format(time.RFC3339)+"*1", porttest.Address(t)
	edge := startServer(t, dir, "edge", "--store", store, "--cache-dir", "cache", "--admin-listen", admin, "--race-clock", race)
	must.Equal(t, "status of a request", http.StatusOK, newClient(edge.url, key).do(t, "GET", "/api/v1/calendar", nil).status)
	must.Do(t, os.WriteFile(filepath.Join(dir, "token"), []byte("token-of-the-golden-store-1234567890\n"), 0o600))
	scheduler := startScheduler(t, dir, "--store", store, "--race-clock", race, "--sign", "key.key", "--source", "f1db="+f1db.URL, "--edges", admin, "--webhook-master-file", "master")
	scheduler.await(t, func() bool { return scheduler.output.Says("title odds, track record", "webhook sent") })
	scheduler.end(t)
	edge.end(t)
	must.Do(t, errors.Join(os.RemoveAll(filepath.Join(dir, "cache")), os.Remove(filepath.Join(dir, "token")), os.RemoveAll(filepath.Join(dir, "release"))))
	return dir
}

// smallRelease writes a folder as of F1DB's last release of 2024, with few races and without tables of standings, which count all.
func smallRelease(t *testing.T, folder string) {
	t.Helper()
	release := must.Get(zip.OpenReader(sourcetest.Path(t, sourcetest.F1DB2024)))(t)
	defer release.Close()
	must.Do(t, os.MkdirAll(folder, 0o700))
	for _, file := range release.File {
		if strings.Contains(file.Name, "schema") || !strings.HasSuffix(file.Name, ".json") {
			continue
		}
		var rows []map[string]any
		must.Do(t, json.NewDecoder(must.Get(file.Open())(t)).Decode(&rows))
		rows = slices.DeleteFunc(rows, func(row map[string]any) bool {
			year, dated := row["year"].(float64)
			round, ofRound := row["round"].(float64)
			return dated && (year < 2022 || year == 2023 || strings.Contains(file.Name, "standings") || ofRound && (year == 2022 && round < 22 || round < 21))
		})
		must.Do(t, os.WriteFile(filepath.Join(folder, file.Name), must.Get(json.Marshal(rows))(t), 0o600))
	}
}

// contents counts what a store has, by kind: events of the ledger, blocks that people entered, documents of the current version,
// settings, and objects by their folder. Each kind that this program knows has an entry.
func contents(t *testing.T, path string) (counts map[string]int) {
	t.Helper()
	counts = map[string]int{}
	known := func(kind, file, pattern string) {
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(string(must.Get(os.ReadFile(file))(t)), -1)
		must.Hold(t, len(found) > 5, "%s names %d kinds of %s", file, len(found), kind)
		for _, m := range found {
			counts[kind+" "+strings.ReplaceAll(m[1], " ", "-")] += 0
		}
	}
	known("event", "../../builder/ledger/events.go", `(?m)^\t\w+ +Type = "(\w+)"`)
	known("block", "../../builder/assemble/blocks.go", `(?m)^(?:\t|const )\w+ +Block = "(\w+)"`)
	store := must.Get(dirblob.OpenReadOnly(path))(t)
	l := must.Get(ledger.Load(t.Context(), store, ledger.AnyKind))(t)
	for _, f := range l.Files() {
		for _, e := range f.Events {
			counts["event "+string(e.Type)]++
		}
	}
	base := must.Get(snapshots.LoadBase(t.Context(), store, nil))(t)
	for i := range catalog.Endpoints {
		if !catalog.Endpoints[i].File { // the edges make files
			counts["document "+string(catalog.Endpoints[i].Name)] += 0
		}
	}
	for _, e := range base.Manifest.Entries {
		name, _, _ := strings.Cut(e.Path, "/")
		if v, err := catalog.ParsePath(e.Path); err == nil {
			name = string(v.Endpoint)
		}
		counts["document "+name]++
	}
	var stored map[string]any
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join(path, settings.Key)))(t), &stored))
	var fields func(of reflect.Type, in map[string]any, prefix string)
	fields = func(of reflect.Type, in map[string]any, prefix string) {
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			inner, nested := in[name].(map[string]any)
			if prefix+name == "operator.address" {
				continue // never stored: public_address is
			}
			if f.Type.Kind() == reflect.Struct {
				fields(f.Type, inner, prefix+name+".")
				continue
			}
			if counts["setting "+prefix+name] += 0; in[name] != nil || nested {
				counts["setting "+prefix+name]++
			}
		}
	}
	fields(reflect.TypeFor[settings.Settings](), stored, "")
	entered := regexp.MustCompile(`"block":"([\w -]+)"`)
	must.Do(t, filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		key := filepath.ToSlash(must.Get(filepath.Rel(path, file))(t))
		folder, _, nested := strings.Cut(key, "/")
		if folder == "facts" {
			for _, m := range entered.FindAllStringSubmatch(string(must.Get(os.ReadFile(file))(t)), -1) {
				counts["block "+strings.ReplaceAll(m[1], " ", "-")]++
			}
		}
		if nested {
			folder += "/"
		}
		counts["object "+folder]++
		return nil
	}))
	return counts
}

// packStore packs a folder in a fixed order, without times.
func packStore(t *testing.T, dir string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zip := must.Get(gzip.NewWriterLevel(&packed, gzip.BestCompression))(t)
	pack := tar.NewWriter(zip)
	must.Do(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !entry.Type().IsRegular() {
			return err
		}
		data := must.Get(os.ReadFile(path))(t)
		name := filepath.ToSlash(must.Get(filepath.Rel(dir, path))(t))
		must.Do(t, pack.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data)), Format: tar.FormatPAX}))
		_, err = pack.Write(data)
		return err
	}))
	must.Do(t, errors.Join(pack.Close(), zip.Close()))
	return packed.Bytes()
}

// unpackStore unpacks the files of packStore.
func unpackStore(t *testing.T, file, dir string) {
	t.Helper()
	zip := must.Get(gzip.NewReader(bytes.NewReader(must.Get(os.ReadFile(file))(t))))(t)
	for pack := tar.NewReader(zip); ; {
		header, err := pack.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		must.Do(t, err)
		path := filepath.Join(dir, filepath.FromSlash(header.Name))
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o750))
		must.Do(t, os.WriteFile(path, must.Get(io.ReadAll(pack))(t), 0o600))
	}
}
