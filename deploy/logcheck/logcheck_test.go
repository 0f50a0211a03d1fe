// Package logcheck reads the public log of the ledger with the programs of others: the client and fsck of
// transparency-dev/tessera, and the formats of transparency-dev/formats.
package logcheck_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/formats/proof"
	merkle "github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/api/layout"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/tiles"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob/porttest"
	"gridcast/snapshots/notes"
)

// leafHashes are the leaf hashes of a bundle, as the standard has them.
func leafHashes(bundle []byte) ([][]byte, error) {
	var b api.EntryBundle
	if err := b.UnmarshalText(bundle); err != nil {
		return nil, err
	}
	hashes := make([][]byte, len(b.Entries))
	for i, entry := range b.Entries {
		sum := sha256.Sum256(append([]byte{0}, entry...))
		hashes[i] = sum[:]
	}
	return hashes, nil
}

// TestSizes checks logs around the edges of tiles, in a folder.
func TestSizes(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	must.Do(t, notes.MakeKey(key, "example.com/log"))
	signers := must.Get(notes.ReadSigners(key))(t)
	verifier := must.Get(note.NewVerifier(signers.Public()[0]))(t)
	var files []ledger.File
	for i := range 66_000 {
		files = append(files, ledger.File{Seq: int64(i + 1), Kind: ledger.Real, Hash: fmt.Sprintf("%064x", i)})
	}
	sizes := []int{1, 255, 256, 257, 700}
	if os.Getenv("GRIDCAST_SEASONS") == "all" {
		sizes = append(sizes, 66_000) // three levels of tiles
	}
	for _, size := range sizes {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			l := must.Get(tiles.New(files[:size]))(t)
			all := must.Get(l.Tiles())(t)
			text := must.Get(l.Text(signers.Origin()))(t)
			checkpoint := must.Get(signers.SignText(text))(t)
			stored := memory{checkpoint, all}
			f := fsck.New("example.com/log", verifier, stored, leafHashes, fsck.Opts{N: 2})
			if err := f.Check(t.Context()); err != nil {
				t.Errorf("fsck: %v", err)
			}
		})
	}
}

// memory serves the stored files of a log.
type memory struct {
	checkpoint []byte
	files      map[string][]byte
}

func (m memory) ReadCheckpoint(context.Context) ([]byte, error) { return m.checkpoint, nil }

func (m memory) read(path string) ([]byte, error) {
	path, _, _ = strings.Cut(path, ".p/")
	if data, ok := m.files["log/"+path]; ok {
		return data, nil
	}
	return nil, os.ErrNotExist
}

func (m memory) ReadTile(_ context.Context, level, index uint64, p uint8) ([]byte, error) {
	return m.read(layout.TilePath(level, index, p))
}

func (m memory) ReadEntryBundle(_ context.Context, index uint64, p uint8) ([]byte, error) {
	return m.read(layout.EntriesPath(index, p))
}

