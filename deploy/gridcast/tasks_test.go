package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/schemas/docs"
	"gridcast/schemas/wire"
)

// readersSite is the reader's server: it serves a program of the documentation as a page, and answers /racing/api/v1/ as its
// proxy does.
func readersSite(t *testing.T, page string, api http.Handler) (address string) {
	t.Helper()
	mux := http.NewServeMux()
	for _, task := range docs.Tasks() {
		if task.Page == page {
			mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(strings.Replace(task.Program.Text, `<script type="module">`, `<script>window.later = setTimeout; setTimeout = (f, ms) => later(f, ms / 50)</script><script type="module">`, 1)))
			})
		}
	}
	mux.Handle("/racing/", http.StripPrefix("/racing", api))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// withKey passes requests on to a service, with a key.
func withKey(t *testing.T, service, key string) http.Handler {
	t.Helper()
	target := must.Get(url.Parse(service))(t)
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Set("X-API-Key", key)
	}}
}

// taskPage opens a page and checks it at the width of a phone. With -update it keeps the picture that the documentation shows.
func taskPage(t *testing.T, b *browsertest.Browser, page string) {
	t.Helper()
	for _, task := range docs.Tasks() {
		if task.Page != page {
			continue
		}
		if f := flag.Lookup("update"); f.Value.String() == "true" {
			must.Do(t, os.WriteFile("../../schemas/docs/samples/"+page+".webp", b.WebP(int64(task.Width), int64(task.Height)), 0o600))
		}
	}
	b.Phone()
	must.Equal(t, page+": wider than a phone", "false", b.Evaluate(`document.documentElement.scrollWidth > innerWidth`))
}

// runTasks opens the pages that readers are shown, as files of a server with a key of its own, and runs the programs for
// a shell.
func runTasks(t *testing.T, d demo) {
	t.Run("site", func(t *testing.T) {
		b := browsertest.Open(t)
		b.Do(chromedp.Navigate(readersSite(t, "site", withKey(t, d.url, d.keys["pro"]))))
		b.Await(`document.getElementById("race").textContent`, "Las Vegas Grand Prix")
		b.Await(`/^\d d \d+ h \d+ min \d+ s$/.test(document.getElementById("clock").textContent)`, "true")
		b.Await(`[...document.querySelectorAll("#standings tr")].map((row) => row.textContent).slice(0, 2).join()`, "1Max VerstappenRed Bull393,2Lando NorrisMcLaren331")
		b.Await(`document.querySelector("#standings tr").style.getPropertyValue("--team")`, "#3671C6")
		taskPage(t, b, "site")
	})
	t.Run("who-wins", func(t *testing.T) {
		b := browsertest.Open(t)
		b.Do(chromedp.Navigate(readersSite(t, "who-wins", withKey(t, d.url, d.keys["pro"]))))
		b.Await(`document.getElementById("race").textContent`, "Who wins the Las Vegas Grand Prix?")
		b.Await(`[...document.querySelectorAll(".bar")].length`, "8")
		b.Await(`/^Of \d+ picks that were frozen before their race, [\d.]+ % won \(95 % interval: [\d.]+ to [\d.]+\)\. The car on pole won [\d.]+ %\.$/.test(document.getElementById("record").textContent)`, "true")
		taskPage(t, b, "who-wins")
	})
	var env []string // of the programs
	shell := func(t *testing.T, dir, file, command string, args ...string) string {
		t.Helper()
		for _, s := range append(docs.Database(), docs.Settle()) {
			must.Do(t, os.WriteFile(filepath.Join(dir, s.File), []byte(s.Text), 0o600))
		}
		if _, err := exec.LookPath(command); err != nil {
			t.Skipf("%s does not run: no %s on this machine", file, command)
		}
		cmd := exec.Command(command, append(args, file)...)
		cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "GRIDCAST_URL="+d.url, "GRIDCAST_KEY="+d.keys["pro"]), env...)
		printed, err := cmd.CombinedOutput()
		must.Require(t, err == nil, "%s: %v:\n%s", file, err, printed)
		return string(printed)
	}
	t.Run("settle", func(t *testing.T) {
		golden.File(t, "../../schemas/docs/samples/settle.txt", shell(t, t.TempDir(), "settle.py", "python3"))
		for picks, want := range map[string]string{ // before the first pick, and before its result
			`[]`: "no pick is frozen yet\n",
			`[{"session_key":2026001,"gp_name":"Australian Grand Prix","prediction":{}}]`: "Australian Grand Prix: open\n",
		} {
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				data := "[]"
				if r.URL.Path == "/api/v1/predictions" {
					data = picks
				}
				_, _ = fmt.Fprintf(w, `{"ok":true,"data":%s}`, data)
			}))
			env = []string{"GRIDCAST_URL=" + service.URL}
			must.Equal(t, "without a result", want, shell(t, t.TempDir(), "settle.py", "python3"))
			service.Close()
		}
		env = nil
	})
	t.Run("database", func(t *testing.T) {
		dir := t.TempDir()
		shell(t, dir, "seasons.sh", "sh")
		t.Run("duckdb", func(t *testing.T) {
			env = duckdb(t)
			golden.File(t, "../../schemas/docs/samples/wins.txt", shell(t, dir, "duckdb.sh", "sh"))
			must.Do(t, os.WriteFile(filepath.Join(dir, "types.sql"), []byte(typesOfColumns), 0o600))
			got := shell(t, dir, "types.sql", "sh", "-c", `duckdb -csv f1.duckdb <"$0"`)
			must.Equal(t, "types of the columns, as columns.csv has them", "said,made\ninstant,TIMESTAMP WITH TIME ZONE\ninteger,BIGINT\nintegers,VARCHAR\nnumber,DOUBLE\nnumbers,VARCHAR\ntext,DATE\ntext,VARCHAR\ntexts,VARCHAR\ntrue or false,BOOLEAN\n", got)
		})
		t.Run("sqlite3", func(t *testing.T) {
			if _, err := exec.LookPath("sqlite3"); err != nil {
				t.Skip("wins.sql does not run in SQLite: no sqlite3 on this machine")
			}
			must.Do(t, os.WriteFile(filepath.Join(dir, "load.sh"), []byte(loadSQLite), 0o600))
			golden.File(t, "../../schemas/docs/samples/wins.txt", shell(t, dir, "load.sh", "sh"))
		})
		// A run fetches a season only if it has changed: not this one, once the service has made its last file, but one with
		// another tag.
		written := func(file string) time.Time { return must.Get(os.Stat(filepath.Join(dir, file)))(t).ModTime() }
		must.Until(t, "a run leaves the season 2007 alone", func() bool {
			before := written("season-2007.zip")
			shell(t, dir, "seasons.sh", "sh")
			return written("season-2007.zip").Equal(before)
		})
		must.Do(t, os.WriteFile(filepath.Join(dir, "season-2022.etag"), []byte(`"another"`), 0o600))
		before := written("season-2022.zip")
		shell(t, dir, "seasons.sh", "sh")
		must.Hold(t, written("season-2022.zip").After(before), "the season 2022 was not fetched, though the service has one with another tag")
	})
}

