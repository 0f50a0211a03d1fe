package render_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/almanac"
	"gridcast/builder/render"
	"gridcast/builder/testseason"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// rowsOf returns the data of a document.
func rowsOf[T any](t *testing.T, a *almanac.Almanac, v catalog.Variant) []T {
	t.Helper()
	body, err := render.Body(a, v, generated)
	if err != nil {
		t.Fatal(err)
	}
	var got wire.Success[[]T]
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	return got.Data
}

// after2025 is the almanac of the embedded seasons at the end of 2025.
func after2025(t *testing.T) *almanac.Almanac {
	opened := time.Date(2025, 12, 31, 0, 0, 0, 0, time.UTC)
	return testseason.New(t, testseason.Config{Opened: opened, Until: testseason.Scheduled}).Almanac(opened.Add(time.Hour))
}

// TestSprintGridOf2021 compares a sprint grid with the qualifying of Friday, which set it in 2021 and 2022.
func TestSprintGridOf2021(t *testing.T) {
	round := rowsOf[wire.WeekendSessions](t, after2025(t), catalog.Variant{Endpoint: catalog.Sessions, SessionKey: 2021010})[0]
	if len(round.SprintGrid) != 20 {
		t.Fatalf("got %d rows, want 20", len(round.SprintGrid))
	}
	for _, row := range round.SprintGrid {
		i := slices.IndexFunc(round.Qualifying, func(q wire.QualifyingRow) bool { return q.DriverID == row.DriverID })
		if want := round.Qualifying[i].Position; row.Qualified != want || row.Position > 0 && (row.PlacesLost == nil || *row.PlacesLost != row.Position-want) {
			t.Errorf("%s: got place %d after %d in qualifying, %v lost; want %d in qualifying", row.DriverID, row.Position, row.Qualified, row.PlacesLost, want)
		}
	}
}

// TestFastestLapOfTheSource gives the fastest lap in China in 2025 to Norris. Hamilton, who was disqualified, had a
// faster one, which the source lists last.
func TestFastestLapOfTheSource(t *testing.T) {
	for _, c := range rowsOf[wire.Career](t, after2025(t), catalog.Variant{Endpoint: catalog.Careers, Type: catalog.DriversType, Year: 2025}) {
		if want, named := map[string]int{"lando-norris": 6, "lewis-hamilton": 1}[c.ID]; named && c.FastestLaps != want {
			t.Errorf("%s has %d fastest laps in 2025, want %d", c.ID, c.FastestLaps, want)
		}
	}
}

// TestSharedFastestLap gives two drivers with the fastest time the first place, and the next driver the third.
func TestSharedFastestLap(t *testing.T) {
	a := after2025(t)
	r, err := a.Round(2025001)
	if err != nil {
		t.Fatal(err)
	}
	facts := *r.Facts
	facts.FastestLaps = slices.Clone(facts.FastestLaps[:3])
	facts.FastestLaps[1].Time = facts.FastestLaps[0].Time
	r.Facts = &facts
	var places []int
	for _, lap := range rowsOf[wire.WeekendSessions](t, a, catalog.Variant{Endpoint: catalog.Sessions, SessionKey: 2025001})[0].FastestLaps {
		places = append(places, lap.Position)
	}
	if diff := cmp.Diff([]int{1, 1, 3}, places); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
