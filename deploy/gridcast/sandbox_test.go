package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/must"
	"gridcast/schemas/wire"
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
	p := startServer(t, dir, "serve", "--store", "dir:store", "--sandbox", "--archive", lateSeason(t))
	p.await(t, func() bool { return p.output.Says("the sandbox stands still") })
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
	t.Run("widget", func(t *testing.T) { simulatedWidget(t, p) })
	must.Hold(t, real.Clock == "" && real.Sandbox == nil && real.Ledger.Kind == "real", "the real world has %+v", real.About)
}

// simulatedWidget shows the widget with a key of the sandbox on another site: it has the round and the time of the simulation, and
// every element says that its data are simulated. With another key none says so.
func simulatedWidget(t *testing.T, p *process) {
	b := browsertest.Open(t)
	s := newSite(t, p.url)
	for _, tier := range []string{"sandbox", "pro"} {
		client := newClient(p.url, newKey(t, p.cmd.Dir, "dir:store", tier))
		p.await(t, func() bool { return client.do(t, http.MethodGet, "/api/v1/drivers", nil).status == http.StatusOK })
		simulated := strconv.FormatBool(tier == "sandbox")
		b.Do(chromedp.Navigate(s.URL + "/?key=" + client.key))
		b.Await(`/^(counting|live|starting|none)$/.test(next().getAttribute("state"))`, "true")
		for _, element := range []string{"next", "season", "live"} {
			b.Await(`document.querySelector("gridcast-`+element+`").shadowRoot.querySelector("[role=status]").textContent.startsWith("Simulated, not a real race.")`, simulated)
		}
		if tier == "sandbox" {
			must.Until(t, "the widget names the next round", func() bool { // asked again, because the weekend goes on meanwhile
				rounds := data[wire.Overview](t, client.get(t, "/overview")).Rounds
				i := slices.IndexFunc(rounds, func(r wire.OverviewRound) bool { return r.Status == wire.Live || r.Status == wire.Scheduled })
				return i >= 0 && must.Within(30*time.Second, func() bool {
					return b.Evaluate(`next().shadowRoot.querySelector("h2")?.textContent`) == rounds[i].GPName
				})
			})
		}
		b.Picture("sandbox-" + tier)
	}
}
