package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/season"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/dirblob"
)

// silentSaturday is an archive of two seasons up to the Saturday noon of Las Vegas 2024, of which
// nothing is known but when it is.
func silentSaturday(t *testing.T, dir string) string {
	t.Helper()
	facts := archivetest.Seasons(t, 2023, 2024)
	facts.Lineages, facts.Headshots = nil, season.Headshots{}
	rounds := facts.Seasons[1].Rounds
	for i, r := range rounds {
		if r.Number >= 22 {
			rounds[i] = season.Round{
				Number: r.Number, GrandPrix: r.GrandPrix, Name: r.Name, Circuit: r.Circuit, Street: r.Street, CourseKm: r.CourseKm,
				ScheduledLaps: r.ScheduledLaps, Date: r.Date, Start: r.Start, Sprint: r.Sprint, Sessions: r.Sessions,
			}
		}
	}
	path := filepath.Join(dir, "saturday.archive")
	if err := os.WriteFile(path, archivetest.File(t, facts), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWeekendByHand: every source fails on Saturday noon, and one person carries the weekend to a
// verified result by the command line alone.
func TestWeekendByHand(t *testing.T) {
	if testing.Short() {
		t.Skip("short: a weekend of builds")
	}
	dir := t.TempDir()
	store := "dir:" + filepath.Join(dir, "store")
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = nobody.Close()
	now := time.Date(2024, 11, 23, 12, 0, 0, 0, time.UTC) // qualifying was at 06:00
	attempt := func(args ...string) (status int, stdout, stderr string) {
		t.Helper()
		var out, complaints bytes.Buffer
		status = run(t.Context(), append(args, "--store", store, "--now", now.Format(time.RFC3339)), &out, &complaints)
		return status, out.String(), complaints.String()
	}
	do := func(args ...string) string {
		t.Helper()
		status, out, complaints := attempt(args...)
		if status != exitDone {
			t.Fatalf("gridcast %s: status %d: %s", strings.Join(args, " "), status, complaints)
		}
		return out + complaints
	}
	refused := func(want []string, args ...string) {
		t.Helper()
		status, _, complaints := attempt(args...)
		for _, part := range want {
			if status == exitDone || !strings.Contains(complaints, part) {
				t.Errorf("gridcast %s: status %d, it does not say %q:\n%s", strings.Join(args, " "), status, part, complaints)
			}
		}
	}
	says := func(text string, want ...string) {
		t.Helper()
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("it does not say %q:\n%s", part, text)
			}
		}
	}
	const key = "2024022"
	by := []string{"--source", "f1db=http://" + nobody.Addr().String() + "/f1db.tar.gz"}
	action := func(args ...string) []string {
		return append(append(args, "--yes", "--by", "anna", "--reason", "every source is down"), by...)
	}
	do("build", "--archive", silentSaturday(t, dir), "--model", "grid-frequency")
	refused([]string{"f1db"}, append([]string{"source", "pull"}, by...)...)

	// The form is filled with what is known; a slip of the finger is named, with its line.
	template := do(append([]string{"qualifying", "set", key, "--template"}, by...)...)
	says(template, "# Qualifying of the Las Vegas Grand Prix of 2024", "VER  # Max Verstappen, Red Bull, 1", "COL  # Franco Colapinto, Williams, 43")
	refused([]string{"line 1", `"RSU"`, "RUS (George Russell)?"}, action("qualifying", "set", key, "--order", "RSU,SAI,GAS")...)
	order := "RUS SAI GAS LEC VER NOR TSU PIA HUL HAM OCO MAG ZHO COL LAW ALO STR BOT ALB PER"
	file := filepath.Join(dir, "qualifying.txt")
	if err := os.WriteFile(file, []byte("\ufeff# as shown on television\r\n"+strings.ReplaceAll(order, " ", "\r\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	said := do(action("qualifying", "set", key, "--file", file)...)
	says(said, "Enter the qualifying of the Las Vegas Grand Prix of 2024", "In order: RUS SAI GAS LEC", "Qualifying of 20 drivers", "The pick is made at 23 November 2024 14:00 UTC, on qualifying: RUS", "published variants change", "The qualifying of the Las Vegas Grand Prix of 2024 is what you entered")

	now = now.Add(time.Hour)
	refused([]string{"not entered in this round: RIC", "gridcast entries set 2024022"}, action("grid", "set", key, "--order", "VER RIC")...)
	// One driver is replaced by another who was never there, one by one who drove before.
	entries := "VER PER\nHAM RUS LEC SAI NOR PIA ALO STR GAS OCO ALB COL TSU MAG HUL BOT\nLAW\nANT = Kimi Antonelli, ITA, Kick Sauber, 12"
	if err := os.WriteFile(file, []byte(entries), 0o600); err != nil {
		t.Fatal(err)
	}
	says(do(action("entries", "set", key, "--file", file)...), "ZHO out", "The entries of the Las Vegas Grand Prix of 2024 are those that you entered")
	grid := strings.NewReplacer("ZHO ", "ANT ").Replace(order)
	says(do(action("grid", "set", key, "--order", grid)...), "The pick is made at once, on the grid: RUS")
	built := do("build", "--model", "grid-frequency")
	says(built, "pick_frozen 2024022")
	says(do(action("grid", "set", key, "--order", grid)...), "It is what is in use already", "The pick RUS")
	says(do(append([]string{"facts", "list"}, by...)...), "2024022", "qualifying", "grid", "entries", "claimed:anna", "no source says anything of it")
	trace := gridcastHere(t, "source", "trace", key, "--store", store)
	says(trace, "grid", "entered by hand", "claimed:anna: every source is down")

	// A source will call the new driver otherwise; two who drive side by side are never one.
	refused([]string{`the archive knows no driver "antonelli"`, "near it stand"}, action("source", "alias", "andrea-kimi-antonelli", "antonelli")...)
	refused([]string{"cannot be one"}, action("source", "alias", "lando-norris", "max-verstappen")...)
	says(do(action("source", "alias", "andrea-kimi-antonelli", "kimi-antonelli")...), "andrea-kimi-antonelli is kimi-antonelli.")
	says(do(action("source", "alias", "kick", "kick-sauber", "--kind", "team")...), "Whatever a source says of kick is said of kick-sauber", "What sources call kick is kick-sauber from now on")
	says(gridcastHere(t, "source", "trace", key, "--store", store), "driver andrea-kimi-antonelli is kimi-antonelli", "team kick is kick-sauber")

	// The race is run, nobody says who won, and somebody saw it.
	now = time.Date(2024, 11, 24, 8, 0, 0, 0, time.UTC)
	refused([]string{`place 2: no driver of 2024 has the code or id "SIA"`, "did you mean SAI (Carlos Sainz Jr.)"}, "results", "enter", key, "--order", "RUS,SIA", "--yes", "--reason", "x")
	says(do("results", "enter", key, "--order", strings.NewReplacer("ZHO", "ANT", "SAI", "SAI +7.313s", "PER", "PER +1 lap").Replace(order), "--yes", "--by", "anna", "--reason", "seen on television"), "Revision 1 of the Las Vegas Grand Prix of 2024 is verified")
	do("build", "--model", "grid-frequency")
	refused([]string{"its result is verified", "results correct 2024022"}, action("grid", "set", key, "--order", "VER")...)

	version, err := publishedIn(t, filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"calendar/2024":    {`"session_key":2024022`, `"status":"finished","winner":"RUS"`},
		"predictions/2024": {`"session_key":2024022`, `"winner":"RUS","podium":{"p1":"RUS","p2":"SAI","p3":"GAS"}},"winner_hit":true`},
		"drivers":          {`"driver":"ANT","name":"Kimi Antonelli"`, `"number":12`},
	} {
		body, ok := version.Body(name)
		if !ok {
			t.Fatalf("version %d has no %s", version.Pointer.Version, name)
		}
		says(string(body.Identity), want...)
	}
	// The calendar of the next season comes as a file, and one race of this season is an hour later.
	says(do("calendar", "import", "--template"), "round,grand_prix,circuit,start,practice-1", "23,qatar,lusail,2024-12-01T16:00:00Z")
	table := filepath.Join(dir, "calendar.csv")
	if err := os.WriteFile(table, []byte("grand_prix;start;qualifying\nqatar;2024-12-01T17:00:00Z;\nAustralian GP;2025-03-16T15:00:00+11:00;2025-03-15T05:00:00Z\n"+
		"Lost Vegas;2025-11-22;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused([]string{"line 4", `"Lost Vegas" is not known`}, action("calendar", "import", table)...)
	if err := os.WriteFile(table, []byte("grand_prix;start;qualifying\nqatar;2024-12-01T17:00:00Z;\nAustralian GP;2025-03-16T15:00:00+11:00;2025-03-15T05:00:00Z\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	says(do(action("calendar", "import", table)...), "1 round is new: Australian Grand Prix of 2025 on 2025-03-16",
		"1 start moves: Qatar Grand Prix of 2024 from 1 December 2024 16:00 UTC to 1 December 2024 17:00 UTC",
		"The next race is the Qatar Grand Prix of 2024 on 1 December 2024 17:00 UTC")
	says(do(action("calendar", "import", table)...), "in use already")
	// A rule that one process is told is kept for all of them.
	says(do("build", "--model", "grid-frequency", "--auto-verify-after", "2h"), "keys_assigned")
	settings, err := os.ReadFile(filepath.Join(dir, "store", "settings.json"))
	if err != nil {
		t.Fatal(err)
	}
	says(string(settings), `"auto_verify_after_seconds": 7200`)
	says(do("rounds", "list", "--year", "2025"), "2025001", "Australian Grand Prix", "2025-03-16 04:00:00")
	says(do("rounds", "list"), "Qatar Grand Prix", "2024-12-01 17:00:00", "release")
	says(do(action("facts", "release", "2024023", "start")...), "Start: start 2024-12-01 17:00 UTC → 2024-12-01 16:00 UTC")
	says(do("rounds", "list"), "2024-12-01 16:00:00")
	gridcastHere(t, "ledger", "audit", "--store", store)
}

func publishedIn(t *testing.T, path string) (*snapshots.Version, error) {
	t.Helper()
	store, err := dirblob.Open(path)
	if err != nil {
		return nil, err
	}
	return snapshots.Open(t.Context(), store, nil)
}

// gridcastHere runs a command in this process, that has no clock.
func gridcastHere(t *testing.T, args ...string) string {
	t.Helper()
	var out, complaints bytes.Buffer
	if status := run(t.Context(), args, &out, &complaints); status != exitDone {
		t.Fatalf("gridcast %s: status %d: %s", strings.Join(args, " "), status, complaints.String())
	}
	return out.String()
}
