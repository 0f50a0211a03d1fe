package widget_test

import (
	"bytes"
	"compress/gzip"
	"regexp"
	"strings"
	"testing"

	"gridcast/deploy/widget"
)

// TestReleasesAreSmallAndWhole: a release says its version, imports nothing, and takes less than 5 KB.
func TestReleasesAreSmallAndWhole(t *testing.T) {
	for _, r := range widget.Releases() {
		var small bytes.Buffer
		w, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(r.Module); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes, %d with gzip", r.Version, len(r.Module), small.Len())
		if small.Len() >= 5000 {
			t.Errorf("%s takes %d bytes with gzip, want less than 5000", r.Version, small.Len())
		}
		name := "widget " + r.Version
		if version, ok := strings.CutPrefix(r.Version, "charts-"); ok {
			name = "charts " + version
		}
		if !bytes.HasPrefix(r.Module, []byte("// gridcast "+name+":")) {
			t.Errorf("%s does not begin with its version", r.Version)
		}
		if found := regexp.MustCompile(`(?m)^\s*import\s|https?://[a-z]`).Find(r.Module); found != nil {
			t.Errorf("%s depends on others: %s", r.Version, found)
		}
	}
}
