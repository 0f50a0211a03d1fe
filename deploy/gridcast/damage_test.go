package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/schemas/wire"
	"gridcast/snapshots/blob/porttest"
)

// notBuilt is the sentence of log, readiness and status while a service cannot build.
const notBuilt = "versions are not built"

// TestServeServesWhateverIsPublished damages a file that builds need. The service still serves the
// published version, the admin port names the reason, and builds start again after the fix.
func TestServeServesWhateverIsPublished(t *testing.T) {
	t.Parallel() // most of it waits
	const at = "2024-07-01T12:00:00Z"
	for name, file := range map[string]string{
		"the last file of the ledger is cut short": "ledger",
		"a part of the archive is cut short":       "archives/parts",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			gridcast(t, dir, "build", "--store", "dir:store", "--now", at, "--model", "grid-frequency", "--archive", seasons(t, 2024, 2024))
			key := newKey(t, dir, "dir:store", "pro")
			files, err := filepath.Glob(filepath.Join(dir, "store", filepath.FromSlash(file), "*"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no files of the %s: %v", file, err)
			}
			path := files[len(files)-1]
			whole := must.Get(os.ReadFile(path))(t)
			replace(t, path, whole[:len(whole)/2])

			admin := porttest.Address(t)
			server := startServer(t, dir, "serve", "--store", "dir:store", "--now", at, "--model", "grid-frequency", "--admin-listen", admin)
			c := newClient(server.url, key)
			if got := data[[]wire.DriverStanding](t, c.get(t, "/standings")); len(got) == 0 {
				t.Error("no standings are served")
			}
			status := func() string {
				return data[edge.StatusDocument](t, newClient("http://"+admin, "").do(t, "GET", "/status", nil)).Builder
			}
			must.Until(t, "the status says why nothing is built", func() bool {
				return regexp.MustCompile(regexp.QuoteMeta(filepath.Base(path)) + "|archive").MatchString(status())
			})
			public := newClient(server.url, "")
			a := public.do(t, "GET", "/status", nil)
			must.Equal(t, "the public status of the builder", notBuilt, data[edge.StatusDocument](t, a).Builder)
			must.Equal(t, "paths in the public status", 0, bytes.Count(a.body, []byte(dir)))
			a = public.do(t, "GET", "/readyz", nil)
			must.Equal(t, "readiness", 200, a.status)
			must.Show(t, "/readyz", string(a.body), notBuilt)
			replace(t, path, whole)
			must.Until(t, "versions are built again", func() bool { return status() == "" })
		})
	}
}

// replace writes a file as the store does, in one step.
func replace(t *testing.T, path string, data []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(path+".new", data, 0o600))
	must.Do(t, os.Rename(path+".new", path))
}