// duckdb returns variables with which programs find duckdb: the installed one, or else a program of the same name that uses the
// library of npm.
func duckdb(t *testing.T) (env []string) {
	t.Helper()
	if _, err := exec.LookPath("duckdb"); err == nil {
		return nil
	}
	modules := must.Get(filepath.Abs("../../.var/node/node_modules"))(t)
	_, noNode := exec.LookPath("node")
	if _, err := os.Stat(filepath.Join(modules, "@duckdb/node-api")); err != nil || noNode != nil {
		t.Skip("duckdb.sh does not run: neither duckdb nor its library is on this machine; deploy/tools/npm.sh installs the library")
	}
	bin := t.TempDir()
	program := fmt.Sprintf("#!/bin/sh\nexec node '%s' \"$@\"\n", must.Get(filepath.Abs("../tools/duckdb.mjs"))(t))
	must.Do(t, os.WriteFile(filepath.Join(bin, "duckdb"), []byte(program), 0o700))
	return []string{"GRIDCAST_NODE_MODULES=" + modules, "PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH")}
}

// typesOfColumns lists the types that columns.csv names, with the types of these columns in the database.
const typesOfColumns = `SELECT DISTINCT c.type AS said, i.data_type AS made
FROM information_schema.columns i JOIN columns c ON c.file = i.table_name || '.csv' AND c."column" = i.column_name ORDER BY ALL;
`

// loadSQLite does in SQLite what duckdb.sh does, for the table of wins.sql.
const loadSQLite = `for folder in gridcast-*; do
  printf '.import --csv %s/results.csv season_%s\n' "$folder" "${folder#gridcast-}"
done | sqlite3 f1.sqlite
rows=$(for folder in gridcast-*; do year=${folder#gridcast-}
  printf 'UNION ALL SELECT %s AS season, driver_id, name, CAST(position AS INT) AS position FROM season_%s ' "$year" "$year"; done)
sqlite3 f1.sqlite "CREATE TABLE results AS ${rows#UNION ALL }"
sqlite3 -csv -header f1.sqlite <wins.sql | tr -d '\r"'
`

