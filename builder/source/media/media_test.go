package media_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/season"
	"gridcast/builder/source/media"
)

func TestReadColours(t *testing.T) {
	got, err := media.ReadColours(strings.NewReader("# ours\n\n2023 rosso #aa0000\n 2024\tverde  #00CC00\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(media.Colours{2023: {"rosso": "#AA0000"}, 2024: {"verde": "#00CC00"}}, got); diff != "" {
		t.Error(diff)
	}
	for data, want := range map[string]string{
		"2023 rosso":                             "line 1: ",
		"\nnow rosso #AA0000":                    `line 2: "now" is not a year`,
		"2023 rosso red":                         `"red" is not of the form #RRGGBB`,
		"2023 rosso #AA0000\n2023 rosso #BB0000": "line 2: 2023 rosso has a colour already",
		`{"seasons":{}}`:                         "YEAR TEAM #RRGGBB",
	} {
		if _, err := media.ReadColours(strings.NewReader(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", data, err, want)
		}
	}
}

func TestReadHeadshots(t *testing.T) {
	got, err := media.ReadHeadshots(strings.NewReader("# ours\nhttps://images.example/{year}/{code}.png\nann\nbob\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := season.Headshots{Template: "https://images.example/{year}/{code}.png", Drivers: []season.DriverID{"ann", "bob"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for data, want := range map[string]string{
		"":                               "no template",
		"http://images.example/{code}":   "https",
		"https://images.example/{name}":  "{name}",
		"https://images.example/{code":   "{code",
		"https://images.example/one.png": "{driver} or {code}",
		"ann\nhttps://x/{code}":          "line 1: ",
	} {
		if _, err := media.ReadHeadshots(strings.NewReader(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", data, err, want)
		}
	}
}

func TestDefaultAndOverride(t *testing.T) {
	m := media.Default()
	if got := m.Colours[2026]["cadillac"]; got != "#444444" {
		t.Errorf("Cadillac's colour of 2026 is %q", got)
	}
	for year := 2018; year <= 2026; year++ {
		if n := len(m.Colours[year]); n < 10 || n > 11 {
			t.Errorf("%d teams have a colour in %d, want all of them", n, year)
		}
	}
	m.Colours.Override(media.Colours{2026: {"cadillac": "#1A1A1A"}, 1950: {"alfa-romeo": "#990000"}})
	if m.Colours[2026]["cadillac"] != "#1A1A1A" || m.Colours[1950]["alfa-romeo"] != "#990000" || m.Colours[2026]["audi"] != "#FF2D00" {
		t.Errorf("after the override: %v", m.Colours[2026])
	}
	if again := media.Default(); again.Colours[2026]["cadillac"] != "#444444" || again.Colours[1950] != nil {
		t.Error("an override changes what others get")
	}
}

func TestApply(t *testing.T) {
	facts := season.Facts{
		Teams:   map[season.TeamID]season.Team{"rosso": {ID: "rosso"}},
		Drivers: map[season.DriverID]season.Driver{"ann": {ID: "ann"}},
		Seasons: []season.Season{{Year: 2022}, {Year: 2023}},
	}
	m := media.Media{
		Colours:   media.Colours{2023: {"rosso": "#AA0000", "blu": "#0000AA"}, 2024: {"verde": "#00AA00"}},
		Headshots: season.Headshots{Template: "https://images.example/{driver}.png", Drivers: []season.DriverID{"ann", "zoe"}},
	}
	colours, headshots := m.Apply(&facts)
	if colours != 1 || headshots != 1 {
		t.Errorf("%d colours and %d headshots of nobody, want 1 and 1", colours, headshots)
	}
	want := []season.Season{{Year: 2022}, {Year: 2023, Colours: map[season.TeamID]string{"rosso": "#AA0000"}}}
	if diff := cmp.Diff(want, facts.Seasons); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]season.DriverID{"ann"}, facts.Headshots.Drivers); diff != "" {
		t.Error(diff)
	}
}
