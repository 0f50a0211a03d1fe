package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"gridcast/deploy/must"
)

// TestDiskFull fills the disk of a store. A command is refused as a whole, doctor names the problem, and the same
// command succeeds once there is room.
func TestDiskFull(t *testing.T) {
	t.Parallel() // most of it waits
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("no small disk on this machine: %v", err)
	}
	t.Cleanup(func() {
		must.Succeed(t, "Unmount", syscall.Unmount(dir, syscall.MNT_DETACH))
	})
	create := []string{"keys", "create", "--name", "two", "--tier", "pro", "--store", "dir:store"}
	gridcast(t, dir, "keys", "create", "--name", "one", "--tier", "pro", "--store", "dir:store")
	before := gridcast(t, dir, "keys", "list", "--json", "--store", "dir:store")
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	fails := func(says string, args ...string) {
		t.Helper()
		cmd := exec.Command(binary(t), args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		must.Fail(t, "on a full disk "+args[0], err)
		must.Show(t, "on a full disk "+args[0], string(out), says)
	}
	fails("was not done, because it could not be recorded", create...)
	fails("rights       gridcast snapshots prune --store dir:store", "doctor", "--store", "dir:store")
	if after := gridcast(t, dir, "keys", "list", "--json", "--store", "dir:store"); after != before {
		t.Errorf("something was half done:\n%s\n%s", before, after)
	}
	must.Do(t, os.Remove(filler))
	gridcast(t, dir, create...)
}
