package stewards_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/stewards"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

// written is a classification as somebody writes it down: codes, places and points.
func written(t *testing.T, r *almanac.Round, edit func([]map[string]any) []map[string]any) []byte {
	t.Helper()
	var rows []map[string]any
	for _, row := range r.Source() {
		line := map[string]any{"driver": r.Code(row.Driver)}
		if row.Position > 0 {
			line["position"], line["points"] = row.Position, row.Points
		}
		rows = append(rows, line)
	}
	return must.Get(json.Marshal(map[string]any{"rows": edit(rows)}))(t)
}

func asWritten(rows []map[string]any) []map[string]any { return rows }

func TestReadClassification(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	r := w.Round(testseason.Belgium.Over(), testseason.Belgium.Key)
	rows, _ := must.Get2(stewards.ReadClassification(r, written(t, r, asWritten)))(t)
	for _, p := range almanac.Compare(r.Source(), rows) {
		must.Hold(t, !p.Changed(), "%s: read %+v, want %+v", p.Driver, p.After, p.Before)
	}
	// The printed classification can be read again.
	document := must.Get(json.Marshal(ledger.Classification{Revision: 3, Rows: r.Source()}))(t)
	again, _, err := stewards.ReadClassification(r, document)
	must.Hold(t, err == nil && len(again) == len(rows), "as the ledger has it: got %d rows and error %v", len(again), err)
}

// Before the source has a result, the entries name the drivers of the session.
func TestReadClassificationAheadOfTheSource(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	document := written(t, w.Round(testseason.Belgium.Over(), testseason.Belgium.Key), asWritten)
	r := w.Round(testseason.Belgium.Start.Add(1), testseason.Belgium.Key)
	must.Require(t, r.Source() == nil, "the source has a result at lights out")
	rows, _ := must.Get2(stewards.ReadClassification(r, document))(t)
	if rows[0].Team != "mercedes" || rows[0].Engine != "mercedes" {
		t.Errorf("the winner drove for %s with %s, want Mercedes", rows[0].Team, rows[0].Engine)
	}
}

func TestClassificationsThatAreRefused(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	r := w.Round(testseason.Belgium.Over(), testseason.Belgium.Key)
	sentences := make(map[string]string)
	for name, document := range map[string][]byte{
		"a driver is missing":      written(t, r, func(rows []map[string]any) []map[string]any { return rows[1:] }),
		"an unknown code":          written(t, r, func(rows []map[string]any) []map[string]any { rows[0]["driver"] = "SEN"; return rows }),
		"a driver of another race": written(t, r, func(rows []map[string]any) []map[string]any { rows[0]["driver"] = "BEA"; return rows }),
		"another team":             written(t, r, func(rows []map[string]any) []map[string]any { rows[0]["team"] = "ferrari"; return rows }),
		"an unknown field":         written(t, r, func(rows []map[string]any) []map[string]any { rows[0]["place"] = 1; return rows }),
		"two documents":            append(written(t, r, asWritten), "{}"...),
		"cut off":                  []byte(`{"rows": [`),
	} {
		rows, _, err := stewards.ReadClassification(r, document)
		if err == nil {
			t.Errorf("%s: got %d rows, want an error", name, len(rows))
			continue
		}
		sentences[name] = err.Error()
	}
	golden.Inputs(t, "testdata/document.golden", sentences)
}

// qatar is the roster of the penultimate round of 2024, on its Saturday morning.
func qatar(t *testing.T) *stewards.Roster {
	t.Helper()
	saturday := time.Date(2024, 11, 30, 8, 0, 0, 0, time.UTC)
	return stewards.NewRoster(archivetest.Embedded(t).AsOf(saturday), 2024, "qatar", nil)
}

