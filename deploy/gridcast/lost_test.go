package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob/porttest"
)

// The disk of the store is not mounted after a restart. The service goes on with its copy and opens no new ledger, an
// edge starts from its copy too, and doctor names the version and the command that helps. When the disk is back, the
// service builds again. Only --new-store begins anew.
func TestStoreNotMounted(t *testing.T) {
	if testing.Short() {
		t.Skip("short: starts five processes")
	}
	dir := t.TempDir()
	archive := seasons(t, 2025, 2025)
	serve := []string{"serve", "--store", "dir:store", "--cache-dir", "cache", "--archive", archive, "--no-sources"}
	newKey(t, dir, "dir:store", "pro")
	p := startServer(t, dir, serve...)
	for _, copied := range []string{"keys/keys.json", "version/current.json"} {
		p.await(t, func() bool { _, err := os.Stat(filepath.Join(dir, "cache", copied)); return err == nil })
	}
	p.end(t)

	// A misspelt name of the store: the service says so, serves its copy, and opens no new ledger.
	misspelt := slices.Clone(serve)
	misspelt[2] = "dir:stroe"
	p = startServer(t, dir, misspelt...)
	p.await(t, func() bool { return p.answers("/readyz") && p.says("is the name of the store right?", notBuilt) })
	p.end(t)
	if err := os.Mkdir(filepath.Join(dir, "stroe"), 0o700); err != nil { // there, but another folder
		t.Fatal(err)
	}
	p = startServer(t, dir, misspelt...)
	p.await(t, func() bool { return p.answers("/readyz") && p.says(notBuilt) })
	p.end(t)
	startServer(t, dir, "edge", "--store", "dir:stroe", "--cache-dir", "cache").end(t)
	if entries, err := os.ReadDir(filepath.Join(dir, "stroe")); err != nil || len(entries) > 0 {
		t.Errorf("the service wrote %v into the misspelt store, %v", entries, err)
	}

	gridcast(t, dir, "store", "backup", "backup", "--store", "dir:store", "--by", "anna")
	store, gone := filepath.Join(dir, "store"), filepath.Join(dir, "unmounted")
	must.Do(t, os.Rename(store, gone))

	startServer(t, dir, "edge", "--store", "dir:store", "--cache-dir", "cache").end(t)
	p = startServer(t, dir, serve...)
	p.await(t, func() bool { return p.says(notBuilt, "is the disk mounted? gridcast store restore, or --new-store") })
	if _, err := os.Stat(store); err == nil {
		t.Fatal("the service made a new store")
	}
	doctor := exec.Command(binary(t), "doctor", "edge", "--store", "dir:store", "--cache-dir", "cache", "--listen", "127.0.0.1:0")
	doctor.Dir = dir
	output, err := doctor.CombinedOutput()
	must.Fail(t, "doctor", err)
	must.Show(t, "doctor's output", string(output), "PROBLEM", "gridcast store restore BACKUP")
	must.Do(t, os.Rename(gone, store))
	p.await(t, func() bool {
		_, err := os.Stat(filepath.Join(store, "@new"))
		return err == nil && p.answers("/readyz")
	})
	p.end(t)

	// An empty folder, as where the disk should be mounted, is no new store either.
	must.Do(t, os.Rename(store, gone))
	must.Do(t, os.Mkdir(store, 0o700))
	p = startServer(t, dir, serve...)
	p.await(t, func() bool { return p.says(notBuilt) })
	must.Fail(t, "the service opened a new ledger", must.Err(os.Stat(filepath.Join(store, "ledger"))))
	p.end(t)
	restore := exec.Command(binary(t), "store", "restore", "backup", "--store", "dir:store", "--cache-dir", "cache", "--by", "anna", "--yes")
	restore.Dir = dir
	if output, err := restore.CombinedOutput(); err != nil || bytes.Contains(output, []byte("is unknown")) {
		t.Errorf("restore: %v, want it to know the version from the copy:\n%s", err, output)
	}

	must.Do(t, os.RemoveAll(store))
	must.Do(t, os.Mkdir(store, 0o700))
	address := porttest.Address(t)
	p = launch(t, dir, "http://"+address, "/healthz", append(serve, "--new-store", "--operator-listen", "127.0.0.1:0", "--listen", address))
	p.await(t, func() bool { _, err := os.Stat(filepath.Join(store, "ledger")); return err == nil })
	newKey(t, dir, "dir:store", "pro")
	p.await(t, func() bool { return p.answers("/readyz") })
	p.end(t)
}
