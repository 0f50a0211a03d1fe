package main

import (
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gridcast/builder/source/codehost"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/clock"
	"gridcast/schemas/wire"
	"gridcast/snapshots/blob/porttest"
)

// pastWeekend is the real binary on a weekend that was, which asks a code host for the commit of
// that moment of race time. Quiet hours are left out: the server is told to stop, and started again
// with a later race clock.
type pastWeekend struct {
	dir, key string
	admin    string // address of its metrics
	clock    atomic.Pointer[clock.Clock]
	host     *codehost.Host
	server   *process
	api      *client
}

// historyBase is an archive of the season before those of which F1DB's history tells.
func historyBase(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "base.archive")
	gridcast(t, t.TempDir(), "archive", "import", "f1db", sourcetest.Path(t, sourcetest.F1DB2024), "--from", "2024", "--to", "2024", "--archive", path)
	return path
}

// startPastWeekend makes a store that knows what the source said up to an instant of race time, and
// whose ledger is opened then.
func startPastWeekend(t *testing.T, base, at string) *pastWeekend {
	t.Helper()
	w := &pastWeekend{dir: t.TempDir()}
	w.set(t, at, 1e-9) // it stands still
	w.host = codehost.New(t, sourcetest.Path(t, sourcetest.F1DBHistory), func() time.Time { return w.clock.Load().Now() })
	gridcast(t, w.dir, "build", "--store", "dir:store", "--archive", base, "--now", at)
	gridcast(t, w.dir, "source", "pull", "--store", "dir:store", "--source", "f1db="+w.host.URL, "--now", at)
	w.key = newKey(t, w.dir, "dir:store", "pro")
	return w
}

// set has race time begin at an instant, as fast as told.
func (w *pastWeekend) set(t *testing.T, at string, speed float64) clock.Clock {
	t.Helper()
	from, err := time.Parse(time.RFC3339, at)
	if err != nil {
		t.Fatal(err)
	}
	c, err := clock.At(from, time.Now(), speed)
	if err != nil {
		t.Fatal(err)
	}
	w.clock.Store(&c)
	return c
}

// run goes on at a later instant.
func (w *pastWeekend) run(t *testing.T, at string) {
	t.Helper()
	if w.server != nil {
		w.server.end(t)
	}
	w.admin = porttest.Address(t)
	w.server = startServer(t, w.dir, "serve", "--store", "dir:store", "--source", "f1db="+w.host.URL, "--admin-listen", w.admin,
		"--auto-verify-after", "10m", "--auto-revise-after", "10m", "--race-clock", w.set(t, at, 300).String())
	w.api = newClient(w.server.url, w.key)
}

// await looks until the condition holds, seldom enough for the key's limit.
func (w *pastWeekend) await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	began := time.Now()
	for !condition() {
		if time.Since(began) > 3*time.Minute {
			t.Fatalf("not after three minutes, at %s of race time: %s\n%s", w.clock.Load().Now().Format(time.DateTime), what, w.server.output.String())
		}
		time.Sleep(150 * time.Millisecond) // a real process: there is no clock to inject
	}
	t.Logf("%s after %4.1f s: %s", w.clock.Load().Now().Format(time.DateTime), time.Since(began).Seconds(), what)
}

// logged reports whether the server has printed a line with all the parts since it runs.
func (w *pastWeekend) logged(parts ...string) bool {
	for line := range strings.Lines(w.server.output.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			return true
		}
	}
	return false
}

// driverAt is who has a position of the published race of a session.
func (w *pastWeekend) driverAt(t *testing.T, session string, position int) string {
	t.Helper()
	_, _, result := w.record(t, session)
	for _, row := range result.Race {
		if row.Position == position {
			return row.Driver
		}
	}
	return ""
}

// one returns the only row about a session; none if it is not there yet.
func one[T any](t *testing.T, c *client, path string) (row T, ok bool) {
	t.Helper()
	rows := data[[]T](t, c.get(t, path))
	if len(rows) == 0 {
		return row, false
	}
	return rows[0], true
}

// record returns what is published of a session's pick and result.
func (w *pastWeekend) record(t *testing.T, session string) (wire.PredictionRecord, wire.ProbabilityRecord, wire.ResultRecord) {
	t.Helper()
	prediction, _ := one[wire.PredictionRecord](t, w.api, "/predictions?session_key="+session)
	chances, _ := one[wire.ProbabilityRecord](t, w.api, "/probabilities?session_key="+session)
	result, _ := one[wire.ResultRecord](t, w.api, "/results?session_key="+session)
	return prediction, chances, result
}

// scored holds a published record against what is known of the race.
func (w *pastWeekend) scored(t *testing.T, session string, pick wire.Prediction, podium wire.Podium, revisions int) {
	t.Helper()
	p, chances, result := w.record(t, session)
	if p.Prediction != pick || chances.Basis != "qualifying" {
		t.Errorf("%s: the pick is %+v on %s, want the frozen %+v on qualifying", session, p.Prediction, chances.Basis, pick)
	}
	if p.Result == nil || p.Result.Podium != podium || p.WinnerHit == nil || *p.WinnerHit != (pick.Winner == podium.P1) {
		t.Errorf("%s: the record is %+v, want the podium %+v and whether the pick was right", session, p, podium)
	}
	if len(result.Revisions) != revisions || slices.ContainsFunc(result.Revisions, func(r wire.Revision) bool { return r.By != "rule" }) {
		t.Errorf("%s: the revisions are %+v, want %d, by rule", session, result.Revisions, revisions)
	}
}

