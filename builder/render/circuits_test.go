package render_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/almanac"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// raceRow is the part of F1DB's release that circuits are made from: a race.
type raceRow struct {
	ID        int
	Year      int
	Circuit   string      `json:"circuitId"`
	Layout    string      `json:"circuitLayoutId"`
	Direction string      `json:"direction"`
	Length    json.Number `json:"courseLength"`
	Turns     int         `json:"turns"`
}

// readRelease reads a file of the release that goes on until 2026. It skips the test without the release.
func readRelease[T any](t *testing.T, name string) (rows []T) {
	t.Helper()
	folder := os.Getenv("GRIDCAST_TEST_DATA")
	if folder == "" {
		folder = "../../../shared/data"
	}
	packed, err := zip.OpenReader(filepath.Join(folder, "f1db/f1db-2026-json-splitted.zip"))
	if os.IsNotExist(err) {
		t.Skipf("no release of F1DB in %s", folder)
	} else if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	file := must.Get(packed.Open(name))(t)
	if err := json.NewDecoder(file).Decode(&rows); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return rows
}

// TestLayoutsAreTheRelease makes layouts.txt from the races of the release.
func TestLayoutsAreTheRelease(t *testing.T) {
	races := readRelease[raceRow](t, "f1db-races.json")
	latest := map[string]string{} // by circuit and length
	var text bytes.Buffer
	for _, r := range races {
		length := must.Get(r.Length.Float64())(t)
		key := fmt.Sprintf("%s %.3f", r.Circuit, length)
		line := fmt.Sprintf("%s %d %s", r.Layout, r.Turns, map[string]string{"CLOCKWISE": "clockwise", "ANTI_CLOCKWISE": "anticlockwise"}[r.Direction])
		if latest[key] != line {
			latest[key] = line
			fmt.Fprintf(&text, "%s %d %s\n", key, r.Year, line)
		}
	}
	lines := slices.Collect(strings.Lines(text.String()))
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(strings.Fields(a)[0], strings.Fields(b)[0]) })
	want := strings.Join(lines, "")
	must.Hold(t, len(lines) >= 100, "the release has %d layouts, want at least 100", len(lines))
	golden.File(t, "layouts.txt", want)
}

// TestCircuitsAgreeWithTheRelease counts races, winners and lap records of each season and circuit in the release itself.
func TestCircuitsAgreeWithTheRelease(t *testing.T) {
	type row struct {
		Race     int    `json:"raceId"`
		Position int    `json:"positionNumber"`
		Driver   string `json:"driverId"`
		Millis   int64  `json:"timeMillis"`
	}
	type summary struct {
		Races   int
		Layouts []string // identifier, turns, direction and fastest lap, sorted
		Winners []string // identifier and wins, sorted
	}
	of := func(rows []row) map[int][]row {
		by := map[int][]row{}
		for _, r := range rows {
			by[r.Race] = append(by[r.Race], r)
		}
		return by
	}
	races := readRelease[raceRow](t, "f1db-races.json")
	results := of(readRelease[row](t, "f1db-races-race-results.json"))
	laps := of(readRelease[row](t, "f1db-races-fastest-laps.json"))
	a := after2025(t)
	years := []int{0} // all seasons
	for _, y := range a.Years {
		years = append(years, y.Year)
	}
	compared := 0
	for _, year := range years {
		want := map[string]*summary{}
		wins, best, layouts := map[[2]string]int{}, map[string]int64{}, map[string]raceRow{}
		for _, r := range races {
			if r.Year != year && year != 0 || !slices.Contains(years, r.Year) {
				continue
			}
			if want[r.Circuit] == nil {
				want[r.Circuit] = &summary{}
			}
			layouts[r.Layout] = r
			if r.Year > 2025 { // after the instant of the almanac
				continue
			}
			want[r.Circuit].Races++
			for _, row := range results[r.ID] {
				if row.Position == 1 {
					wins[[2]string{r.Circuit, row.Driver}]++
				}
			}
			for _, row := range laps[r.ID] {
				if row.Position == 1 && row.Millis > 0 && (best[r.Layout] == 0 || row.Millis < best[r.Layout]) {
					best[r.Layout] = row.Millis
				}
			}
		}
		for id, r := range layouts {
			direction := strings.ReplaceAll(strings.ToLower(r.Direction), "_", "")
			want[r.Circuit].Layouts = append(want[r.Circuit].Layouts, fmt.Sprint(id, " ", r.Turns, " ", direction, " ", best[id]))
		}
		for key, n := range wins {
			want[key[0]].Winners = append(want[key[0]].Winners, fmt.Sprint(key[1], " ", n))
		}
		got := map[string]*summary{}
		for _, c := range rowsOf[wire.CircuitRecord](t, a, catalog.Variant{Endpoint: catalog.Circuits, Year: year}) {
			s := &summary{Races: c.RacesHeld}
			for _, l := range c.Layouts {
				var lap int64
				if l.LapRecord != nil {
					lap = l.LapRecord.TimeMS
				}
				s.Layouts = append(s.Layouts, fmt.Sprint(l.LayoutID, " ", l.Turns, " ", l.Direction, " ", lap))
			}
			for _, w := range c.Winners {
				s.Winners = append(s.Winners, fmt.Sprint(w.DriverID, " ", w.Wins))
			}
			got[c.ID] = s
			compared++
		}
		for _, all := range []map[string]*summary{want, got} {
			for _, s := range all {
				slices.Sort(s.Layouts)
				slices.Sort(s.Winners)
			}
		}
		diff := cmp.Diff(want, got)
		must.Hold(t, diff == "", "%d (-release +document):\n%s", year, diff)
	}
	must.Hold(t, compared >= 100, "compared %d circuits", compared)
}

// TestCircuitsLeaveOutCancelledRounds compares a circuit before and after its round of 2025 is cancelled.
func TestCircuitsLeaveOutCancelledRounds(t *testing.T) {
	a := after2025(t)
	circuit := func() wire.CircuitRecord {
		all := rowsOf[wire.CircuitRecord](t, a, catalog.Variant{Endpoint: catalog.Circuits})
		return all[slices.IndexFunc(all, func(c wire.CircuitRecord) bool { return c.ID == "monza" })]
	}
	before := circuit()
	last := a.Years[slices.IndexFunc(a.Years, func(y *almanac.Year) bool { return y.Year == 2025 })]
	r := last.Rounds[slices.IndexFunc(last.Rounds, func(r *almanac.Round) bool { return r.Circuit.ID == "monza" })]
	r.State, r.Result = almanac.Cancelled, nil
	after := circuit()
	if after.RacesHeld != before.RacesHeld-1 || after.LastSession >= before.LastSession || slices.Contains(after.Layouts[len(after.Layouts)-1].Years, last.Year) || !slices.Contains(before.Layouts[len(before.Layouts)-1].Years, last.Year) {
		t.Errorf("got %d races until %d, want %d without those of %d", after.RacesHeld, after.LastSession, before.RacesHeld-1, last.Year)
	}
}