// TestRaceDayPage shows the page of a race day every state of /live, as a race passes through them, and looks for its
// words. The clock of the service decides what is stale; the browser's clock is years away from it.
func TestRaceDayPage(t *testing.T) {
	at := time.Date(2024, 11, 24, 6, 40, 0, 0, time.UTC)
	gap, leader, second := 7012, wire.Percent(562), wire.Percent(150)
	race := wire.LiveRace{
		State: wire.LiveRunning, Provisional: true, SessionKey: 2024022, GPName: "Las Vegas Grand Prix", Lap: 31, Laps: 50,
		ObservedAt: wire.Instant(at), ValidUntil: wire.Instant(at.Add(3 * time.Minute)),
		Order: []wire.LiveCar{
			{Position: 1, Driver: "RUS", DriverID: "george-russell", WinPct: &leader},
			{Position: 2, Driver: "HAM", DriverID: "lewis-hamilton", GapMS: &gap, WinPct: &second},
			{Position: 3, Driver: "SAI", DriverID: "carlos-sainz-jr", GapLaps: 1},
			{Driver: "GAS", DriverID: "pierre-gasly", Out: true},
		},
	}
	for i, driver := range []string{"VER", "NOR", "PIA", "LEC", "HUL", "TSU", "PER"} {
		race.Order = slices.Insert(race.Order, 3+i, wire.LiveCar{Position: 4 + i, Driver: driver, DriverID: driver, GapLaps: 1})
	}
	type answer struct {
		status    int
		at        time.Time
		race      wire.LiveRace
		revisions []wire.Revision
	}
	var now atomic.Pointer[answer]
	var refused atomic.Int64
	b := browsertest.Open(t)
	address := readersSite(t, "race-day", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := now.Load()
		w.Header().Set("Date", a.at.Format(http.TimeFormat))
		switch {
		case a.status != http.StatusOK:
			refused.Add(1)
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(a.status)
		case strings.HasPrefix(r.URL.Path, "/api/v1/results"):
			_ = json.NewEncoder(w).Encode(map[string]any{"ok": true, "data": []wire.ResultRecord{{SessionKey: 2024022, Revisions: a.revisions}}})
		default:
			_ = json.NewEncoder(w).Encode(map[string]any{"ok": true, "data": a.race})
		}
	}))
	is := func(state wire.LiveState, change func(*answer)) {
		a := answer{status: http.StatusOK, at: at.Add(time.Minute), race: race}
		if a.race.State = state; change != nil {
			change(&a)
		}
		now.Store(&a)
	}
	const shown = `document.getElementById("state").className + ": " + document.getElementById("state").textContent.replace(/\d\d:\d\d/, "HH:MM")`
	const order = `[...document.querySelectorAll("#order tr")].map((row) => row.textContent).join()`
	later := func(a *answer) { a.at = at.Add(time.Hour) }
	official := func(a *answer) { a.race.Provisional, a.race.ValidUntil = false, wire.Instant{} }
	for i, tt := range []struct {
		state  wire.LiveState
		change func(*answer)
		want   string
	}{
		{wire.LiveNone, func(a *answer) { a.race = wire.LiveRace{State: wire.LiveNone} }, "none: No race is near."},
		{wire.LiveWaiting, func(a *answer) { a.race.ObservedAt, a.race.ValidUntil = wire.Instant{}, wire.Instant{} }, "waiting: The grid stands. The race has not begun."},
		{wire.LiveRunning, nil, "running: Lap 31 of 50"},
		{wire.LiveRunning, later, "silent: No news since HH:MM. The order may have changed."},
		{wire.LiveRunning, nil, "running: Lap 31 of 50"},
		{wire.LiveSuspended, nil, "suspended: Red flag after lap 31. The race may go on."},
		{wire.LiveSuspended, later, "silent: No news since HH:MM. The order may have changed."},
		{wire.LiveRunning, func(a *answer) { a.race.Lap = 32 }, "running: Lap 32 of 50"}, // the next day, perhaps
		{"red_flag_parade", nil, "unknown: Racing is under way."},
		{wire.LiveOver, func(a *answer) { later(a); a.race.ValidUntil = wire.Instant{} }, "over: The flag has fallen. The order is provisional."},
		{wire.LiveOver, func(a *answer) { official(a); a.revisions = []wire.Revision{{Revision: 1}} }, "over: The result is official."},
		{wire.LiveOver, func(a *answer) {
			official(a)
			a.revisions = []wire.Revision{{Revision: 1}, {Revision: 2, Reason: "car 63 was too light"}}
		}, "over: The result is official. Corrected: car 63 was too light."},
	} {
		if is(tt.state, tt.change); i == 0 {
			b.Do(chromedp.Navigate(address))
		}
		b.Await(shown, tt.want)
		if tt.state == wire.LiveSuspended && tt.change == nil {
			b.Await(order, "1RUS56.2 %,2HAM+7.015.0 %,3SAI+1 lap,4VER+1 lap,5NOR+1 lap,6PIA+1 lap,7LEC+1 lap,8HUL+1 lap,9TSU+1 lap,10PER+1 lap,GASout")
			taskPage(t, b, "race-day")
		}
	}
	// While the service refuses requests the last order stays.
	is(wire.LiveOver, func(a *answer) { a.status = http.StatusServiceUnavailable })
	must.Until(t, "the page has asked a refusing service twice", func() bool { return refused.Load() > 1 })
	must.Equal(t, "rows while the service refuses", "11", b.Evaluate(`document.querySelectorAll("#order tr").length`))
}