// TestEdge checks the log of a replayed season as an edge serves it, and the proof of a pick.
func TestEdge(t *testing.T) {
	binary, folder := filepath.Join(t.TempDir(), "gridcast"), t.TempDir()
	run(t, "../..", "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./deploy/gridcast")
	verifierKey := strings.TrimSpace(run(t, folder, binary, "signing", "new", "version.key"))
	seasons := filepath.Join(folder, "seasons.archive")
	must.Do(t, archive.WriteFile(seasons, archivetest.Stored(t, archivetest.Seasons(t, 2023, 2024))))
	run(t, folder, binary, "replay", "--archive", seasons, "--from", "2024", "--to", "2024", "--store", "dir:store", "--sign", "version.key", "--model", "grid-frequency")
	verifier := must.Get(note.NewVerifier(verifierKey))(t)
	origin := verifier.Name() + "/simulated"

	address := serve(t, folder, binary)
	root := must.Get(url.Parse("http://" + address + "/log/"))(t)
	fetcher := must.Get(client.NewHTTPFetcher(root, http.DefaultClient))(t)
	if err := fsck.New(origin, verifier, fetcher, leafHashes, fsck.Opts{N: 1}).Check(t.Context()); err != nil {
		t.Errorf("fsck: %v", err)
	}
	head, _, _, err := client.FetchCheckpoint(t.Context(), fetcher.ReadCheckpoint, verifier, origin)
	must.Do(t, err)

	// The proof of a pick as everybody gets it, read by others.
	text := string(fetch(t, "http://"+address+"/log/proof/2024022", ""))
	if keys := string(fetch(t, "http://"+address+"/log/verifier-keys", "")); keys != verifierKey+"\n" {
		t.Errorf("verifier keys %q, want %q", keys, verifierKey)
	}
	var p proof.TLogProof
	must.Do(t, p.Unmarshal([]byte(text)))
	checkpoint, _, _, err := log.ParseCheckpoint(p.Checkpoint, origin, verifier)
	if err != nil || checkpoint.Size != p.Index+1 || checkpoint.Size > head.Size {
		t.Fatalf("checkpoint of the proof: %+v, %v, want one of %d files", checkpoint, err, p.Index+1)
	}
	record := make(tlog.RecordProof, len(p.Hashes))
	for i, h := range p.Hashes {
		record[i] = h
	}
	bundle := must.Get(client.GetEntryBundle(t.Context(), fetcher.ReadEntryBundle, 0, head.Size))(t)
	leaf := bundle.Entries[p.Index]
	if want := fmt.Sprintf("ledger %d sha256 %x\n", p.Index+1, sha256.Sum256(p.ExtraData)); string(leaf) != want {
		t.Errorf("leaf %q, want %q", leaf, want)
	}
	if err := tlog.CheckRecord(record, int64(checkpoint.Size), tlog.Hash(checkpoint.Hash), int64(p.Index), tlog.RecordHash(leaf)); err != nil {
		t.Errorf("inclusion: %v", err)
	}
	builder := must.Get(client.NewProofBuilder(t.Context(), head.Size, fetcher.ReadTile))(t)
	consistent, err := builder.ConsistencyProof(t.Context(), checkpoint.Size, head.Size)
	if err == nil {
		err = merkle.VerifyConsistency(rfc6962.DefaultHasher, checkpoint.Size, head.Size, consistent, checkpoint.Hash, head.Hash)
	}
	if err != nil {
		t.Errorf("the log of the proof is not the beginning of the log: %v", err)
	}

	// The pick in the proof is the one that readers are served.
	var file struct {
		Events []struct {
			Session int64 `json:"session_key"`
			Pick    struct {
				P1  string  `json:"p1"`
				Win float64 `json:"win_probability"`
			} `json:"pick"`
		} `json:"events"`
	}
	var served struct {
		Data []struct {
			Drivers []struct {
				ID  string  `json:"driver_id"`
				Win float64 `json:"win_pct"`
			} `json:"drivers"`
		} `json:"data"`
	}
	apiKey, _, _ := strings.Cut(run(t, folder, binary, "keys", "create", "--name", "Reader", "--tier", "standard", "--store", "dir:store"), "\n")
	must.Do(t, json.Unmarshal(p.ExtraData, &file))
	must.Do(t, json.Unmarshal(fetch(t, "http://"+address+"/api/v1/probabilities?session_key=2024022", apiKey), &served))
	event, winner := file.Events[0], served.Data[0].Drivers[0]
	if event.Session != 2024022 || event.Pick.P1 != winner.ID || math.Abs(100*event.Pick.Win-winner.Win) > .05001 {
		t.Errorf("the proof has %+v, the API %+v", event, winner)
	}

	// Our own reader, and proofs that prove nothing.
	name := filepath.Join(folder, "proof")
	verify := func(text string) error {
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
		return exec.Command(binary, "ledger", "verify", name, "--key", verifierKey).Run()
	}
	if err := verify(text); err != nil {
		t.Errorf("gridcast ledger verify: %v", err)
	}
	forged := p
	forged.ExtraData = bytes.Replace(p.ExtraData, []byte("george-russell"), []byte("lando-norris  "), 1)
	moved := p
	moved.Index++
	short := p
	short.Hashes = p.Hashes[1:]
	unsigned := p
	unsigned.Checkpoint = bytes.Replace(p.Checkpoint, fmt.Appendf(nil, "\n%d\n", checkpoint.Size), fmt.Appendf(nil, "\n%d\n", checkpoint.Size+1), 1)
	for name, p := range map[string]proof.TLogProof{"another pick": forged, "another index": moved, "a hash less": short, "another size": unsigned} {
		if verify(string(p.Marshal())) == nil {
			t.Errorf("%s: the proof is accepted", name)
		}
	}
}

// fetch returns an answer of the edge. It waits for a new key.
func fetch(t *testing.T, address, key string) []byte {
	t.Helper()
	var body []byte
	must.Until(t, "the edge knows the key", func() bool {
		request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil))(t)
		request.Header.Set("X-API-Key", key)
		response := must.Get(http.DefaultClient.Do(request))(t)
		defer response.Body.Close()
		body = must.Get(io.ReadAll(response.Body))(t)
		if response.StatusCode != http.StatusOK && key == "" {
			t.Fatalf("%s: %s", address, response.Status)
		}
		return response.StatusCode == http.StatusOK
	})
	return body
}

// serve starts an edge, and returns its address when it is ready.
func serve(t *testing.T, folder, binary string) string {
	t.Helper()
	address := porttest.Address(t)
	edge := exec.CommandContext(t.Context(), binary, "edge", "--store", "dir:store", "--listen", address, "--now", "2025-01-01T00:00:00Z")
	edge.Dir = folder
	must.Do(t, edge.Start())
	t.Cleanup(func() {
		_ = edge.Process.Kill()
		_ = edge.Wait()
	})
	must.Until(t, "the edge serves a version", func() bool {
		response, err := http.Get("http://" + address + "/status")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		var status struct {
			Data struct {
				Version int64 `json:"version"`
			} `json:"data"`
		}
		return json.NewDecoder(response.Body).Decode(&status) == nil && status.Data.Version > 0
	})
	return address
}

func run(t *testing.T, folder, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = folder
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, stderr.Bytes())
	}
	return string(out)
}
