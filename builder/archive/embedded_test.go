package archive_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"gridcast/builder/archive"
	"gridcast/builder/source/f1db"
)

var update = flag.Bool("update", false, "write seasons.zst from the release in ../shared/data")

const (
	release = "../../../shared/data/f1db/f1db-json-splitted.zip"
	colours = "../../../shared/data/team-colours.json"
)

// TestEmbeddedIsImport makes the embedded seasons again from the release and compares.
func TestEmbeddedIsImport(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a whole release")
	}
	f, err := os.Open(colours)
	if os.IsNotExist(err) {
		t.Skipf("%s is missing", colours)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	known, err := f1db.ReadColours(f)
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := f1db.Import(release, f1db.Options{From: 2007, Colours: known})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if _, err := archive.WriteFile("seasons.zst", a); err != nil {
			t.Fatal(err)
		}
		t.Skip("seasons.zst written; run again without -update")
	}
	var made bytes.Buffer
	if err := archive.Encode(&made, a); err != nil {
		t.Fatal(err)
	}
	if got, want := archive.Sum(archive.EmbeddedBytes()), archive.Sum(made.Bytes()); got != want {
		t.Errorf("seasons.zst has sum %s, the release gives %s; run go test ./builder/archive -run EmbeddedIsImport -update", got, want)
	}
}
