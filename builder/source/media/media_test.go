package media_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/season"
	"gridcast/builder/source/media"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

func TestReadColours(t *testing.T) {
	got := must.Get(media.ReadColours(strings.NewReader("# ours\n\n2023 rosso #aa0000\n 2024\tverde  #00CC00\n")))(t)
	if diff := cmp.Diff(media.Colours{2023: {"rosso": "#AA0000"}, 2024: {"verde": "#00CC00"}}, got); diff != "" {
		t.Error(diff)
	}
	sentences := make(map[string]string)
	for _, data := range []string{
		"2023 rosso",
		"\nnow rosso #AA0000",
		"2023 rosso red",
		"2023 rosso #AA0000\n2023 rosso #BB0000",
		`{"seasons":{}}`,
	} {
		_, err := media.ReadColours(strings.NewReader(data))
		if err == nil {
			t.Errorf("%q is read without an error", data)
			continue
		}
		sentences[data] = err.Error()
	}
	golden.Inputs(t, "testdata/colours.golden", sentences)
}

func TestReadHeadshots(t *testing.T) {
	got := must.Get(media.ReadHeadshots(strings.NewReader("# ours\nhttps://images.example/{year}/{code}.png\nann\nbob\n")))(t)
	want := season.Headshots{Template: "https://images.example/{year}/{code}.png", Drivers: []season.DriverID{"ann", "bob"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	sentences := make(map[string]string)
	for _, data := range []string{
		"",
		"http://images.example/{code}",
		"https://images.example/{name}",
		"https://images.example/{code",
		"https://images.example/one.png",
		"ann\nhttps://x/{code}",
	} {
		_, err := media.ReadHeadshots(strings.NewReader(data))
		if err == nil {
			t.Errorf("%q is read without an error", data)
			continue
		}
		sentences[data] = err.Error()
	}
	golden.Inputs(t, "testdata/headshots.golden", sentences)
}

func TestDefaultAndOverride(t *testing.T) {
	m := media.Default()
	got := m.Colours[2026]["cadillac"]
	must.Hold(t, got == "#444444", "Cadillac's colour of 2026 is %q", got)
	for year := 2018; year <= 2026; year++ {
		if n := len(m.Colours[year]); n < 10 || n > 11 {
			t.Errorf("%d teams have a colour in %d, want all of them", n, year)
		}
	}
	m.Colours.Override(media.Colours{2026: {"cadillac": "#1A1A1A"}, 1950: {"alfa-romeo": "#990000"}})
	if m.Colours[2026]["cadillac"] != "#1A1A1A" || m.Colours[1950]["alfa-romeo"] != "#990000" || m.Colours[2026]["audi"] != "#FF2D00" {
		t.Errorf("after the override: %v", m.Colours[2026])
	}
	again := media.Default()
	must.Hold(t, again.Colours[2026]["cadillac"] == "#444444" && again.Colours[1950] == nil, "an override changes what others get")
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
	must.Hold(t, colours == 1 && headshots == 1, "%d colours and %d headshots of nobody, want 1 and 1", colours, headshots)
	want := []season.Season{{Year: 2022}, {Year: 2023, Colours: map[season.TeamID]string{"rosso": "#AA0000"}}}
	if diff := cmp.Diff(want, facts.Seasons); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]season.DriverID{"ann"}, facts.Headshots.Drivers); diff != "" {
		t.Error(diff)
	}
}
