package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/ledger"
	"gridcast/builder/proof"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob/dirblob"
)

// TestArm64 builds gridcast for arm64 and runs it under qemu. It makes every version of a store again that was built on
// this machine, and freezes the same picks.
func TestArm64(t *testing.T) {
	if os.Getenv("GRIDCAST_ARM64") == "" {
		t.Skip("builds for arm64 and emulates it, some minutes; make arm64 does")
	}
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		t.Skip("needs qemu-aarch64-static, of the package qemu-user-static")
	}
	here, arm64 := binary(t), filepath.Join(t.TempDir(), "gridcast")
	build := exec.Command("go", "build", "-trimpath", "-o", arm64, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=arm64")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build for arm64: %v\n%s", err, output)
	}
	run := func(program ...string) []byte {
		t.Helper()
		var stdout, stderr bytes.Buffer
		cmd := exec.Command(program[0], program[1:]...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %v\n%s", program, err, &stderr)
		}
		return stdout.Bytes()
	}
	stores, picks := t.TempDir(), map[string][]ledger.Event{}
	key := filepath.Join(stores, "version.key") // so that the versions have the public log
	run(here, "signing", "new", key)
	for name, program := range map[string][]string{"here": {here}, "there": {qemu, arm64}} {
		store := filepath.Join(stores, name)
		run(slices.Concat(program, []string{"replay", "--store", "dir:" + store, "--from", "2024", "--to", "2024", "--sign", key})...)
		dir := must.Get(dirblob.Open(store))(t)
		l := must.Get(ledger.Load(t.Context(), dir, ledger.AnyKind))(t)
		for _, file := range l.Files() {
			for _, e := range file.Events {
				if e.ID = ""; e.Type == ledger.PickFrozen {
					picks[name] = append(picks[name], e)
				}
			}
		}
	}
	if diff := cmp.Diff(picks["here"], picks["there"]); diff != "" || len(picks["here"]) != 24 {
		t.Errorf("this machine froze %d picks, want 24; arm64 froze others (-here +there):\n%s", len(picks["here"]), diff)
	}
	store := "dir:" + filepath.Join(stores, "here")
	for _, at := range []string{"2025-01-02T00:00:00Z", "2025-03-15T12:00:00Z", "2025-03-18T12:00:00Z"} {
		run(here, "build", "--all", "--store", store, "--now", at, "--sign", key)
	}
	var again []proof.Reproduction
	must.Do(t, json.Unmarshal(run(qemu, arm64, "snapshots", "reproduce", "--all", "--json", "--store", store), &again))
	documents := 0
	for _, a := range again {
		documents += a.Equal
	}
	t.Logf("arm64 made %d versions again, %d documents", len(again), documents)
	must.Hold(t, len(again) >= 4, "the store has %d versions, want those of four builds", len(again))
}
