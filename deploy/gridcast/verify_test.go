package main

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/terminal"
	"gridcast/schemas/catalog"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
)

// hashes are those of keys, bodies and parts, which differ by run.
var hashes = regexp.MustCompile(`parts/[\w-]+|\d+ bytes|\b[0-9a-f]{8}([0-9a-f]{24}|[0-9a-f]{56})?\b`)

// TestForgedAnswers checks that gridcast verify accepts the answers of a site only as the publisher signed them, and
// that it names the part that somebody between reader and publisher altered.
func TestForgedAnswers(t *testing.T) {
	newKey := func() *notes.Signers {
		file := filepath.Join(t.TempDir(), "key")
		must.Do(t, notes.MakeKey(file, "example.com/gridcast"))
		return must.Get(notes.ReadSigners(file))(t)
	}
	key, store := newKey(), memblob.New()
	at := time.Date(2024, 12, 1, 0, 0, 0, 0, time.UTC)
	publish := func(points int) {
		base := must.Get(snapshots.LoadBase(t.Context(), store, nil))(t)
		draft := snapshots.Draft{Base: base, About: snapshots.About{BuiltAt: at, CurrentSeason: 2024, Ledger: snapshots.Ledger{Kind: "real", Seq: 1, Hash: strings.Repeat("a", 64)}}}
		for year := 1950; year <= 2024; year++ { // many enough for a manifest in parts
			draft.Seasons = append(draft.Seasons, year)
			draft.Variants = append(draft.Variants, snapshots.New(fmt.Sprintf("standings/drivers/%d", year), fmt.Appendf(nil, `{"points":%d}`, points), nil, at))
		}
		publisher := snapshots.Publisher{Store: store, Signers: key}
		must.Get(publisher.Publish(t.Context(), draft))(t)
	}
	// pages returns the answers of an edge with the current version, by path.
	pages := func() map[string][]byte {
		all := map[string][]byte{}
		for info, err := range store.List(t.Context(), "") {
			o, getErr := store.Get(t.Context(), info.Key, 1<<20)
			if err != nil || getErr != nil {
				t.Fatal(err, getErr)
			}
			all["/signed/"+info.Key] = o.Data
		}
		v := must.Get(snapshots.Open(t.Context(), store, nil))(t)
		body, _ := v.Body("standings/drivers/2023")
		all[catalog.BasePath+"/standings"], all["/signed/note"] = body.Identity, v.Note()
		return all
	}
	publish(1)
	earlier := pages()
	publish(2)
	now := pages()
	own := must.Get(newKey().Sign(strings.Split(strings.SplitN(string(now["/signed/note"]), "\n\n", 2)[0], "\n")[1:]...))(t)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host gets %s with the API key %q", r.URL, r.Header.Get("X-Api-Key"))
	}))
	defer elsewhere.Close()

	replace := func(path, old, new string) func(map[string][]byte) {
		return func(p map[string][]byte) {
			for key, data := range p {
				if strings.HasPrefix(key, path) {
					p[key] = bytes.Replace(data, []byte(old), []byte(new), 1)
				}
			}
		}
	}
	for name, lie := range map[string]func(pages map[string][]byte){
		"nothing":                 func(map[string][]byte) {},
		"the whole earlier site":  func(p map[string][]byte) { maps.Copy(p, earlier) },
		"the answer":              replace("/api/", "2", "9"),
		"an earlier answer":       func(p map[string][]byte) { p["/api/v1/standings"] = earlier["/api/v1/standings"] },
		"the number in the note":  replace("/signed/note", "version 2", "version 3"),
		"a note of their own":     func(p map[string][]byte) { p["/signed/note"] = own },
		"no note":                 func(p map[string][]byte) { delete(p, "/signed/note") },
		"the manifest":            replace("/signed/manifests/2.json.gz", "", "x"),
		"a part of the manifest":  replace("/signed/manifests/parts/", "", "x"),
		"the manifest of another": func(p map[string][]byte) { p["/signed/manifests/2.json.gz"] = p["/signed/manifests/1.json.gz"] },
		"a way to another host":   func(p map[string][]byte) { p["/api/v1/standings"] = nil },
	} {
		t.Run(name, func(t *testing.T) {
			lies := maps.Clone(now)
			lie(lies)
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				data, ok := lies[r.URL.Path]
				switch {
				case !ok:
					http.NotFound(w, r)
				case data == nil:
					http.Redirect(w, r, elsewhere.URL, http.StatusFound)
				default:
					_, _ = w.Write(data)
				}
			}))
			defer site.Close()
			var out bytes.Buffer
			c := verifyCmd{URL: site.URL + "/api/v1/standings?year=2023", Keys: key.Public(), APIKey: "secret"}
			err := c.Run(t.Context(), terminal.New(&out, &out))
			golden.Sentence(t, "verify: "+name, hashes.ReplaceAllString(fmt.Sprint(err), "HASH"), site.URL, "SITE")
		})
	}
}