// TestRealWeekends runs the real binary through two weekends, 300 times as fast as they were, from
// F1DB's repository as it was at each moment: Las Vegas 2025, which the source moved into the past on
// race day, and Miami 2026, which started three hours earlier than anybody had known the day before.
func TestRealWeekends(t *testing.T) {
	if testing.Short() {
		t.Skip("short: runs two weekends")
	}
	t.Parallel() // most of it waits
	sourcetest.Path(t, sourcetest.F1DBHistory)
	base := historyBase(t)
	t.Run("Las Vegas 2025", func(t *testing.T) {
		t.Parallel()
		const session, start = 2025022, "2025-11-23T04:00:00Z"
		w := startPastWeekend(t, base, "2025-11-22T14:00:00Z")
		lasVegas := func() wire.CalendarEntry { return entry(t, w.api, session) }
		// The commit of 14:52 brings qualifying, and with it a start of the day before.
		w.run(t, "2025-11-22T14:50:00Z")
		w.await(t, "the start that is in the past waits for a person", func() bool {
			return w.logged("facts wait for a person", "grand_prix=las-vegas", "gate=start")
		})
		if e := lasVegas(); time.Time(e.DateStart).UTC().Format(time.RFC3339) != start || e.Status != wire.Scheduled {
			t.Errorf("the source moved Las Vegas into the past, and the calendar says %+v", e)
		}
		w.run(t, "2025-11-22T16:50:00Z") // qualifying has stood for two hours at 16:52
		w.await(t, "the pick is frozen", func() bool { return data[wire.NextRace](t, w.api.get(t, "/next-race")).Prediction != nil })
		next := data[wire.NextRace](t, w.api.get(t, "/next-race"))
		if next.Name != "Las Vegas Grand Prix" || time.Time(next.DateStart).UTC().Format(time.RFC3339) != start {
			t.Errorf("the next race is %+v, want Las Vegas at %s", next, start)
		}
		w.run(t, "2025-11-23T03:58:00Z")
		w.await(t, "lights out", func() bool { return lasVegas().Status == wire.Live })
		w.run(t, "2025-11-23T12:44:00Z") // the result is there at 12:45
		w.await(t, "the result waits", func() bool { return w.logged("facts taken", "grand_prix=las-vegas", "block=result") })
		w.await(t, "the result has verified itself", func() bool { return lasVegas().Status == wire.Finished })
		w.scored(t, "2025022", *next.Prediction, wire.Podium{P1: "VER", P2: "RUS", P3: "ANT"}, 1)
		metrics := exposed(t, w.admin)
		for _, name := range metricsOfSources {
			if !strings.Contains(metrics, "\n"+name+`{source="f1db"} `) {
				t.Errorf("not exposed of a source: %s", name)
			}
		}
	})
	t.Run("Miami 2026", func(t *testing.T) {
		t.Parallel()
		const session, start = 2026004, "2026-05-03T17:00:00Z"
		w := startPastWeekend(t, base, "2026-05-02T21:00:00Z")
		miami := func() wire.CalendarEntry { return entry(t, w.api, session) }
		w.run(t, "2026-05-02T21:52:00Z") // the commit of 21:53 brings qualifying
		w.await(t, "qualifying is there", func() bool { return w.logged("facts taken", "grand_prix=miami", "block=qualifying") })
		if e := miami(); time.Time(e.DateStart).UTC().Format(time.RFC3339) != "2026-05-03T20:00:00Z" {
			t.Errorf("on the day before, Miami is to start at 20:00 UTC, and the calendar says %+v", e)
		}
		w.run(t, "2026-05-02T23:51:00Z") // it has stood for two hours at 23:53
		w.await(t, "the pick is frozen", func() bool { return data[wire.NextRace](t, w.api.get(t, "/next-race")).Prediction != nil })
		pick := *data[wire.NextRace](t, w.api.get(t, "/next-race")).Prediction
		w.run(t, "2026-05-03T08:47:00Z") // the commit of 08:49 has the start three hours earlier
		w.await(t, "the start has moved", func() bool { return time.Time(miami().DateStart).UTC().Format(time.RFC3339) == start })
		if next := data[wire.NextRace](t, w.api.get(t, "/next-race")); next.Prediction == nil || *next.Prediction != pick {
			t.Errorf("after the move the next race is %+v, want the pick %+v as it was", next, pick)
		}
		w.run(t, "2026-05-03T16:58:00Z")
		w.await(t, "lights out", func() bool { return miami().Status == wire.Live })
		w.run(t, "2026-05-03T21:03:00Z") // the result is there at 21:04
		w.await(t, "the result waits", func() bool { return w.logged("facts taken", "grand_prix=miami", "block=result") })
		w.await(t, "the result has verified itself", func() bool { return miami().Status == wire.Finished })
		podium := wire.Podium{P1: "ANT", P2: "NOR", P3: "PIA"}
		w.scored(t, "2026004", pick, podium, 1)
		if sixth := w.driverAt(t, "2026004", 6); sixth != "LEC" {
			t.Errorf("sixth is %s, want LEC", sixth)
		}
		// The penalties of the next morning came with positions that did not fit; the commit of 11:01 has them right.
		w.run(t, "2026-05-05T10:59:00Z")
		w.await(t, "the correction is there", func() bool { return w.logged("facts taken", "grand_prix=miami", "block=result") })
		w.await(t, "the result has revised itself", func() bool { return w.driverAt(t, "2026004", 6) == "HAM" })
		w.scored(t, "2026004", pick, podium, 2)
	})
}
