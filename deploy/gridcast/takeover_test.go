package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder/ledger"
	"gridcast/deploy/console"
	"gridcast/deploy/must"
	"gridcast/deploy/terminal"
	"gridcast/schemas/wire"
)

// TestSchedulerTakesOver runs two schedulers on one store and kills one while it builds: the
// pick is frozen once, and the other goes on without being told.
func TestSchedulerTakesOver(t *testing.T) {
	t.Parallel() // most of it waits
	if testing.Short() {
		t.Skip("short: half a weekend takes most of a minute")
	}
	const session = 2024022 // Las Vegas
	w := replayedWeekend(t)
	// Nobody has frozen the pick yet: the schedulers find that it is due.
	began := time.Now()
	h := newHouse(t, "dir:store", lateSeason(t), w.Round.GridKnownAt().Add(-time.Hour), "--model", "grid-frequency")
	// Four processes start until lights out, in half a minute or in a dozen times the time that the store
	// has taken on this machine now. The race is live for almost three times as long.
	const before = 90 * time.Minute
	lead := max(30*time.Second, 12*time.Since(began))
	race := raceClock(t, w.Round.StartsAt().Add(-before), before.Seconds()/lead.Seconds())
	h.run(t, race)
	dir := h.scheduler.cmd.Dir
	startScheduler(t, dir, "--store", "dir:store", "--race-clock", race.String(), "--model", "grid-frequency")

	h.await(t, "the pick is frozen", func(c *client) bool { return data[wire.NextRace](t, c.get(t, "/next-race")).Prediction != nil })
	// On a busy machine the rebuild may have ended before the kill: then another scheduler is started, and
	// asked again.
	for !h.killWhileRendering(t) {
		h.scheduler = startScheduler(t, dir, "--store", "dir:store", "--race-clock", race.String(), "--model", "grid-frequency")
	}
	h.await(t, "the other scheduler publishes lights out", func(c *client) bool { return entry(t, c, session).Status == wire.Live })

	var events []ledger.Event
	must.Do(t, json.Unmarshal([]byte(gridcast(t, dir, "ledger", "list", "--json", "--session", terminal.Number(session), "--store", "dir:store")), &events))
	events = slices.DeleteFunc(events, func(e ledger.Event) bool { return e.Type == ledger.ForecastNoted })
	must.Hold(t, len(events) == 1 && events[0].Type == ledger.PickFrozen, "got %+v, want the pick frozen once", events)
	gridcast(t, dir, "ledger", "audit", "--store", "dir:store")
	gridcast(t, dir, "snapshots", "verify", "--store", "dir:store")
}

// killWhileRendering asks the scheduler to rebuild and kills it as soon as it says that it
// renders. It reports whether that was in time: the audit log has the rebuild, which was announced
// before it began, and nothing of its end.
func (h *house) killWhileRendering(t *testing.T) bool {
	t.Helper()
	audited := func() int {
		files := must.Get(filepath.Glob(filepath.Join(h.dir, "store", "audit", "*.json")))(t)
		return len(files)
	}
	before := audited()
	must.Hold(t, before != 0, "the audit log has not even the key")
	c := console.Client{Address: strings.TrimPrefix(h.scheduler.url, "http://"), Token: h.token, Operator: "anna"}
	run, err := c.Rebuild(t.Context(), "", "to be killed")
	if err != nil {
		t.Fatal(err)
	}
	var last console.Phase
	_, err = c.Follow(t.Context(), run, func(e console.Event) {
		if h.scheduler.killed {
			return // it had said more before it died
		}
		if last = e.Phase; last == console.Render {
			h.scheduler.kill(t)
		}
	})
	if last != console.Render {
		t.Fatalf("the rebuild ended in the phase %q, want that it says when it renders", last)
	}
	switch n := audited() - before; {
	case n < 1:
		t.Fatal("the audit log has nothing of the rebuild")
	case n > 1 || err == nil:
		t.Log("the scheduler was killed too late")
		return false
	}
	return true
}
