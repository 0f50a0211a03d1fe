package openf1_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/assemble/assembletest"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/source/openf1"
	"gridcast/builder/source/sourcetest"
)

// fetched fetches and reads the recordings at an instant.
func fetched(t *testing.T, api *sourcetest.Replay, now time.Time) (source.Document, error) {
	t.Helper()
	return sourcetest.Fetched(t, sourcetest.Open(t, openf1.New, api), now, now.Year()-1, now.Year()+1)
}

// TestAgainstF1DB compares the day after each race of two seasons with F1DB, by driver. The remaining
// differences are errors of one source.
func TestAgainstF1DB(t *testing.T) {
	api := sourcetest.OpenF1(t)
	ours := archivetest.Embedded(t)
	seen := make(map[string]bool)
	var got []string
	for _, s := range ours.Facts().Seasons {
		if s.Year != 2023 && s.Year != 2024 {
			continue
		}
		for i := range s.Rounds {
			now := s.Rounds[i].StartsAt().Add(24 * time.Hour)
			d, err := fetched(t, api, now)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range append(assembletest.Disputed(t, ours.Facts(), d.Facts, d.From, d.To, now), d.Notes...) {
				// Of the results of qualifying and sprint there are no recordings.
				if !seen[line] && !strings.Contains(line, "no result yet") {
					got = append(got, line)
				}
				seen[line] = true
			}
		}
	}
	want := []string{
		// Points that OpenF1 never gave, or not again after others had been disqualified.
		`2023 saudi-arabia, result: max-verstappen: ours "P2, 19 points", theirs "P2, 0 points"`,
		// OpenF1 lists a driver without a start on the grid alone.
		`2023 singapore, entries: lance-stroll: ours "car 18, aston-martin", theirs ""`,
		`2023 singapore, result: lance-stroll: ours "unplaced", theirs ""`,
		`2023 Singapore Grand Prix, Qualifying: the grid is left out: nobody drives car 18; there are [1 2 4 10 11 14 16 20 22 23 24 27 31 40 44 55 63 77 81]`,
		`2023 united-states, result: alexander-albon: ours "P9, 2 points", theirs "P9, 0 points"`,
		`2023 united-states, result: carlos-sainz-jr: ours "P3, 15 points", theirs "P3, 0 points"`,
		`2023 united-states, result: charles-leclerc: ours "disqualified", theirs "unplaced"`,
		`2023 united-states, result: george-russell: ours "P5, 10 points", theirs "P5, 0 points"`,
		`2023 united-states, result: lance-stroll: ours "P7, 6 points", theirs "P7, 0 points"`,
		`2023 united-states, result: lando-norris: ours "P2, 18 points", theirs "P2, 0 points"`,
		`2023 united-states, result: lewis-hamilton: ours "disqualified", theirs "unplaced"`,
		`2023 united-states, result: logan-sargeant: ours "P10, 1 points", theirs "P10, 0 points"`,
		`2023 united-states, result: pierre-gasly: ours "P6, 8 points", theirs "P6, 0 points"`,
		`2023 united-states, result: sergio-perez: ours "P4, 12 points", theirs "P4, 0 points"`,
		`2023 united-states, result: yuki-tsunoda: ours "P8, 5 points", theirs "P8, 0 points"`,
		// The plan, which the weather overthrew.
		`2024 sao-paulo, sessions: qualifying: ours "2024-11-03 10:30 UTC", theirs "2024-11-02 18:00 UTC"`,
		`2024 great-britain, grid: pierre-gasly: ours "slot 19", theirs "slot 20"`,
		`2024 great-britain, grid: sergio-perez: ours "pit lane", theirs "slot 19"`,
		`2024 belgium, result: george-russell: ours "disqualified", theirs "unplaced"`,
	}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		t.Errorf("disagreements by driver (-want +got):\n%s", diff)
	}
	for _, target := range api.Requests() {
		if strings.Contains(target, "latest") {
			t.Errorf("asked for %s: latest was a cancelled race for weeks", target)
		}
	}
}

// austria is the day after the Austrian Grand Prix of 2024. Its meeting is 1239, its sessions are
// 9541 for qualifying and 9550 for the race.
var austria = time.Date(2024, 7, 1, 12, 0, 0, 0, time.UTC)

