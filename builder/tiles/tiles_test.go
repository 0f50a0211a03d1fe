package tiles_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/tiles"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
)

// ledgerOf returns a ledger of n files.
func ledgerOf(t *testing.T, kind ledger.Kind, n int) []ledger.File {
	t.Helper()
	var files []ledger.File
	for i := range n {
		file := ledger.File{Seq: int64(i + 1), Kind: kind, Previous: strings.Repeat("0", 64), Events: []ledger.Event{{ID: strconv.Itoa(i)}}}
		data := must.Get(file.Encode())(t)
		file = must.Get(ledger.DecodeFile(data))(t)
		file.Hash = snapshots.Digest(data)
		files = append(files, file)
	}
	return files
}

// TestProofs checks the proof of each file of a log, and that an altered proof is refused by the name of the altered
// part. Package deploy/logcheck checks logs with the readers of others.
func TestProofs(t *testing.T) {
	files, signers, other := ledgerOf(t, ledger.Simulated, 9), key(t, "example.com/log"), key(t, "example.com/log")
	l := must.Get(tiles.New(files))(t)
	text, err := l.Text(signers.Origin())
	must.Require(t, err == nil && strings.HasPrefix(text, "example.com/log/simulated\n9\n"), "checkpoint %q, %v", text, err)
	sign := func(s *notes.Signers, text string) []byte {
		t.Helper()
		return must.Get(s.SignText(text))(t)
	}
	checkpoint := sign(signers, text)
	for _, file := range files {
		proof := must.Get(l.Prove(file, signers.Origin(), signers.SignText))(t)
		first := must.Get(tiles.New(files[:file.Seq]))(t)
		if earlier, err := first.Prove(file, signers.Origin(), signers.SignText); err != nil || !bytes.Equal(earlier, proof) {
			t.Errorf("file %d: the proof changes as the log grows: %v", file.Seq, err)
		}
		proven, err := tiles.CheckProof(proof, signers.Trust())
		if err != nil || proven.File.Seq != file.Seq || proven.Size != file.Seq || proven.File.Events[0].ID != file.Events[0].ID {
			t.Errorf("file %d: %+v, %v", file.Seq, proven, err)
		}
		for i := 0; i < len(proof); i += 7 {
			altered := bytes.Clone(proof)
			altered[i] ^= 1
			if got, err := tiles.CheckProof(altered, signers.Trust()); err == nil && got.File.Seq != file.Seq {
				t.Errorf("file %d: proof with byte %d altered proves file %d", file.Seq, i, got.File.Seq)
			}
		}
		file.Hash = strings.Repeat("0", 64)
		must.Fail(t, fmt.Sprintf("file %d is proven by another hash", file.Seq), must.Err(l.Prove(file, signers.Origin(), signers.SignText)))
	}

	proof := must.Get(l.Prove(files[5], signers.Origin(), signers.SignText))(t)
	lines := strings.Split(string(proof), "\n")
	line := func(number int, text string) string {
		altered := slices.Clone(lines)
		altered[number] = text
		return strings.Join(altered, "\n")
	}
	forged := must.Get(files[4].Encode())(t)
	_, signed, _ := strings.Cut(string(proof), "\n\n")
	text, _, _ = strings.Cut(signed, "\n\n")
	text += "\n"
	another := strings.Replace(text, "\n6\n", "\n5\n", 1)
	said, id := make(map[string]string), strings.Join(strings.SplitN(signers.Public()[0], "+", 3)[:2], "+")
	for name, proof := range map[string]string{
		"no proof":                "",
		"another pick":            line(1, "extra "+base64.StdEncoding.EncodeToString(forged)),
		"no ledger file":          line(1, "nothing"),
		"another index":           line(2, "index 4"),
		"no index":                line(2, "index x"),
		"another hash":            line(3, lines[4]),
		"no hash":                 line(3, "x"),
		"a hash less":             strings.Replace(string(proof), lines[3]+"\n", "", 1),
		"another size":            strings.Replace(string(proof), text, another, 1),
		"a checkpoint by another": strings.Replace(string(proof), signed, string(sign(other, text)), 1),
		"an earlier checkpoint":   strings.Replace(string(proof), signed, string(sign(signers, another)), 1),
		"a note about a version":  strings.Replace(string(proof), signed, string(sign(signers, "example.com/log\nversion 1\nmanifest x\n")), 1),
	} {
		said[name] = strings.ReplaceAll(fmt.Sprint(must.Err(tiles.CheckProof([]byte(proof), signers.Trust()))), id, "KEY")
	}
	golden.Inputs(t, "testdata/proofs.txt", said)

	// The log of a version is made again without the key. A checkpoint of another log and foreign keys are not.
	keys := []byte(signers.Public()[0] + "\n")
	again, err := tiles.Remake(files, &ledger.Fold{}, map[string][]byte{tiles.Checkpoint: checkpoint, tiles.Keys: keys})
	if err != nil || !bytes.Equal(again[tiles.Checkpoint], checkpoint) || !bytes.Equal(again[tiles.Keys], keys) {
		t.Errorf("made again: %q, %v", again, err)
	}
	again, err = tiles.Remake(files, &ledger.Fold{}, map[string][]byte{
		tiles.Checkpoint: bytes.Replace(checkpoint, []byte("\n9\n"), []byte("\n8\n"), 1), tiles.Keys: []byte(other.Public()[0]),
	})
	if err != nil || bytes.Contains(again[tiles.Checkpoint], []byte("—")) || again[tiles.Keys] != nil {
		t.Errorf("another checkpoint made again: %q, %v", again, err)
	}
}

