package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder/source/codehost"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/operator"
	"gridcast/snapshots/blob/dirblob"
)

// TestSourceCommands goes through June 2026 with the real binary and F1DB's real history: facts are
// pulled, a correction with wrong points waits, a person sees why and lets it through.
func TestSourceCommands(t *testing.T) {
	t.Parallel() // most of it waits
	release := sourcetest.Path(t, sourcetest.F1DB2026)
	now := time.Date(2026, 6, 7, 20, 0, 0, 0, time.UTC) // Monaco was raced
	host := codehost.New(t, sourcetest.Path(t, sourcetest.F1DBHistory), func() time.Time { return now })
	dir := t.TempDir()
	inProcess := func(args []string, complaints io.Writer) int { return run(t.Context(), args, io.Discard, complaints) }
	run := func(args ...string) string {
		t.Helper()
		switch args[1] {
		case "trace":
			return gridcast(t, dir, append(args, "--store", "dir:store")...)
		case "import":
			return gridcast(t, dir, append(args, "--store", "dir:store", "--yes")...)
		}
		return gridcast(t, dir, append(args, "--store", "dir:store", "--now", now.Format(time.RFC3339), "--source", "f1db="+host.URL)...)
	}
	run("archive", "import", "f1db", release, "--from", "2020", "--to", "2025")
	first := run("source", "pull")
	for _, want := range []string{"2026 monaco, result, by f1db", "2026 miami, start, by f1db"} {
		if !strings.Contains(first, want) {
			t.Errorf("the first pull does not say %q:\n%s", want, first)
		}
	}
	if again := run("source", "pull"); !strings.Contains(again, "Nothing new.") {
		t.Errorf("the second pull found something new:\n%s", again)
	}
	requests, archives := host.Served()
	if requests != 2 || archives != 1 {
		t.Errorf("%d requests took %d archives, want 2 and 1", requests, archives)
	}

	gridcast(t, dir, "build", "--store", "dir:store", "--now", now.Format(time.RFC3339))
	if trace := run("source", "trace", "2026006"); !strings.Contains(trace, "result") || !strings.Contains(trace, "f1db") {
		t.Errorf("trace of Monaco:\n%s", trace)
	}

	now = time.Date(2026, 6, 12, 16, 0, 0, 0, time.UTC) // Gasly has the podium back, and P6 nine points
	if waits := run("source", "pull"); !strings.Contains(waits, "points: race: P6 liam-lawson has 9 points, want 8") {
		t.Errorf("the wrong points do not wait:\n%s", waits)
	}
	var checked []checkedSource
	if err := json.Unmarshal([]byte(run("source", "check", "--json")), &checked); err != nil {
		t.Fatal(err)
	}
	if len(checked) != 1 || len(checked[0].Held) != 1 {
		t.Fatalf("source check: got %+v, want one source with one change that waits", checked)
	}
	if want := time.Date(2026, 6, 14, 13, 0, 0, 0, time.UTC); !checked[0].NextStart.Equal(want) || !checked[0].SaysStart.Equal(want) {
		t.Errorf("source check: the next race starts at %s, by the source at %s; want %s", checked[0].NextStart, checked[0].SaysStart, want)
	}
	id := checked[0].Held[0].ID
	if table := run("source", "check"); !strings.Contains(table, id) || !strings.Contains(table, "pierre-gasly") ||
		!strings.Contains(table, "The next race, the Barcelona-Catalunya Grand Prix, starts at 2026-06-14 13:00 UTC.") {
		t.Errorf("source check does not show what waits:\n%s", table)
	}
	refused(t, []string{"no such change is held", id}, "source", "accept", "000000000000", "--yes", "--reason", "x",
		"--store", "dir:"+dir+"/store", "--now", now.Format(time.RFC3339), "--source", "f1db="+host.URL)
	var asked bytes.Buffer
	status := inProcess([]string{
		"source", "accept", id, "--reason", "seen on the timing page",
		"--store", "dir:" + dir + "/store", "--now", now.Format(time.RFC3339), "--source", "f1db=" + host.URL,
	}, &asked)
	for _, want := range []string{
		"Accept the result of monaco 2026 from f1db", "pierre-gasly", "The gate points holds it", "Apply this change?", "confirm with --yes",
	} {
		if !strings.Contains(asked.String(), want) {
			t.Errorf("before a change is let through it does not say %q:\n%s", want, asked.String())
		}
	}
	if status != exitUsage {
		t.Errorf("nobody said yes, and the exit status is %d", status)
	}
	audited := func() []auditlog.AuditLine {
		t.Helper()
		store, err := dirblob.Open(filepath.Join(dir, "store"))
		if err != nil {
			t.Fatal(err)
		}
		log, err := auditlog.Load(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(log.Entries(), func(e auditlog.AuditLine) bool { return e.Action != auditlog.AcceptChange })
	}
	if entries := audited(); len(entries) != 0 {
		t.Errorf("nobody said yes, and the audit log has %+v", entries)
	}
	if taken := run("source", "accept", id, "--yes", "--reason", "seen on the timing page"); !strings.Contains(taken, "The result of monaco 2026 is what f1db says.") {
		t.Errorf("accept: %s", taken)
	}
	if entries := audited(); len(entries) != 1 || entries[0].Subject != id || entries[0].Reason != "seen on the timing page" || !strings.HasPrefix(entries[0].Actor, operator.Claimed) {
		t.Errorf("the audit log has %+v of what was let through", entries)
	}
	if trace := run("source", "trace", "2026006"); !strings.Contains(trace, "a person") {
		t.Errorf("trace does not name the person:\n%s", trace)
	}
	if quiet := run("source", "pull"); !strings.Contains(quiet, "Nothing new.") {
		t.Errorf("what was accepted did not stay:\n%s", quiet)
	}

	// A season without most of its races is not believed, until a person says that it is right.
	now = now.Add(time.Hour)
	host.Edit(codehost.Edit{At: now, Change: func(files map[string][]byte) {
		maps.DeleteFunc(files, func(name string, _ []byte) bool { return strings.HasPrefix(name, "src/data/seasons/2026/races/1") })
	}})
	here := func(args ...string) (status int, complaints string) {
		var said bytes.Buffer
		args = append(args, "--store", "dir:"+dir+"/store", "--now", now.Format(time.RFC3339), "--source", "f1db="+host.URL)
		return inProcess(args, &said), said.String()
	}
	if status, said := here("source", "pull"); status != exitFailed || !strings.Contains(said, "lacks 10 of the") {
		t.Errorf("most of a season is gone: status %d, %s", status, said)
	}
	if err := json.Unmarshal([]byte(run("source", "check", "--json")), &checked); err != nil {
		t.Fatal(err)
	}
	if len(checked[0].Held) != 1 {
		t.Fatalf("there wait %+v, want the loss", checked[0].Held)
	}
	id = checked[0].Held[0].ID
	if table := run("source", "check"); !strings.Contains(table, id+"  2026, calendar, by f1db") {
		t.Errorf("source check does not show what waits:\n%s", table)
	}
	status, said := here("source", "accept", id, "--reason", "the season ends in Madrid")
	for _, want := range []string{
		"Accept the calendar of the season 2026 from f1db", "netherlands: no longer on 2026-08-23", "10 are to come", "The gate shrunken holds it", "confirm with --yes",
	} {
		if status != exitUsage || !strings.Contains(said, want) {
			t.Errorf("before it is let through, status %d, it does not say %q:\n%s", status, want, said)
		}
	}
	if taken := run("source", "accept", id, "--yes", "--reason", "the season ends in Madrid"); !strings.Contains(taken, "The calendar of the season 2026 is what f1db says.") {
		t.Errorf("accept: %s", taken)
	}
	if entries := audited(); len(entries) != 2 || entries[1].Subject != id {
		t.Errorf("the audit log has %+v of what was let through", entries)
	}
	// A day and a revision later it is not held again, and the rounds are off.
	now = now.Add(25 * time.Hour)
	host.Edit(codehost.Edit{At: now, Change: func(files map[string][]byte) { files["src/data/note"] = nil }})
	run("source", "pull")
	if list := gridcast(t, dir, "rounds", "list", "--store", "dir:store", "--now", now.Format(time.RFC3339)); strings.Count(list, " postponed ") != 10 {
		t.Errorf("a day later, want 10 rounds postponed:\n%s", list)
	}
}

// TestStartSays: a start that is another than that in use says by how much.
func TestStartSays(t *testing.T) {
	inUse := time.Date(2026, 5, 3, 20, 0, 0, 0, time.UTC)
	for said, want := range map[time.Time]string{
		{}:                           "",
		inUse:                        "2026-05-03 20:00 UTC",
		inUse.Add(235 * time.Second): "2026-05-03 20:03 UTC",
		inUse.Add(-3 * time.Hour):    "2026-05-03 17:00 UTC, 3h0m0s early",
		inUse.Add(24 * time.Hour):    "2026-05-04 20:00 UTC, 24h0m0s late",
	} {
		c := checkedSource{NextStart: inUse, SaysStart: said}
		if got := c.startCell(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
