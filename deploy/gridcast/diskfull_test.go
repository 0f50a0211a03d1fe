package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	run := func(args ...string) (string, error) {
		cmd := exec.Command(binary(t), args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(create...); err == nil || !strings.Contains(out, "was not done, because it could not be recorded") {
		t.Errorf("on a full disk: got %v\n%s", err, out)
	}
	if out, err := run("doctor", "--store", "dir:store"); err == nil || !strings.Contains(out, "rights       gridcast snapshots prune --store dir:store") {
		t.Errorf("doctor on a full disk: got %v\n%s", err, out)
	}
	if after := gridcast(t, dir, "keys", "list", "--json", "--store", "dir:store"); after != before {
		t.Errorf("something was half done:\n%s\n%s", before, after)
	}
	must.Do(t, os.Remove(filler))
	gridcast(t, dir, create...)
}