// TestOutages: an unusable answer of OpenF1 has a kind of fault, by which the next poll is set.
func TestOutages(t *testing.T) {
	sourcetest.TestOutages(t, sourcetest.OpenF1, sourcetest.Outages{
		{"April 2025: everybody is throttled", 429, "application/json", `{"error":"rate exceeded"}`, source.Throttled, "429"},
		{"November 2025: an upstream timeout in words", 504, "text/plain", "upstream request timeout", source.Unreachable, "504"},
		{"March 2026: down for a race", 502, "text/html", "<html>Bad Gateway</html>", source.Unreachable, "502"},
		{"a page with 200", 200, "text/html", "<html>maintenance</html>", source.Malformed, "content type"},
		{"a session in progress, or long after one", 401, "application/json", `{"detail":"Session in progress, access is restricted to authenticated users."}`, source.Refused, "Session in progress"},
		{"another 404 than that of no rows", 404, "application/json", `{"detail":"Not Found"}`, source.Refused, "Not Found"},
		{"no list", 200, "application/json", `{"detail":"maintenance"}`, source.Malformed, "meetings"},
	}, func(t *testing.T, api *sourcetest.Replay) error {
		_, err := fetched(t, api, austria)
		return err
	})
}

// TestNoRows: an empty list and the 404 of March 2026 give the same payload.
func TestNoRows(t *testing.T) {
	api := sourcetest.OpenF1(t)
	u := sourcetest.Open(t, openf1.New, api)
	first, err := u.Fetch(t.Context(), austria, 2023, 2025, source.Known{})
	if err != nil {
		t.Fatal(err)
	}
	missing := api.Missing
	api.Missing = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("[]"))
	}
	again, err := u.Fetch(t.Context(), austria.Add(time.Minute), 2023, 2025, source.Known{SHA256: source.Sum(first.Packed)})
	if err != nil || !again.NotModified {
		t.Errorf("with empty lists: not modified %t, error %v", again.NotModified, err)
	}
	// The keys of an object come in any order.
	api.Missing = missing
	api.Rewrite(func(target, body string) string {
		if !strings.Contains(target, "starting_grid") {
			return body
		}
		changed := regexp.MustCompile(`("position": *[0-9]+),( *)("driver_number": *[0-9]+)`).ReplaceAllString(body, `$3,$2$1`)
		if changed == body {
			t.Errorf("%s has no keys to be turned round", target)
		}
		return changed
	})
	again, err = u.Fetch(t.Context(), austria.Add(2*time.Minute), 2023, 2025, source.Known{SHA256: source.Sum(first.Packed)})
	if err != nil || !again.NotModified {
		t.Errorf("with keys in another order: not modified %t, error %v", again.NotModified, err)
	}
}

