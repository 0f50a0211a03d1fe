package almanac_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
)

// rowsOf decides on Belgium and returns the rows of the event by driver, in the form of the ledger file.
func rowsOf(t *testing.T, w *testseason.Season, decide func(*almanac.Round) ([]ledger.Event, error)) map[season.DriverID]string {
	t.Helper()
	w.Decide(testseason.Belgium.Over(), testseason.Belgium.Key, decide)
	files := w.Ledger.Files()
	rows := map[season.DriverID]string{}
	for _, row := range files[len(files)-1].Events[0].Result.Rows {
		text, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		rows[row.Driver] = string(text)
	}
	return rows
}

func wantRows(t *testing.T, what string, got map[season.DriverID]string, want map[season.DriverID]string) {
	t.Helper()
	for driver, row := range want {
		if got[driver] != row {
			t.Errorf("%s: %s\n got %s\nwant %s", what, driver, got[driver], row)
		}
	}
}

// A verified result has the whole rows of the source. A correction has its own details; the source
// gives the others, but times and gaps only for drivers whose place is the same in both.
func TestLedgerHasWholeRows(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	verified := rowsOf(t, w, (*almanac.Round).Verify)
	wantRows(t, "verified", verified, map[season.DriverID]string{
		"lewis-hamilton":  `{"driver":"lewis-hamilton","team":"mercedes","engine":"mercedes","position":1,"points":25,"number":44,"grid":3,"laps":44,"time_ms":4797566}`,
		"oscar-piastri":   `{"driver":"oscar-piastri","team":"mclaren","engine":"mercedes","position":2,"points":18,"number":81,"grid":5,"laps":44,"gap_ms":647}`,
		"george-russell":  `{"driver":"george-russell","team":"mercedes","engine":"mercedes","number":63,"status":"DSQ","grid":6,"laps":44,"reason":"Car underweight"}`,
		"guanyu-zhou":     `{"driver":"guanyu-zhou","team":"kick-sauber","engine":"ferrari","number":24,"status":"DNF","grid":19,"laps":5,"reason":"Hydraulics"}`,
		"charles-leclerc": `{"driver":"charles-leclerc","team":"ferrari","engine":"ferrari","position":3,"points":15,"number":16,"grid":1,"laps":44,"gap_ms":8023}`,
	})

	corrected := rowsOf(t, w, func(r *almanac.Round) ([]ledger.Event, error) {
		rows := almanac.Rows(r.Facts.Results)
		rows[1].Position, rows[1].Points, rows[1].Status = 0, 0, season.Disqualified
		rows[2].Position = 2
		return r.Correct(append(rows[:1:1], append(rows[2:], rows[1])...), nil, "a disqualification")
	})
	wantRows(t, "corrected", corrected, map[season.DriverID]string{
		"lewis-hamilton":  verified["lewis-hamilton"],
		"charles-leclerc": `{"driver":"charles-leclerc","team":"ferrari","engine":"ferrari","position":2,"points":15,"number":16,"grid":1,"laps":44}`,
		"oscar-piastri":   `{"driver":"oscar-piastri","team":"mclaren","engine":"mercedes","number":81,"status":"DSQ","grid":5,"laps":44}`,
		"max-verstappen":  verified["max-verstappen"],
		"guanyu-zhou":     verified["guanyu-zhou"],
	})
}

// A correction before the source has a result has only its own details.
func TestCorrectionAheadOfTheSource(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	r := w.Round(testseason.Belgium.Start.Add(time.Hour), testseason.Belgium.Key)
	laps := 44
	events, err := r.Correct([]ledger.Row{
		{Driver: "lewis-hamilton", Team: "mercedes", Position: 1, Points: 25, Details: ledger.Details{Laps: &laps, TimeMS: 4797566}},
		{Driver: "george-russell", Team: "mercedes"},
	}, nil, "by hand")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(events[0].Result.Rows)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"driver":"lewis-hamilton","team":"mercedes","position":1,"points":25,"number":44,"laps":44,"time_ms":4797566},` +
		`{"driver":"george-russell","team":"mercedes","number":63}]`
	if strings.TrimSpace(string(text)) != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

// The details of a verified row stay when the source changes them; a missing one comes from the source.
func TestVerifiedDetailsStay(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	r := w.Round(testseason.Belgium.Over(), testseason.Belgium.Key)
	rows := r.Whole(almanac.Rows(r.Facts.Results), r.Facts.Results)
	later := slices.Clone(r.Facts.Results)
	for i := range later {
		later[i].Reason, later[i].Laps = "Illness", 1
	}
	for i := range rows {
		if rows[i].Driver == "george-russell" {
			rows[i].Reason = ""
		}
	}
	for _, row := range r.Whole(rows, later) {
		switch {
		case row.Driver == "guanyu-zhou" && (row.Reason != "Hydraulics" || *row.Laps != 5):
			t.Errorf("Zhou retired after %d laps because of %q, want what was verified", *row.Laps, row.Reason)
		case row.Driver == "george-russell" && row.Reason != "Illness":
			t.Errorf("Russell has the reason %q, want the source's", row.Reason)
		}
	}
}

// Nobody knows the laps of a driver in another's car, and the source may lack those of a disqualified one. A driver who
// did not start has completed none.
func TestUnknownLapsAreAbsent(t *testing.T) {
	r := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled}).Round(testseason.Belgium.Over(), testseason.Belgium.Key)
	results := []season.Result{
		{Driver: "lewis-hamilton", Position: 1, Laps: 70, Time: time.Hour},
		{Driver: "cay", Position: 1, Shared: true},
		{Driver: "george-russell", Position: 2, Laps: 69, Reason: "Engine"}, // after nine tenths of the distance
		{Driver: "george-russell", Position: 3, Shared: true, Number: 8},
		{Driver: "dan", Outcome: season.DidNotStart, Number: 9},
		{Driver: "eve", Outcome: season.Disqualified},
	}
	text, err := json.Marshal(r.Whole(almanac.Rows(results), results))
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"driver":"lewis-hamilton","team":"","position":1,"number":44,"laps":70,"time_ms":3600000},` +
		`{"driver":"cay","team":"","position":1,"shared":true},` +
		`{"driver":"george-russell","team":"","position":2,"number":63,"laps":69,"gap_laps":1,"reason":"Engine"},` +
		`{"driver":"george-russell","team":"","position":3,"shared":true,"number":8},` +
		`{"driver":"dan","team":"","number":9,"status":"DNS","laps":0},` +
		`{"driver":"eve","team":"","status":"DSQ"}]`
	if got := strings.TrimSpace(string(text)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
