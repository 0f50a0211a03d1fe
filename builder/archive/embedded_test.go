package archive_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
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
	embedded, err := archive.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	imported, err := archive.Pack(a, archive.Frames(embedded))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		// The tool zstd makes the file a quarter smaller than our encoder, and so the binary.
		file, err := archive.Recompress(imported, func(lines []byte) ([]byte, error) {
			zstd := exec.Command("zstd", "--ultra", "-22", "--zstd=wlog=23", "--check", "--stdout", "--quiet")
			zstd.Stdin = bytes.NewReader(lines)
			return zstd.Output()
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("seasons.zst", file, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Skip("seasons.zst written; run again without -update")
	}
	if embedded.SHA256 != imported.SHA256 {
		t.Errorf("seasons.zst has the digest %s, the release gives %s; run go test ./builder/archive -run EmbeddedIsImport -update", embedded.SHA256, imported.SHA256)
	}
}