// TestLogOfAStore publishes the log through the life of a store: growth, a rotation of the key, a key of a new origin.
func TestLogOfAStore(t *testing.T) {
	folder := t.TempDir()
	one, two, restored := keyFile(t, folder, "example.com/log"), keyFile(t, folder, "example.com/log"), keyFile(t, folder, "example.com/restored")
	files, store := ledgerOf(t, ledger.Real, 300), memblob.New()
	for i, step := range []struct {
		files   int
		keys    []string
		origin  string
		written int // objects, without a claim
	}{
		{files: 3, keys: []string{one}, origin: "example.com/log", written: 4},
		{files: 3, keys: []string{one}, origin: "example.com/log", written: 0},
		{files: 256, keys: []string{one}, origin: "example.com/log", written: 4},
		{files: 300, keys: []string{one}, origin: "example.com/log", written: 3},
		{files: 300, keys: []string{one, two}, origin: "example.com/log", written: 2},
		{files: 300, keys: []string{two}, origin: "example.com/log", written: 2},
		{files: 300, keys: []string{restored}, origin: "example.com/restored", written: 7},
	} {
		s := must.Get(notes.ReadSigners(step.keys...))(t)
		s.New = true
		publisher := snapshots.Publisher{Store: store, Signers: s}
		base := must.Get(publisher.LoadBase(t.Context(), nil))(t)
		d := &snapshots.Draft{Base: base, About: snapshots.About{
			BuiltAt: time.Date(2024, 12, 1, 0, 0, 0, 0, time.UTC), CurrentSeason: 2024, Seasons: []int{2024},
			Ledger: snapshots.Ledger{Kind: "real", Seq: int64(step.files), Hash: files[step.files-1].Hash},
		}}
		must.Do(t, tiles.Add(d, s, files[:step.files], &ledger.Fold{}))
		receipt, err := publisher.Publish(t.Context(), *d)
		if err != nil || receipt.ObjectsWritten != step.written {
			t.Fatalf("step %d: %d objects written, %v; want %d", i, receipt.ObjectsWritten, err, step.written)
		}
		v := must.Get(snapshots.Open(t.Context(), store, nil))(t)
		body, _ := v.Body(tiles.Checkpoint)
		n, size, _, err := tiles.ReadCheckpoint(body.Identity, s.Trust())
		if err != nil || n.Origin != step.origin || size != int64(step.files) || len(n.Keys) != len(step.keys) {
			t.Errorf("step %d: %+v of %d files, %v", i, n, size, err)
		}
	}
}

