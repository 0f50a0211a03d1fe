package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/dirblob"
)

// earlierStore is a store that the commit of that name wrote: seasons 2023 and 2024 from F1DB
// (CC BY 4.0), a simulated ledger up to 26 November 2024 with a frozen pick, a verified result, a
// round postponed and reinstated, eight versions of which one is a rollback, four keys of which
// one is revoked.
const earlierStore = "testdata/store-95278eb.tar.zst"

// earlierKey is a key of that store, of tier pro.
const earlierKey = "gc_live_v8sUVLPG6MQXsaFZpHQJTZKAq4LOyMsQ3TKx1T"

// earlierRevokedKey is its revoked key.
const earlierRevokedKey = "gc_live_cdQ702BJ6kQY7e0ZtpEb1q35chGV3lHa4KSCYJ"

// unpackStore writes the files of a .tar.zst into the folder "store" of dir.
func unpackStore(t *testing.T, dir, path string) {
	t.Helper()
	packed, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	plain, err := zstd.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join("store", header.Name)
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := root.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEarlierStore: a store that an earlier release wrote opens, is served to the byte, proves
// its record, and goes on: decisions, builds, keys.
func TestEarlierStore(t *testing.T) {
	dir := t.TempDir()
	unpackStore(t, dir, earlierStore)
	const store = "dir:store"
	blobs, err := dirblob.Open(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}

	edge := startServer(t, dir, "edge", "--store", store, "--cache-dir", "cache")
	c := newClient(edge.url, earlierKey)
	served := map[string]string{ // object of the version: target
		"standings/drivers/2023": "/standings?year=2023", "standings/constructors/2024": "/standings?type=constructors&year=2024",
		"calendar/2024": "/calendar?year=2024", "drivers": "/drivers", "predictions/2024": "/predictions?year=2024", "accuracy/all": "/accuracy",
	}
	earlier, err := snapshots.Open(t.Context(), blobs, nil)
	if err != nil {
		t.Fatal(err)
	}
	if earlier.Pointer.Version != 8 {
		t.Fatalf("the earlier store is at version %d, want 8", earlier.Pointer.Version)
	}
	for path, target := range served {
		body, ok := earlier.Body(path)
		if !ok {
			t.Fatalf("version 8 has no %s", path)
		}
		if a := c.get(t, target); !bytes.Equal(a.body, body.Identity) {
			t.Errorf("GET %s is not what was published:\n%s\n%s", target, a.body, body.Identity)
		}
	}
	pick := data[[]wire.PredictionRecord](t, c.get(t, "/predictions?session_key=2024022"))
	if len(pick) != 1 || pick[0].Prediction.Winner != "RUS" || pick[0].Prediction.ConfidencePct != 465 || pick[0].Result == nil {
		t.Errorf("the pick of Las Vegas: got %+v, want RUS at 46.5 %% with its result", pick)
	}
	refused := newClient(edge.url, earlierRevokedKey).do(t, http.MethodGet, "/api/v1/drivers", nil)
	if refused.status != http.StatusUnauthorized {
		t.Errorf("the revoked key got %d, want 401", refused.status)
	}

	if got := gridcast(t, dir, "ledger", "audit", "--store", store); !strings.Contains(got, "The record is whole") {
		t.Errorf("ledger audit: %s", got)
	}
	if got := gridcast(t, dir, "keys", "list", "--store", store); !strings.Contains(got, "Before Media") {
		t.Errorf("keys list: %s", got)
	}

	// It goes on: a race later a build follows, its result is verified, the next build publishes it.
	gridcast(t, dir, "build", "--store", store, "--now", "2024-12-01T19:00:00Z")
	gridcast(t, dir, "results", "verify", "2024023", "--store", store, "--now", "2024-12-01T19:05:00Z", "--yes")
	gridcast(t, dir, "build", "--store", store, "--now", "2024-12-01T19:06:00Z")
	gridcast(t, dir, "keys", "revoke", "a22ce64e57d7", "--yes", "--store", store)
	edge.await(t, func() bool {
		rows := data[[]wire.CalendarEntry](t, c.get(t, "/calendar?year=2024"))
		return len(rows) == 24 && rows[22].Status == wire.Finished && rows[22].Winner == "VER"
	})
	if again := data[[]wire.PredictionRecord](t, c.get(t, "/predictions?session_key=2024022")); len(again) != 1 || again[0].Prediction != pick[0].Prediction {
		t.Errorf("the frozen pick changed: got %+v, was %+v", again, pick)
	}
	if got := gridcast(t, dir, "ledger", "audit", "--store", store); !strings.Contains(got, "The record is whole") {
		t.Errorf("ledger audit: %s", got)
	}
	if faults := gridcast(t, dir, "snapshots", "verify", "--store", store); strings.Contains(faults, "wrong") {
		t.Errorf("snapshots verify: %s", faults)
	}
}
