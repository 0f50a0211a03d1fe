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
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

func TestParseLapTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"59.123":      59*time.Second + 123*time.Millisecond,
		"1:29.179":    89*time.Second + 179*time.Millisecond,
		"1:05.5":      65*time.Second + 500*time.Millisecond,
		"45":          45 * time.Second,
		"1:23:06.801": 83*time.Minute + 6*time.Second + 801*time.Millisecond,
	} {
		got, ok := season.ParseLapTime(text)
		must.Hold(t, got == want && ok, "ParseLapTime(%q) = %s, %t, want %s", text, got, ok, want)
	}
	for _, text := range []string{"", "5:", ":29.179", "1:2m3.5", "1:29,179", "-1:29.179", "1:29.1791", "1.2.3", "a"} {
		got, ok := season.ParseLapTime(text)
		must.Hold(t, got == 0 && !ok, "ParseLapTime(%q) = %s, %t, want no time", text, got, ok)
	}
}

func TestHeadshots(t *testing.T) {
	facts := embedded(t).Facts()
	facts.Headshots = season.Headshots{
		Template: "https://images.example/{year}/{code}-{driver}.png",
		Drivers:  []season.DriverID{"lando-norris", "arvid-lindblad"}, // the second came in 2026
	}
	a := must.Get(season.New(facts))(t)
	v := a.AsOf(time.Date(2024, 7, 1, 0, 0, 0, 0, time.UTC))
	for driver, want := range map[season.DriverID]string{
		"lando-norris":   "https://images.example/2024/NOR-lando-norris.png",
		"max-verstappen": "",
		"arvid-lindblad": "",
	} {
		must.Equal(t, string(driver), want, v.Headshot(driver, "NOR", 2024))
	}
	must.Hold(t, len(v.Headshots.Drivers) == 1, "the view of 2024 has headshots of %v, want no driver of the future", v.Headshots.Drivers)
	facts.Headshots.Drivers = []season.DriverID{"nobody"}
	golden.Sentence(t, "headshots of nobody", must.Err(season.New(facts)))
	facts.Headshots = season.Headshots{Template: "http://images.example/{code}.png"}
	golden.Sentence(t, "headshots without TLS", must.Err(season.New(facts)))
}

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
		data := must.Get(os.ReadFile(file))(t)
		var meetings []struct {
			Circuit string    `json:"circuit_short_name"`
			Offset  string    `json:"gmt_offset"`
			Start   time.Time `json:"date_start"`
		}
		must.Do(t, json.Unmarshal(data, &meetings))
		for _, m := range meetings {
			name := strings.ToLower(m.Circuit)
			id, ok := circuits[name]
			if !ok {
				id = season.CircuitID(strings.ReplaceAll(name, " ", "-"))
			}
			if _, ok := known[id]; !ok {
				continue
			}
			zone := must.Get(time.LoadLocation(season.TimeZone(id)))(t)
			offset := must.Get(time.Parse("15:04:05", strings.TrimPrefix(m.Offset, "-")))(t)
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
	must.Hold(t, len(compared) >= 20, "compared %d circuits, want at least 20", len(compared))
}