// TestProofsOfPicks: each frozen pick that counts has a proof in the version. Later files of the ledger do not change its
// bytes. A void pick has none, and another key makes other ones.
func TestProofsOfPicks(t *testing.T) {
	opened := time.Date(2026, 6, 1, 9, 0, 0, 0, time.UTC)
	start := opened.Add(148 * time.Hour)
	l := must.Get(ledger.Open(t.Context(), memblob.New(), ledger.Real, opened, "builder", ""))(t)
	happens := func(events ...ledger.Event) {
		t.Helper()
		fresh, err := l.Refresh(t.Context())
		if err == nil {
			_, err = fresh.Append(t.Context(), opened, "builder", func(*ledger.Fold) ([]ledger.Event, error) { return events, nil })
		}
		must.Do(t, err)
	}
	store := memblob.New()
	proofs := func(s *notes.Signers) map[string]string { // of the next version, by session key
		t.Helper()
		s.New = true
		publisher := snapshots.Publisher{Store: store, Signers: s}
		base, err := publisher.LoadBase(t.Context(), nil)
		must.Do(t, err)
		d := snapshots.Draft{Base: base, About: snapshots.About{
			BuiltAt: opened, CurrentSeason: 2026, Seasons: []int{2026}, Ledger: snapshots.Ledger{Kind: "real", Seq: l.Head().Seq, Hash: l.Head().Hash},
		}}
		err = tiles.Add(&d, s, l.Files(), l.Fold())
		if err == nil {
			_, err = publisher.Publish(t.Context(), d)
		}
		if err == nil {
			base, err = publisher.LoadBase(t.Context(), nil)
		}
		must.Do(t, err)
		found := map[string]string{}
		for _, e := range base.Manifest.Entries {
			if session, ok := strings.CutPrefix(e.Path, tiles.ProofFolder); ok {
				text := must.Get(base.Body(t.Context(), e))(t)
				proven, err := tiles.CheckProof(text, s.Trust())
				if err != nil || strconv.FormatInt(proven.File.Events[0].Session, 10) != session || proven.File.Events[0].Type != ledger.PickFrozen {
					t.Errorf("%s: %+v, %v", e.Path, proven, err)
				}
				found[session] = e.SHA256
			}
		}
		return found
	}
	one, two := key(t, "example.com/log"), key(t, "example.com/log")
	pick := ledger.Pick{P1: "leclerc", P2: "norris", P3: "russell", WinProbability: .41, Model: "r2/1"}
	happens(ledger.Event{Type: ledger.KeysAssigned, Keys: []ledger.KeyAssignment{{Session: 2026007, Year: 2026, GrandPrix: "canada"}, {Session: 2026008, Year: 2026, GrandPrix: "monaco"}}})
	got := proofs(one)
	must.Hold(t, len(got) == 0, "without picks: %v", got)
	happens(ledger.Freeze(2026007, pick, start, false))
	first := proofs(one)
	must.Require(t, len(first) == 1 && first["2026007"] != "", "after the first freeze: %v", first)
	happens(ledger.Freeze(2026008, pick, start, true))
	if both := proofs(one); len(both) != 2 || both["2026007"] != first["2026007"] {
		t.Errorf("after the second freeze: %v, want the first proof unchanged in it: %v", both, first)
	}
	others := proofs(two)
	must.Hold(t, len(others) == 2 && others["2026007"] != first["2026007"], "by another key: %v", others)
	canada, _ := l.Fold().Record(2026007)
	happens(canada.Cancel("a storm")...)
	left := proofs(one)
	must.Hold(t, len(left) == 1 && left["2026008"] != "", "after the void: %v", left)
	canada, _ = l.Fold().Record(2026007)
	happens(canada.Reinstate(start, "the storm has gone"))
	happens(ledger.Freeze(2026007, pick, start, true))
	if again := proofs(one); len(again) != 2 || again["2026007"] == first["2026007"] {
		t.Errorf("after another freeze: %v, want another proof than before the void: %v", again, first)
	}
}

func keyFile(t *testing.T, folder, origin string) string {
	t.Helper()
	file := filepath.Join(folder, rand.Text())
	must.Do(t, notes.MakeKey(file, origin))
	return file
}

func key(t *testing.T, origin string) *notes.Signers {
	t.Helper()
	return must.Get(notes.ReadSigners(keyFile(t, t.TempDir(), origin)))(t)
}
