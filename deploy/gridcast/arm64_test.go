package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"gridcast/builder"
	"gridcast/builder/ledger"
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
	t.Chdir(t.TempDir())
	arm64 := filepath.Join(t.TempDir(), "gridcast")
	build := exec.Command("go", "build", "-trimpath", "-tags", "nethttpomithttp2", "-o", arm64, "gridcast/deploy/gridcast")
	build.Env, build.Dir = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=arm64"), filepath.Dir(filepath.Dir(filepath.Dir(binary(t))))
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
	picks := map[string][]ledger.Event{}
	for store, program := range map[string][]string{"here": {binary(t)}, "there": {qemu, arm64}} {
		run(slices.Concat(program, []string{"replay", "--store", "dir:" + store, "--from", "2024", "--to", "2024"})...)
		dir, err := dirblob.Open(store)
		if err != nil {
			t.Fatal(err)
		}
		l, err := ledger.Load(t.Context(), dir, ledger.AnyKind)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range l.Files() {
			for _, e := range file.Events {
				if e.ID = ""; e.Type == ledger.PickFrozen {
					picks[store] = append(picks[store], e)
				}
			}
		}
	}
	here, _ := json.Marshal(picks["here"])
	there, _ := json.Marshal(picks["there"])
	if len(picks["here"]) != 24 || string(here) != string(there) {
		t.Errorf("arm64 froze other picks\n%s\nthan this machine\n%s", there, here)
	}
	for _, at := range []string{"2025-01-02T00:00:00Z", "2025-03-15T12:00:00Z", "2025-03-18T12:00:00Z"} {
		run(binary(t), "build", "--all", "--store", "dir:here", "--now", at)
	}
	var again []builder.Reproduction
	if err := json.Unmarshal(run(qemu, arm64, "snapshots", "reproduce", "--all", "--json", "--store", "dir:here"), &again); err != nil {
		t.Fatal(err)
	}
	documents := 0
	for _, a := range again {
		documents += a.Equal
	}
	t.Logf("arm64 made %d versions again, %d documents", len(again), documents)
	if len(again) < 4 {
		t.Errorf("the store has %d versions, want those of four builds", len(again))
	}
}
