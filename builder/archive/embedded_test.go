package archive_test

import (
	"bytes"
	"flag"
	"testing"

	"gridcast/builder/archive"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/media"
	"gridcast/builder/source/sourcetest"
)

var update = flag.Bool("update", false, "write seasons.zst from the release")

// TestEmbeddedIsImport makes the embedded seasons again from the release and compares.
func TestEmbeddedIsImport(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a whole release")
	}
	a, _, err := f1db.Import(sourcetest.Path(t, sourcetest.F1DB2026), f1db.Options{From: 2007, Media: media.Default()})
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