// TestOddRows: a contradictory answer of OpenF1 is left out with a note, and the rest is read.
func TestOddRows(t *testing.T) {
	const (
		grid   = "starting_grid?session_key=9541"
		result = "session_result?session_key=9550"
		cars   = "drivers?session_key=9550"
	)
	for _, test := range []struct {
		name       string
		target     string
		was, is    string // regular expression, and the replacement of its first match
		note       string // part of it; empty: none
		rows, grid int    // that are read of the race
	}{
		{name: "as it was", target: grid, was: `^`, rows: 20, grid: 20},
		{name: "October 2025: no results after the race", target: result, was: `(?s)^.*$`, is: `[]`, note: "Race: no result yet", rows: 0, grid: 20},
		{name: "March 2026: a team is null", target: cars, was: `"team_name": *"[^"]*"`, is: `"team_name": null`, note: "without a driver's acronym or a team", rows: 0, grid: 0},
		{name: "August 2026: one driver in two teams", target: cars, was: `^\[`, is: `[{"driver_number":30,"name_acronym":"TSU","team_name":"Red Bull Racing"},`, note: "tsunoda drives for", rows: 0, grid: 0},
		{name: "August 2026: one car with two drivers", target: cars, was: `^\[`, is: `[{"driver_number":22,"name_acronym":"LAW","team_name":"RB"},`, note: "car 22 is that of", rows: 0, grid: 0},
		{name: "August 2025, Belgium: disqualified and still on top", target: result, was: `"dsq": *false`, is: `"dsq": true`, note: "is disqualified and has P1", rows: 0, grid: 20},
		{name: "August 2025, Belgium: columns swapped", target: result, was: `"gap_to_leader": *0\b`, is: `"gap_to_leader": 5064.798`, note: "ahead of it 5064.798 s", rows: 0, grid: 20},
		{name: "points are missing", target: result, was: `"points": *25.0`, is: `"points": null`, note: "is without points", rows: 0, grid: 20},
		{name: "a gap in words", target: result, was: `"gap_to_leader": *[1-9][0-9.]*`, is: `"gap_to_leader": "+1 LAP"`, rows: 20, grid: 20},
		{name: "microseconds", target: "sessions?year=2024", was: `T13:00:00\+00:00`, is: `T13:00:00.000000+00:00`, rows: 20, grid: 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			api := sourcetest.OpenF1(t)
			changed := false
			api.Rewrite(func(target, body string) string {
				if !strings.HasSuffix(target, test.target) {
					return body
				}
				at := regexp.MustCompile(test.was).FindStringIndex(body)
				if at == nil {
					return body
				}
				changed = true
				return body[:at[0]] + test.is + body[at[1]:]
			})
			d, err := fetched(t, api, austria)
			if err != nil {
				t.Fatal(err)
			}
			if !changed {
				t.Fatalf("the recording has no %s", test.was)
			}
			notes := slices.DeleteFunc(d.Notes, func(n string) bool {
				return !strings.Contains(n, "Austrian Grand Prix, Race") && !strings.Contains(n, "Austrian Grand Prix, Qualifying") || strings.Contains(n, "Qualifying: no result yet")
			})
			if got := strings.Join(notes, "; "); (test.note == "") != (got == "") || !strings.Contains(got, test.note) {
				t.Errorf("notes %q, want one that says %q", got, test.note)
			}
			rounds := d.Facts.Seasons[0].Rounds
			r := rounds[slices.IndexFunc(rounds, func(r season.Round) bool { return r.GrandPrix == "austria" })]
			if len(r.Results) != test.rows || len(r.Grid) != test.grid {
				t.Errorf("%d rows and %d slots are read, want %d and %d", len(r.Results), len(r.Grid), test.rows, test.grid)
			}
		})
	}
}

// TestCancelled: a cancelled race is not in the calendar, and the others are.
func TestCancelled(t *testing.T) {
	api := sourcetest.OpenF1(t)
	api.Rewrite(func(target, body string) string {
		if strings.HasSuffix(target, "sessions?year=2024") {
			return regexp.MustCompile(`("session_key": *9550,)`).ReplaceAllString(body, `$1 "is_cancelled": true,`)
		}
		return body
	})
	d, err := fetched(t, api, austria)
	if err != nil {
		t.Fatal(err)
	}
	rounds := d.Facts.Seasons[0].Rounds
	if slices.ContainsFunc(rounds, func(r season.Round) bool { return r.GrandPrix == "austria" }) || len(rounds) != 23 {
		t.Errorf("there are %d rounds, want 23 without Austria", len(rounds))
	}
}

// TestNamesThatActOnAReader: a name that acts on the screen of a reader is no known name, so the answer is refused.
func TestNamesThatActOnAReader(t *testing.T) {
	for was, is := range map[string]string{
		`Austrian Grand Prix`: `Austrian <b>Grand Prix`,
		`Red Bull Racing`:     `Red \u001b[2JBull Racing`,
		`Spielberg`:           `Spiel\u202eberg`,
		`"VER"`:               `"V<R"`,
	} {
		api, changed := sourcetest.OpenF1(t), false
		api.Rewrite(func(_, body string) string {
			changed = changed || strings.Contains(body, was)
			return strings.ReplaceAll(body, was, is)
		})
		if _, err := fetched(t, api, austria); !changed || err == nil || !strings.Contains(err.Error(), "is not known") {
			t.Errorf("%s: changed %t, got %v, want it to be refused as not known", is, changed, err)
		}
	}
}
