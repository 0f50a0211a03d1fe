package openf1

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder/live"
)

// abuDhabi is the recording of session 9839, the Abu Dhabi Grand Prix of 2025.
var abuDhabi = live.Fixture{Session: 2025024, Start: time.Date(2025, 12, 7, 13, 0, 0, 0, time.UTC), Laps: 58}

var endpoints = []string{"position", "intervals", "laps", "race_control", "pit"}

// recorded returns the answers of the recording by endpoint.
func recorded(t *testing.T) map[string][]byte {
	t.Helper()
	dir := os.Getenv("GRIDCAST_TEST_DATA")
	if dir == "" {
		dir = "../../../../shared/data"
	}
	answers := map[string][]byte{}
	for _, endpoint := range endpoints {
		text, err := os.ReadFile(filepath.Join(dir, "openf1/v1", endpoint+"__session_key=9839.json"))
		if err != nil {
			t.Skipf("no recording of a race: %v", err)
		}
		answers[endpoint] = text
	}
	return answers
}

// TestObserve reads a whole race: every lap, the leader of each, and the order at the flag.
func TestObserve(t *testing.T) {
	r := newTiming()
	for endpoint, text := range recorded(t) {
		if _, err := r.merge(endpoint, text); err != nil {
			t.Fatal(err)
		}
	}
	seen, faults := r.observe(abuDhabi, abuDhabi.Start.Add(3*time.Hour), nil)
	for _, f := range faults {
		t.Error(f)
	}
	var all []live.Stored
	for _, o := range seen {
		all = append(all, live.Stored{Observation: o})
	}
	race := live.Reduce(all, live.Fixture{})
	if race.Lap != 58 || len(race.Moments) != 58 || race.State != live.Ended {
		t.Errorf("got %d moments up to lap %d, %s", len(race.Moments), race.Lap, race.State)
	}
	last := race.Latest()
	for i, car := range []string{"1", "81", "4", "16", "63"} {
		if string(last.Cars[i].Driver) != car {
			t.Errorf("place %d at the flag: got car %s, want %s", i+1, last.Cars[i].Driver, car)
		}
	}
}

// TestObserveWithoutFlag: a race is over when its leader has completed the distance, also without a message of the flag.
func TestObserveWithoutFlag(t *testing.T) {
	r := newTiming()
	if _, err := r.merge("laps", recorded(t)["laps"]); err != nil {
		t.Fatal(err)
	}
	seen, _ := r.observe(abuDhabi, abuDhabi.Start.Add(3*time.Hour), nil)
	if !slices.ContainsFunc(seen, func(o live.Observation) bool { return o.Phase == live.Over }) {
		t.Error("the race is not over")
	}
}

// TestPhases reads race control of the races of 2023 to 2025: each starts once and ends once, and each red flag
// is followed by a resumption or by the end.
func TestPhases(t *testing.T) {
	recorded(t)
	dir := os.Getenv("GRIDCAST_TEST_DATA")
	if dir == "" {
		dir = "../../../../shared/data"
	}
	races, flags := 0, 0
	for _, year := range []int{2023, 2024, 2025} {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("openf1/v1/sessions__year=%d__session_name=Race.json", year)))
		if err != nil {
			t.Fatal(err)
		}
		var sessions []struct {
			Key   int       `json:"session_key"`
			Start time.Time `json:"date_start"`
		}
		if err := json.Unmarshal(text, &sessions); err != nil {
			t.Fatal(err)
		}
		for _, s := range sessions {
			text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("openf1/v1/race_control__session_key=%d.json", s.Key)))
			if err != nil {
				continue // not recorded
			}
			r := newTiming()
			if _, err := r.merge("race_control", text); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range r.phases(live.Fixture{Session: int64(s.Key), Start: s.Start}) {
				got = append(got, string(o.Phase))
			}
			races++
			flags += strings.Count(strings.Join(got, " "), "suspended")
			if s.Key == 9157 { // its recording has no message of the flag
				got = append(got, string(live.Over))
			}
			if text := strings.Join(got, " "); !regexp.MustCompile(`^started( suspended resumed)*( suspended)? over$`).MatchString(text) {
				t.Errorf("%d of %s: got %q", s.Key, s.Start.Format(time.DateOnly), text)
			}
		}
	}
	t.Logf("%d races with %d suspensions", races, flags)
}