func TestRosterReads(t *testing.T) {
	list, err := qatar(t).Read("VER nor\nlec, SAI # the podium\nLAW = red-bull, 31\n\nLIN = Arvid Lindblád, GBR, rb, 41\nRAI = Kimi Räikkönen, FIN, Kick Sauber, 7\n--\nHAM")
	must.Do(t, err)
	var placed []string
	for _, s := range list.Placed {
		placed = append(placed, string(s.Driver))
	}
	got, want := strings.Join(placed, " "), "max-verstappen lando-norris charles-leclerc carlos-sainz-jr liam-lawson arvid-lindblad kimi-raikkonen"
	must.Hold(t, got == want, "placed are\n%s, want\n%s", got, want)
	must.Hold(t, len(list.Unplaced) == 1 && list.Unplaced[0].Driver == "lewis-hamilton", "without a place are %+v, want Hamilton", list.Unplaced)
	entries := list.Entries()
	find := func(driver season.DriverID) season.Entry {
		for _, e := range entries {
			if e.Driver == driver {
				return e
			}
		}
		t.Fatalf("%s is not in %+v", driver, entries)
		return season.Entry{}
	}
	if got, want := find("max-verstappen"), (season.Entry{Driver: "max-verstappen", Team: "red-bull", Engine: "honda-rbpt", Number: 1}); got != want {
		t.Errorf("Verstappen: got %+v, want the latest entry %+v", got, want)
	}
	if got, want := find("liam-lawson"), (season.Entry{Driver: "liam-lawson", Team: "red-bull", Engine: "honda-rbpt", Number: 31}); got != want {
		t.Errorf("Lawson: got %+v, want %+v", got, want)
	}
	if got, want := find("arvid-lindblad"), (season.Entry{Driver: "arvid-lindblad", Team: "rb", Engine: "honda-rbpt", Number: 41}); got != want {
		t.Errorf("Lindblad: got %+v, want %+v", got, want)
	}
	// A returning driver keeps the identifier; only the other one is new.
	if len(list.New) != 1 || list.New[0] != (season.Driver{
		ID: "arvid-lindblad", Name: "Arvid Lindblád", FirstName: "Arvid", LastName: "Lindblád", Abbreviation: "LIN", Country: "GBR",
	}) {
		t.Errorf("new are %+v", list.New)
	}
	list, err = qatar(t).Read("HUL = Audi (DEU), 27\nBOT = Audi (DEU)\nLAW = Red Bull")
	if want := []season.Team{{ID: "audi", Name: "Audi", Country: "DEU"}}; err != nil || !slices.Equal(list.NewTeams, want) || list.Placed[1].Team != "audi" || list.Placed[1].Number != 77 {
		t.Errorf("new teams are %+v, %v, want %+v; Bottas is %+v", list.NewTeams, err, want, list.Placed[1])
	}
}

func TestRosterOrders(t *testing.T) {
	list := must.Get(qatar(t).Read("VER NOR LEC SAI\nLAW = red-bull, 31\nBOT\nPIA\n-\nHAM"))(t)
	q := list.Qualifying()
	must.Hold(t, q[1].Position == 2 && q[7].Position == 0 && q[7].Driver == "lewis-hamilton", "qualifying is %+v", q)
	g := list.Grid()
	must.Hold(t, len(g) == 8 && g[4].Team == "red-bull" && g[7].Position == 0, "the grid is %+v", g)
}

// TestRosterReadsTimes: if a driver has several times, all times of the list are those of the parts of qualifying.
func TestRosterReadsTimes(t *testing.T) {
	for text, want := range map[string]string{
		"VER 1:33.186 1:32.779 1:32.3\nLAW 59.900 = red-bull, 30\n-\nHAM": "max-verstappen 1 0s [1m33.186s 1m32.779s 1m32.3s], liam-lawson 2 0s [59.9s 0s 0s], lewis-hamilton 0 0s [0s 0s 0s]",
		"VER 1:32.312 LAW 1:34.0": "max-verstappen 1 1m32.312s [0s 0s 0s], liam-lawson 2 1m34s [0s 0s 0s]",
	} {
		list := must.Get(qatar(t).Read(text))(t)
		var got []string
		for _, q := range list.Qualifying() {
			got = append(got, fmt.Sprint(q.Driver, " ", q.Position, " ", q.Time, " ", q.Segments))
		}
		all := strings.Join(got, ", ")
		must.Hold(t, all == want, "%q gives\n%s, want\n%s", text, all, want)
	}
}

func TestRosterRefuses(t *testing.T) {
	sentences := make(map[string]string)
	for _, text := range []string{
		"VER\nVRE",
		"verstapen",
		"RSU",
		"XQJ",
		"VER NOR\nver",
		"VER = redbul",
		"VER = red-bull, 100",
		"LIN = Arvid Lindblad, GBR, rb",
		"LIN = Arvid Lindblad, UK, rb, 41",
		"L1N = Arvid Lindblad, GBR, rb, 4",
		"LIN = Lindblad, GBR, rb, 41",
		"VEX = Max Verstappen, NED, rb, 3",
		"# nobody",
		"VER NOR = red-bull, 30",
		"1:32.312 VER",
		"VER 12.312",
		"VER 1:33.186 1:32.779 1:32.312 1:31.999",
	} {
		_, err := qatar(t).Read(text)
		if err == nil {
			t.Errorf("%q is read without an error", text)
			continue
		}
		sentences[text] = err.Error()
	}
	golden.Inputs(t, "testdata/roster.golden", sentences)
}
