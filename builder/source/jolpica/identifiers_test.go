package jolpica_test

import (
	"archive/zip"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"gridcast/builder/source/jolpica"
)

// dataFolder holds real data, beside the checkout.
const dataFolder = "../../../../shared/data"

// TestDriversAreTheSamePersons: each driver whom the Ergast tables and the table of equivalents name has the birth date
// that F1DB has for the identifier, and no two have one identifier.
func TestDriversAreTheSamePersons(t *testing.T) {
	file, err := os.Open(filepath.Join(dataFolder, "ergast-laps", "drivers.csv.gz"))
	if err != nil {
		t.Skip("the tables of Ergast are not here: ", err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(unpacked).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	facts, err := zip.OpenReader(filepath.Join(dataFolder, "f1db", "f1db-json-splitted.zip"))
	if err != nil {
		t.Skip("no release of F1DB: ", err)
	}
	defer facts.Close()
	part, err := facts.Open("f1db-drivers.json")
	if err != nil {
		t.Fatal(err)
	}
	var drivers []struct {
		ID   string `json:"id"`
		Born string `json:"dateOfBirth"`
	}
	if err := json.NewDecoder(part).Decode(&drivers); err != nil {
		t.Fatal(err)
	}
	born := map[string]string{}
	for _, d := range drivers {
		born[d.ID] = d.Born
	}
	names, err := jolpica.Names()
	if err != nil {
		t.Fatal(err)
	}
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
	if joined < 820 {
		t.Errorf("joined %d of %d drivers, want at least 820", joined, len(rows)-1)
	}
}
