package assemble_test

import (
	"slices"
	"testing"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/season"
)

// TestPortraits: a renamed driver keeps the portrait, a new driver gets one, and drivers outside the
// archive get none.
func TestPortraits(t *testing.T) {
	day := time.Date(2026, 3, 8, 0, 0, 0, 0, time.UTC)
	archive := func(drivers ...season.DriverID) season.Facts {
		f := season.Facts{
			Drivers: make(map[season.DriverID]season.Driver), Teams: map[season.TeamID]season.Team{"rosso": {ID: "rosso", Name: "Rosso"}},
			Circuits: map[season.CircuitID]season.Circuit{"ring": {ID: "ring", Name: "Ring"}},
		}
		round := season.Round{Number: 1, GrandPrix: "austria", Name: "Austrian Grand Prix", Circuit: "ring", Date: day, Start: day.Add(13 * time.Hour)}
		for i, id := range drivers {
			f.Drivers[id] = season.Driver{ID: id, Name: string(id), FirstName: "A", LastName: string(id), Abbreviation: "ABC", Country: "ITA"}
			round.Entries = append(round.Entries, season.Entry{Driver: id, Team: "rosso", Number: i + 1})
		}
		f.Seasons = []season.Season{{Year: 2026, Rounds: []season.Round{round}}}
		return f
	}
	const template = "https://images.example/{driver}.png"
	old := archive("andrea-kimi-antonelli", "lando-norris")
	old.Headshots = season.Headshots{Template: template, Drivers: []season.DriverID{"andrea-kimi-antonelli"}}
	for _, test := range []struct {
		name    string
		current season.Facts
		wanted  *season.Headshots
		want    season.Headshots
	}{
		{"from the archive in use", old, nil, season.Headshots{Template: template, Drivers: []season.DriverID{"kimi-antonelli"}}},
		{
			"from the settings", old,
			&season.Headshots{Template: "https://other.example/{code}.png", Drivers: []season.DriverID{"kimi-antonelli", "andrea-kimi-antonelli", "arvid-lindblad", "lando-norris"}},
			season.Headshots{Template: "https://other.example/{code}.png", Drivers: []season.DriverID{"kimi-antonelli", "lando-norris"}},
		},
		{
			"for a new driver", archive("kimi-antonelli", "arvid-lindblad"),
			&season.Headshots{Template: template, Drivers: []season.DriverID{"arvid-lindblad"}},
			season.Headshots{Template: template, Drivers: []season.DriverID{"arvid-lindblad"}},
		},
		{"none", archive("kimi-antonelli"), nil, season.Headshots{}},
		{"removed by the settings", old, &season.Headshots{}, season.Headshots{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := assemble.Assemble(assemble.Input{
				Current: test.current, Now: day, Headshots: test.wanted,
				Aliases: map[season.DriverID]season.DriverID{"andrea-kimi-antonelli": "kimi-antonelli"},
				Decided: func(int, season.GrandPrixID) assemble.Decided { return assemble.Decided{} },
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := out.Facts.Headshots; got.Template != test.want.Template || !slices.Equal(got.Drivers, test.want.Drivers) {
				t.Errorf("portraits are %+v, want %+v", got, test.want)
			}
		})
	}
}
