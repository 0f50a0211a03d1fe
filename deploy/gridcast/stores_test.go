package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/settings"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/dirblob"
)

// goldenStore is a store as a release wrote it, with the keys that signed it. Every later build reads it: see
// [TestGoldenStore]. Its keys are public, so they protect nothing.
const goldenStore = "../testdata/stores/1.0/store.tar.gz"

// maxGolden bounds the size of the golden store in bytes.
const maxGolden = 300 << 10

// TestGoldenStore opens a store that an earlier build wrote: this build audits, verifies, reproduces and serves it, extends it by
// a signed version, and the edge that trusts the store's key serves that one too. The contents are counted in
// testdata/stores/1.0/contents.txt, where a zero names a kind that the store lacks. The flag -update writes the store anew, which
// only a build before the release may do.
func TestGoldenStore(t *testing.T) {
	if testing.Short() {
		t.Skip("short: starts an edge")
	}
	if flag.Lookup("update").Value.String() == "true" {
		packed := packStore(t, makeGolden(t))
		must.Hold(t, len(packed) < maxGolden, "the golden store has %d bytes, want less than %d", len(packed), maxGolden)
		must.Do(t, os.WriteFile(goldenStore, packed, 0o644))
	}
	dir := t.TempDir()
	unpackStore(t, goldenStore, dir)
	counted := contents(t, filepath.Join(dir, "store"))
	golden.File(t, "../testdata/stores/1.0/contents.txt", counted)
	for line := range strings.Lines(counted) {
		if strings.HasSuffix(line, " 0\n") {
			t.Logf("the golden store lacks a kind: %s", line)
		}
	}

	const store, at = "dir:store", "2024-11-24T12:00:00Z"
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

	const later = "2024-12-01T17:00:00Z" // another race starts
	gridcast(t, dir, "build", "--store", store, "--now", later, "--sign", "key.key", "--model", "grid-frequency")
	after := printed[struct{ Version int64 }](t, dir, "status", "--store", store, "--now", later)
	must.Hold(t, after.Version == status.Version+1, "after a build it has version %d, want the one after %d", after.Version, status.Version)
	gridcast(t, dir, "snapshots", "verify", "--store", store)
	gridcast(t, dir, "snapshots", "reproduce", "--all", "--store", store)
	edge.await(t, func() bool {
		return strings.Contains(string(client.do(t, "GET", "/status", nil).body), fmt.Sprintf(`"version":%d,`, after.Version))
	})
}

// makeGolden makes a small store by commands alone: the weekend of Las Vegas of 2024 with everything that can happen to it. It
// returns the folder with the store and the keys.
func makeGolden(t *testing.T) string {
	dir := t.TempDir()
	facts := archivetest.Seasons(t, 2024, 2024)
	rounds := facts.Seasons[0].Rounds[20:]
	for i := range rounds {
		rounds[i].DriverStandings, rounds[i].TeamStandings = nil, nil // those of F1DB count all rounds
	}
	facts.Seasons[0].Rounds = rounds
	must.Do(t, os.WriteFile(filepath.Join(dir, "entries"), []byte("VER PER\nHAM LEC NOR PIA ALO STR GAS OCO ALB COL TSU MAG HUL BOT ZHO LAW\n"), 0o600))
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
	key := printed[struct{ Key string }](t, dir, "keys", "create", "--name", "Golden", "--tier", "pro", "--store", store, "--sign-keys", "keys.key").Key
	must.Do(t, os.WriteFile(filepath.Join(dir, "client-key"), []byte(key+"\n"), 0o600))
	command("keys create --name Widget --tier trial --origin https://example.org --sign-keys keys.key")
	command("keys create --name Developer --tier sandbox --sign-keys keys.key")
	command("settings set --model grid-frequency --auto-verify-after 2h --auto-revise-after 0s --no-headshots --public-address https://api.example.com"+
		" --contact api@example.com --terms https://example.com/terms --security-policy https://example.com/security --languages en --yes --by anna", "--reason", "for the golden store")
	command("operators add anna --role read")
	command("webhooks add https://example.org/hook/token --endpoint standings --webhook-master-file master --yes", "--reason", "for the golden store")
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
	return dir
}

// contents counts what a store has, by kind: events of the ledger, blocks that people entered, documents of the current version,
// settings, and objects by their folder. Each kind that this program knows has a line.
func contents(t *testing.T, path string) string {
	t.Helper()
	counts := map[string]int{}
	known := func(kind, file, pattern string) {
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(string(must.Get(os.ReadFile(file))(t)), -1)
		must.Hold(t, len(found) > 5, "%s names %d kinds of %s", file, len(found), kind)
		for _, m := range found {
			counts[kind+" "+strings.ReplaceAll(m[1], " ", "-")] += 0
		}
	}
	known("event", "../../builder/ledger/events.go", `(?m)^\t\w+ +Type = "(\w+)"`)
	known("block", "../../builder/season/sheet.go", `(?m)^\t\w+Part +Part = "([\w ]+)"`)
	store := must.Get(dirblob.OpenReadOnly(path))(t)
	l := must.Get(ledger.Load(t.Context(), store, ledger.AnyKind))(t)
	for _, f := range l.Files() {
		for _, e := range f.Events {
			counts["event "+string(e.Type)]++
		}
	}
	base := must.Get(snapshots.LoadBase(t.Context(), store, nil))(t)
	for i := range catalog.Endpoints {
		counts["document "+string(catalog.Endpoints[i].Name)] += 0
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
	var text strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&text, "%s %d\n", kind, counts[kind])
	}
	return text.String()
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
