package resident_test

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge/resident"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
)

// TestProof checks the log of a version, its narrower tiles, and the note with the files of the manifest.
func TestProof(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	must.Do(t, notes.MakeKey(file, "example.com/log"))
	key := must.Get(notes.ReadSigners(file))(t)
	store := memblob.New()
	base := must.Get(snapshots.LoadBase(t.Context(), store, nil))(t)
	now := time.Date(2024, 12, 1, 0, 0, 0, 0, time.UTC)
	draft := snapshots.Draft{
		Base: base, About: snapshots.About{BuiltAt: now, CurrentSeason: 2024, Seasons: []int{2024}, Ledger: snapshots.Ledger{Kind: "real", Seq: 3}},
	}
	full, partial := bytes.Repeat([]byte("h"), 256*32), bytes.Repeat([]byte("p"), 3*32)
	var bundle []byte
	for _, leaf := range []string{"one\n", "two\n", "three\n"} {
		bundle = append(binary.BigEndian.AppendUint16(bundle, uint16(len(leaf))), leaf...)
	}
	for path, data := range map[string][]byte{
		"log/checkpoint": []byte("a checkpoint"), "log/tile/0/000": full, "log/tile/0/001": partial, "log/tile/entries/001": bundle,
		"log/tile/entries/002": {0, 9, 'x'},
	} {
		draft.Variants = append(draft.Variants, snapshots.New(path, data, nil, now))
	}
	publisher := snapshots.Publisher{Store: store, Signers: key}
	must.Get(publisher.Publish(t.Context(), draft))(t)
	v := must.Get(snapshots.Open(t.Context(), store, nil))(t)
	s := resident.SetOf(v)
	for path, want := range map[string]string{
		"/log/checkpoint":             "a checkpoint",
		"/log/tile/0/000":             string(full),
		"/log/tile/0/000.p/255":       string(full[:255*32]),
		"/log/tile/0/001.p/3":         string(partial),
		"/log/tile/0/001.p/1":         string(partial[:32]),
		"/log/tile/0/001.p/4":         "",
		"/log/tile/0/001":             "",
		"/log/tile/0/001.p/0":         "",
		"/log/tile/0/001.p/01":        "",
		"/log/tile/0/001.p/-1":        "",
		"/log/tile/0/001.p/":          "",
		"/log/tile/0/000.p/256":       "",
		"/log/tile/0/002":             "",
		"/log/tile/entries/001.p/2":   string(bundle[:12]),
		"/log/tile/entries/001.p/3":   string(bundle),
		"/log/tile/entries/001":       "",
		"/log/tile/entries/002.p/1":   "",
		"/log/":                       "",
		"/log/../current.json":        "",
		"/signed/note":                string(v.Note()),
		"/signed/manifests/1.json.gz": string(v.ManifestFile("manifests/1.json.gz")),
		"/signed/notes/1":             string(v.Note()),
		"/signed/current.json":        "",
		"/signed/keys/keys.json":      "",
	} {
		got := ""
		if page := s.Proof(path); page != nil {
			got = string(page.Answer(nil, nil).Body)
		}
		must.Hold(t, got == want, "%s: got %d bytes %.40q, want %d bytes", path, len(got), got, len(want))
	}
	must.Show(t, "the note", string(v.Note()), "version 1\n")
	must.Hold(t, !resident.Proves("/api/v1/log/checkpoint"), "a path of the API proves something")
}
