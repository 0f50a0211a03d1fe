package season_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"gridcast/builder/season"
)

// TestEveryCircuitHasATimeZone: every circuit has a time zone of the tz database.
func TestEveryCircuitHasATimeZone(t *testing.T) {
	for id := range embedded(t).Facts().Circuits {
		if zone := season.TimeZone(id); zone == "" {
			t.Errorf("%s has no time zone", id)
		} else if _, err := time.LoadLocation(zone); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestTimeZonesAgreeWithTheClocksOfTheMeetings compares the offset from UTC of each meeting of three
// seasons in OpenF1 with the offset of the zone on that day.
func TestTimeZonesAgreeWithTheClocksOfTheMeetings(t *testing.T) {
	folder := os.Getenv("GRIDCAST_TEST_DATA")
	if folder == "" {
		folder = "../../../shared/data"
	}
	files, err := filepath.Glob(filepath.Join(folder, "openf1/v1/meetings__year=*.json"))
	if err != nil || len(files) == 0 {
		t.Skipf("no meetings of OpenF1 in %s", folder)
	}
	circuits := map[string]season.CircuitID{ // by OpenF1's names
		"sakhir": "bahrain", "monte carlo": "monaco", "singapore": "marina-bay", "yas marina circuit": "yas-marina",
		"yas island": "yas-marina", "barcelona": "catalunya", "budapest": "hungaroring",
	}
	known := embedded(t).Facts().Circuits
	compared := map[season.CircuitID]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var meetings []struct {
			Circuit string    `json:"circuit_short_name"`
			Offset  string    `json:"gmt_offset"`
			Start   time.Time `json:"date_start"`
		}
		if err := json.Unmarshal(data, &meetings); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, m := range meetings {
			name := strings.ToLower(m.Circuit)
			id, ok := circuits[name]
			if !ok {
				id = season.CircuitID(strings.ReplaceAll(name, " ", "-"))
			}
			if _, ok := known[id]; !ok {
				continue
			}
			zone, err := time.LoadLocation(season.TimeZone(id))
			if err != nil {
				t.Fatal(err)
			}
			offset, err := time.Parse("15:04:05", strings.TrimPrefix(m.Offset, "-"))
			if err != nil {
				t.Fatal(err)
			}
			want := offset.Hour()*3600 + offset.Minute()*60
			if strings.HasPrefix(m.Offset, "-") {
				want = -want
			}
			if _, got := m.Start.In(zone).Zone(); got != want {
				t.Errorf("%s on %s: %s is %d s from UTC, the meeting was %d s", id, m.Start.Format(time.DateOnly), zone, got, want)
			}
			compared[id] = true
		}
	}
	t.Logf("compared %d circuits", len(compared))
	if len(compared) < 20 {
		t.Errorf("compared %d circuits, want at least 20", len(compared))
	}
}
