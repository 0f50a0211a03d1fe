package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gridcast/builder/ledger"
	"gridcast/deploy/console"
	"gridcast/schemas/wire"
)

// TestSchedulerTakesOver runs two schedulers on one store and kills one while it builds: the
// pick is frozen once, and the other goes on without being told.
func TestSchedulerTakesOver(t *testing.T) {
	t.Parallel() // most of it waits
	if testing.Short() {
		t.Skip("short: half a weekend takes most of a minute")
	}
	const (
		session = 2024022 // Las Vegas
		speed   = 3000
		lead    = 16 * time.Hour // for four processes to start
	)
	_, race := replayedWeekend(t, lead, speed)
	h := startHouse(t, race, "--model", "grid-frequency")
	dir := h.scheduler.cmd.Dir
	startScheduler(t, dir, "--store", "dir:store", "--race-clock", race.String(), "--model", "grid-frequency")

	h.await(t, "the pick is frozen", func(c *client) bool { return data[wire.NextRace](t, c.get(t, "/next-race")).Prediction != nil })
	killed := h.killWhileRendering(t)
	if killed != console.Render {
		t.Errorf("the scheduler was killed in the phase %q, want while it renders", killed)
	}
	h.await(t, "the other scheduler publishes lights out", func(c *client) bool { return entry(t, c, session).Status == wire.Live })

	var events []ledger.Event
	if err := json.Unmarshal([]byte(gridcast(t, dir, "ledger", "list", "--json", "--session", sessionCell(session), "--store", "dir:store")), &events); err != nil {
		t.Fatal(err)
	}
	if len(events) != 1 || events[0].Type != ledger.PickFrozen {
		t.Errorf("got %+v, want the pick frozen once", events)
	}
	gridcast(t, dir, "ledger", "audit", "--store", "dir:store")
	gridcast(t, dir, "snapshots", "verify", "--store", "dir:store")
	if files, err := filepath.Glob(filepath.Join(dir, "store", "audit", "*.json")); err != nil || len(files) != 2 {
		t.Errorf("got audit files %v, %v; want the key and the rebuild, which was announced before it began", files, err)
	}
}

// killWhileRendering asks the scheduler to rebuild and kills it as soon as it says that it
// renders. It returns the last phase that the scheduler told of.
func (h *house) killWhileRendering(t *testing.T) (last console.Phase) {
	t.Helper()
	c := console.Client{Address: strings.TrimPrefix(h.scheduler.url, "http://"), Token: h.token, Operator: "anna"}
	run, err := c.Rebuild(t.Context(), "", "to be killed")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Follow(t.Context(), run, func(e console.Event) {
		if h.scheduler.killed {
			return // it had said more before it died
		}
		if last = e.Phase; last == console.Render {
			h.scheduler.kill(t)
		}
	})
	if err == nil {
		t.Error("the killed scheduler ended its run")
	}
	return last
}
