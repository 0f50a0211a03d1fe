package trust_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge/keys"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/notes"

	"gridcast/builder/archive/archivetest"
)

// TestWayBackAfterATheft lets a thief sign the highest numbers of versions and of lists of API keys. The commands of
// deploy/docs/signing.md, in their order and as they are written, lead back: an edge that trusts the new keys alone serves
// the versions of the operator, and a revocation reaches it.
func TestWayBackAfterATheft(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the real binary")
	}
	facts = archivetest.Stored(t, archivetest.Seasons(t, 2024, 2024))
	page := must.Get(os.ReadFile("../docs/signing.md"))(t)
	_, section, _ := strings.Cut(string(page), "## A stolen key")
	section, _, _ = strings.Cut(section, "\n## ")
	commands := regexp.MustCompile("`gridcast ([^`]*)`").FindAllStringSubmatch(strings.ReplaceAll(section, "\n   ", " "), -1)
	if len(commands) < 6 {
		t.Fatalf("the page has only the commands %q", commands)
	}
	for _, number := range []int64{1 << 53, 1<<53 - 1, 1<<63 - 1} {
		t.Run(strconv.FormatInt(number, 10), func(t *testing.T) {
			w := newWorld(t, cell{})
			steal(t, w, number)
			for _, command := range commands {
				words := command[1]
				for name, value := range map[string]string{"FILE": "new.key", "OLD": "version.key", "NEW": "newkeys.key", "V": "2"} {
					words = regexp.MustCompile(`(^| )`+name+`( |$)`).ReplaceAllString(words, "${1}"+value+"${2}")
				}
				args := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(words, -1)
				for i := range args {
					args[i] = strings.Trim(args[i], "'")
				}
				switch args[0] {
				case "signing":
					must.Get(w.run("signing", "new", "newkeys.key", "--like", "keys.key"))(t)
				case "build":
					args = append(args, "--yes", "--store", w.store, "--now", "2024-07-01T12:01:00Z")
				case "snapshots", "keys":
					args = append(args, "--store", w.store)
					if args[1] == "rollback" || args[1] == "sign" {
						args = append(args, "--yes")
					}
				}
				if out, err := w.run(args...); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			trust := []string{}
			for _, flag := range []string{"new.key", "newkeys.key"} {
				public := must.Get(w.run("signing", "show", flag))(t)
				trust = append(trust, strings.TrimSpace(public))
			}
			w.t.Cleanup(func() { w.signal("edge", os.Kill) })
			w.start("edge", "edge", "--store", w.store, "--now", now, "--listen", w.api, "--admin-listen", w.admin, "--cache-dir", "cache", "--trust", trust[0], "--trust-keys", trust[1])
			w.await("an edge that trusts the new keys serves", time.Minute, func() bool { _, err := w.ask(w.api); return err == nil })
			if v := w.version(); v < 3 || v > 10 {
				t.Errorf("version %d, want one of the operator's count", v)
			}
			id := snapshots.Digest([]byte(w.key))[:12]
			if out, err := w.run("keys", "revoke", id, "--yes", "--reason", "leaked", "--sign-keys", "newkeys.key", "--store", w.store); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			w.await("the revocation reaches the edge", 30*time.Second, func() bool {
				_, err := w.ask(w.api)
				return err != nil && strings.Contains(err.Error(), strconv.Itoa(http.StatusUnauthorized))
			})
		})
	}
}

// steal publishes the current version again under a number, signed with the stolen keys, and so the list of API keys.
func steal(t *testing.T, w *world, number int64) {
	t.Helper()
	folder := filepath.Join(w.dir, "store")
	put := func(key string, data []byte) {
		must.Do(t, os.WriteFile(filepath.Join(folder, filepath.FromSlash(key)), data, 0o600))
	}
	version := must.Get(notes.ReadSigners(filepath.Join(w.dir, "version.key")))(t)
	packed := must.Get(os.ReadFile(filepath.Join(folder, snapshots.ManifestKey(2))))(t)
	z := must.Get(gzip.NewReader(bytes.NewReader(packed)))(t)
	text := must.Get(io.ReadAll(z))(t)
	var m snapshots.Manifest
	must.Do(t, json.Unmarshal(text, &m))
	var again bytes.Buffer
	gz := gzip.NewWriter(&again)
	_, _ = gz.Write(bytes.Replace(text, []byte(`"version":2,`), fmt.Appendf(nil, `"version":%d,`, number), 1))
	_ = gz.Close()
	hash := snapshots.Digest(again.Bytes())
	note := must.Get(version.Sign(fmt.Sprintf("version %d", number), "manifest "+hash, fmt.Sprintf("ledger %s %d %s", m.Ledger.Kind, m.Ledger.Seq, m.Ledger.Hash)))(t)
	fresh := must.Get(version.Sign(fmt.Sprintf("fresh %d", number), "manifest "+hash, "good-until 2099-01-01T00:00:00Z"))(t)
	put(snapshots.ManifestKey(number), again.Bytes())
	put(snapshots.NoteKey(number), note)
	put(snapshots.FreshKey, fresh)
	put(fmt.Sprintf("versions/%d.json", number), []byte("{}"))
	put(snapshots.PointerKey, fmt.Appendf(nil, `{"version":%d,"manifest":%q,"signed":true,"at":"2026-01-01T00:00:00Z"}`, number, hash))

	keySigner := must.Get(notes.ReadSigners(filepath.Join(w.dir, "keys.key")))(t)
	store := must.Get(dirblob.Open(folder))(t)
	list, _, err := keys.Load(t.Context(), store)
	if err == nil {
		err = list.Sign(keySigner, true)
	}
	list.Serial = number - 1
	data, encodeErr := list.Encode()
	if err != nil || encodeErr != nil {
		t.Fatal(err, encodeErr)
	}
	put(keys.Object, data)
}
