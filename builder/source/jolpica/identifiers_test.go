package jolpica_test

import (
	"archive/zip"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"gridcast/builder/season"
	"gridcast/builder/source/jolpica"
	"gridcast/deploy/must"
)

// dataFolder holds real data, beside the checkout.
const dataFolder = "../../../../shared/data"

// TestCircuitsAreTheSamePlaces: each circuit of Jolpica is one of F1DB, within fifteen kilometres of it, and no two are one.
func TestCircuitsAreTheSamePlaces(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(dataFolder, "jolpica", "ergast", "f1", "circuits__limit=100.json"))
	if err != nil {
		t.Skip("no circuits of Jolpica: ", err)
	}
	var theirs struct {
		MRData struct {
			CircuitTable struct {
				Circuits []struct {
					CircuitID string `json:"circuitId"`
					Location  struct {
						Lat  float64 `json:"lat,string"`
						Long float64 `json:"long,string"`
					}
				}
			}
		}
	}
	must.Do(t, json.Unmarshal(text, &theirs))
	var circuits []struct {
		ID                  string
		Latitude, Longitude float64
	}
	readF1DB(t, "f1db-circuits.json", &circuits)
	names := must.Get(jolpica.Names())(t)
	places := map[string][2]float64{}
	for _, c := range circuits {
		places[c.ID] = [2]float64{c.Latitude, c.Longitude}
	}
	seen := map[string]string{}
	for _, c := range theirs.MRData.CircuitTable.Circuits {
		id, err := names.Circuit(c.CircuitID, 2024)
		if err != nil {
			t.Error(err)
			continue
		}
		at, ok := places[string(id)]
		if !ok {
			t.Errorf("%s is %s, which F1DB does not have", c.CircuitID, id)
			continue
		}
		north := c.Location.Lat - at[0]
		east := (c.Location.Long - at[1]) * math.Cos(c.Location.Lat*math.Pi/180)
		if apart := 111 * math.Hypot(north, east); apart > 15 {
			t.Errorf("%s is %.0f km from %s", c.CircuitID, apart, id)
		}
		other := seen[string(id)]
		must.Hold(t, other == "", "%s and %s are both %s", other, c.CircuitID, id)
		seen[string(id)] = c.CircuitID
	}
	must.Hold(t, len(seen) == 77, "joined %d circuits, want 77", len(seen))
}

// TestTeamsAreTheSameTeams: each driver in a standings table of Jolpica raced in that season for the teams of F1DB that the
// table of equivalents names.
func TestTeamsAreTheSameTeams(t *testing.T) {
	raced := map[string]bool{}
	var rows []struct {
		Year                    int
		DriverID, ConstructorID string
	}
	readF1DB(t, "f1db-races-race-results.json", &rows)
	for _, r := range rows {
		raced[fmt.Sprint(r.Year, r.DriverID, r.ConstructorID)] = true
	}
	names := must.Get(jolpica.Names())(t)
	joined := map[season.TeamID]bool{}
	for _, file := range []string{"1980/14/driverstandings__limit=21.json", "2023/driverstandings.json"} {
		text, err := os.ReadFile(filepath.Join(dataFolder, "jolpica", "ergast", "f1", filepath.FromSlash(file)))
		if err != nil {
			t.Skip("no standings of Jolpica: ", err)
		}
		var table struct {
			MRData struct {
				StandingsTable struct {
					StandingsLists []struct {
						Season          int `json:"season,string"`
						DriverStandings []struct {
							Driver       struct{ DriverID string }
							Constructors []struct{ ConstructorID string }
						}
					}
				}
			}
		}
		must.Do(t, json.Unmarshal(text, &table))
		list := table.MRData.StandingsTable.StandingsLists[0]
		for _, s := range list.DriverStandings {
			driver, err := names.Driver(s.Driver.DriverID, list.Season)
			if err != nil {
				t.Error(err)
			}
			for _, c := range s.Constructors {
				team, err := names.Team(c.ConstructorID, list.Season)
				if err != nil || !raced[fmt.Sprint(list.Season, driver, team)] {
					t.Errorf("%d: %s of %s is %s, for whom %s did not race, %v", list.Season, s.Driver.DriverID, c.ConstructorID, team, driver, err)
				}
				joined[team] = true
			}
		}
	}
	must.Hold(t, len(joined) >= 17, "joined %d teams", len(joined))
}

// readF1DB reads a file of F1DB's release.
func readF1DB(t *testing.T, name string, into any) {
	t.Helper()
	release, err := zip.OpenReader(filepath.Join(dataFolder, "f1db", "f1db-json-splitted.zip"))
	if err != nil {
		t.Skip("no release of F1DB: ", err)
	}
	defer release.Close()
	part, err := release.Open(name)
	if err == nil {
		err = json.NewDecoder(part).Decode(into)
	}
	must.Do(t, err)
}

// TestDriversAreTheSamePersons: each driver whom the Ergast tables and the table of equivalents name has the birth date
// that F1DB has for the identifier, and no two have one identifier.
func TestDriversAreTheSamePersons(t *testing.T) {
	file, err := os.Open(filepath.Join(dataFolder, "ergast-laps", "drivers.csv.gz"))
	if err != nil {
		t.Skip("the tables of Ergast are not here: ", err)
	}
	defer file.Close()
	unpacked := must.Get(gzip.NewReader(file))(t)
	rows := must.Get(csv.NewReader(unpacked).ReadAll())(t)
	var drivers []struct {
		ID   string `json:"id"`
		Born string `json:"dateOfBirth"`
	}
	readF1DB(t, "f1db-drivers.json", &drivers)
	born := map[string]string{}
	for _, d := range drivers {
		born[d.ID] = d.Born
	}
	names := must.Get(jolpica.Names())(t)
	joined, seen := 0, map[string]string{}
	for _, row := range rows[1:] { // driverId, driverRef, number, code, forename, surname, dob, …
		id, err := names.Driver(row[1], 2024)
		if err != nil || born[string(id)] == "" {
			continue // not in the table, or newer than the release
		}
		joined++
		if born[string(id)] != row[6] {
			t.Errorf("%s was born on %s, and %s on %s", row[1], row[6], id, born[string(id)])
		}
		if other := seen[string(id)]; other != "" {
			t.Errorf("%s and %s are both %s", other, row[1], id)
		}
		seen[string(id)] = row[1]
	}
	must.Hold(t, joined >= 820, "joined %d of %d drivers, want at least 820", joined, len(rows)-1)
}
