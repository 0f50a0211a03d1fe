package tiles_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/tiles"
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
		data, err := file.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if file, err = ledger.DecodeFile(data); err != nil {
			t.Fatal(err)
		}
		file.Hash = snapshots.Digest(data)
		files = append(files, file)
	}
	return files
}

// TestProofs checks the proof of each file of a log, and that an altered proof is refused by the name of the altered
// part. Package deploy/logcheck checks logs with the readers of others.
func TestProofs(t *testing.T) {
	files, signers, other := ledgerOf(t, ledger.Simulated, 9), key(t, "example.com/log"), key(t, "example.com/log")
	l, err := tiles.New(files)
	if err != nil {
		t.Fatal(err)
	}
	text, err := l.Text(signers.Origin())
	if err != nil || !strings.HasPrefix(text, "example.com/log/simulated\n9\n") {
		t.Fatalf("checkpoint %q, %v", text, err)
	}
	sign := func(s *notes.Signers, text string) []byte {
		t.Helper()
		data, err := s.SignText(text)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	checkpoint := sign(signers, text)
	for _, file := range files {
		proof, err := l.Prove(file, checkpoint)
		if err != nil {
			t.Fatal(err)
		}
		proven, err := tiles.Verify(proof, signers.Trust())
		if err != nil || proven.File.Seq != file.Seq || proven.Size != 9 || proven.File.Events[0].ID != file.Events[0].ID {
			t.Errorf("file %d: %+v, %v", file.Seq, proven, err)
		}
		for i := 0; i < len(proof); i += 7 {
			altered := bytes.Clone(proof)
			altered[i] ^= 1
			if got, err := tiles.Verify(altered, signers.Trust()); err == nil && got.File.Seq != file.Seq {
				t.Errorf("file %d: proof with byte %d altered proves file %d", file.Seq, i, got.File.Seq)
			}
		}
		file.Hash = strings.Repeat("0", 64)
		if _, err := l.Prove(file, checkpoint); err == nil {
			t.Errorf("file %d is proven by another hash", file.Seq)
		}
	}

	if _, err := l.Prove(ledgerOf(t, ledger.Simulated, 10)[9], checkpoint); err == nil || !strings.Contains(err.Error(), "ends at ledger file 9, before file 10") {
		t.Errorf("a file after the checkpoint: %v", err)
	}
	proof, err := l.Prove(files[4], checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(proof), "\n")
	line := func(number int, text string) string {
		altered := slices.Clone(lines)
		altered[number] = text
		return strings.Join(altered, "\n")
	}
	forged, err := files[5].Encode()
	if err != nil {
		t.Fatal(err)
	}
	another := strings.Replace(text, "\n9\n", "\n8\n", 1)
	for name, test := range map[string]struct{ proof, want string }{
		"no proof":                {"", "it is no c2sp.org/tlog-proof@v1"},
		"another pick":            {line(1, "extra "+base64.StdEncoding.EncodeToString(forged)), "the log of example.com/log/simulated does not have this ledger file"},
		"no ledger file":          {line(1, "nothing"), "its ledger file or its index cannot be read"},
		"another index":           {line(2, "index 5"), "does not have this ledger file"},
		"no index":                {line(2, "index x"), "its ledger file or its index cannot be read"},
		"another hash":            {line(3, lines[4]), "does not have this ledger file"},
		"no hash":                 {line(3, "x"), `hash "x"`},
		"a hash less":             {strings.Replace(string(proof), lines[3]+"\n", "", 1), "does not have this ledger file"},
		"another size":            {strings.Replace(string(proof), text, another, 1), "checkpoint: not signed by a trusted key"},
		"a checkpoint by another": {strings.Replace(string(proof), string(checkpoint), string(sign(other, text)), 1), "checkpoint: not signed by a trusted key"},
		"an earlier checkpoint":   {strings.Replace(string(proof), string(checkpoint), string(sign(signers, another)), 1), "does not have this ledger file"},
		"a note about a version":  {strings.Replace(string(proof), string(checkpoint), string(sign(signers, "example.com/log\nversion 1\nmanifest x\n")), 1), `checkpoint: size "version 1"`},
	} {
		if _, err := tiles.Verify([]byte(test.proof), signers.Trust()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, test.want)
		}
	}

	// The log of a version is made again without the key, and a checkpoint of another log is not.
	again, err := tiles.Remake(files, checkpoint)
	if err != nil || !bytes.Equal(again[tiles.Checkpoint], checkpoint) {
		t.Errorf("made again: %q, %v", again[tiles.Checkpoint], err)
	}
	again, err = tiles.Remake(files, bytes.Replace(checkpoint, []byte("\n9\n"), []byte("\n8\n"), 1))
	if err != nil || bytes.Contains(again[tiles.Checkpoint], []byte("—")) {
		t.Errorf("another checkpoint made again: %q, %v", again[tiles.Checkpoint], err)
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
		{files: 3, keys: []string{one}, origin: "example.com/log", written: 3},
		{files: 3, keys: []string{one}, origin: "example.com/log", written: 0},
		{files: 256, keys: []string{one}, origin: "example.com/log", written: 4},
		{files: 300, keys: []string{one}, origin: "example.com/log", written: 3},
		{files: 300, keys: []string{one, two}, origin: "example.com/log", written: 1},
		{files: 300, keys: []string{two}, origin: "example.com/log", written: 1},
		{files: 300, keys: []string{restored}, origin: "example.com/restored", written: 6},
	} {
		s, err := notes.ReadSigners(step.keys...)
		if err != nil {
			t.Fatal(err)
		}
		s.New = true
		publisher := snapshots.Publisher{Store: store, Signers: s}
		base, err := publisher.LoadBase(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		d := &snapshots.Draft{Base: base, About: snapshots.About{
			BuiltAt: time.Date(2024, 12, 1, 0, 0, 0, 0, time.UTC), CurrentSeason: 2024, Seasons: []int{2024},
			Ledger: snapshots.Ledger{Kind: "real", Seq: int64(step.files), Hash: files[step.files-1].Hash},
		}}
		if err = tiles.Add(d, s, files[:step.files]); err != nil {
			t.Fatal(err)
		}
		receipt, err := publisher.Publish(t.Context(), *d)
		if err != nil || receipt.ObjectsWritten != step.written {
			t.Fatalf("step %d: %d objects written, %v; want %d", i, receipt.ObjectsWritten, err, step.written)
		}
		v, err := snapshots.Open(t.Context(), store, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := v.Body(tiles.Checkpoint)
		n, size, _, err := tiles.ReadCheckpoint(body.Identity, s.Trust())
		if err != nil || n.Origin != step.origin || size != int64(step.files) || len(n.Keys) != len(step.keys) {
			t.Errorf("step %d: %+v of %d files, %v", i, n, size, err)
		}
	}
}

func keyFile(t *testing.T, folder, origin string) string {
	t.Helper()
	file := filepath.Join(folder, rand.Text())
	if err := notes.MakeKey(file, origin); err != nil {
		t.Fatal(err)
	}
	return file
}

func key(t *testing.T, origin string) *notes.Signers {
	t.Helper()
	s, err := notes.ReadSigners(keyFile(t, t.TempDir(), origin))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
