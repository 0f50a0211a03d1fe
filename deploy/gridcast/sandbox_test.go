package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
)

// TestSandboxBesideAService starts a service whose sandbox cannot write. The service serves the real world, and says why the
// sandbox stands still. When the fault is over, the sandbox publishes, and the real world has nothing of it.
func TestSandboxBesideAService(t *testing.T) {
	t.Parallel() // most of it waits
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	gridcast(t, dir, "keys", "create", "--name", "one", "--tier", "pro", "--store", "dir:store")
	blocked := filepath.Join(store, "sandbox")
	must.Do(t, os.WriteFile(blocked, []byte("in place of the folder"), 0o600))
	p := startServer(t, dir, "serve", "--store", "dir:store", "--sandbox")
	p.await(t, func() bool { return strings.Contains(p.output.String(), "the sandbox stands still") })
	must.Hold(t, p.answers("/readyz"), "the service does not serve the real world:\n%s", &p.output)
	must.Do(t, os.Remove(blocked))
	read := must.Get(dirblob.Open(store))(t)
	p.await(t, func() bool {
		pointer, _, err := snapshots.LoadPointer(t.Context(), blob.Under(read, snapshots.SandboxFolder))
		return err == nil && pointer.Version > 0
	})
	simulated := must.Get(snapshots.LoadBase(t.Context(), blob.Under(read, snapshots.SandboxFolder), nil))(t).Manifest
	must.Hold(t, simulated.Clock != "" && simulated.Sandbox != nil && simulated.Ledger.Kind == "simulated", "the sandbox has %+v", simulated.About)
	real := must.Get(snapshots.LoadBase(t.Context(), read, nil))(t).Manifest
	must.Hold(t, real.Clock == "" && real.Sandbox == nil && real.Ledger.Kind == "real", "the real world has %+v", real.About)
}
