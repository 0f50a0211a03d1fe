package season_test

import (
	"strings"
	"testing"
	"time"

	"gridcast/builder/season"
)

func TestHeadshots(t *testing.T) {
	facts := embedded(t).Facts()
	facts.Headshots = season.Headshots{
		Template: "https://images.example/{year}/{code}-{driver}.png",
		Drivers:  []season.DriverID{"lando-norris", "arvid-lindblad"}, // the second came in 2026
	}
	a, err := season.New(facts)
	if err != nil {
		t.Fatal(err)
	}
	v := a.AsOf(time.Date(2024, 7, 1, 0, 0, 0, 0, time.UTC))
	for driver, want := range map[season.DriverID]string{
		"lando-norris":   "https://images.example/2024/NOR-lando-norris.png",
		"max-verstappen": "",
		"arvid-lindblad": "",
	} {
		if got := v.Headshot(driver, "NOR", 2024); got != want {
			t.Errorf("%s: got %q, want %q", driver, got, want)
		}
	}
	if len(v.Headshots.Drivers) != 1 {
		t.Errorf("the view of 2024 has headshots of %v, want no driver of the future", v.Headshots.Drivers)
	}
	facts.Headshots.Drivers = []season.DriverID{"nobody"}
	if _, err := season.New(facts); err == nil || !strings.Contains(err.Error(), `headshots: unknown driver "nobody"`) {
		t.Errorf("got %v, want an error about nobody", err)
	}
	facts.Headshots = season.Headshots{Template: "http://images.example/{code}.png"}
	if _, err := season.New(facts); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("got %v, want an error about https", err)
	}
}
