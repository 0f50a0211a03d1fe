package widget_test

import (
	"bytes"
	"compress/gzip"
	"regexp"
	"strings"
	"testing"

	"gridcast/deploy/must"
	"gridcast/deploy/widget"
	"gridcast/schemas/docs"
)

// TestReleasesAreSmallAndWhole: a release says its version, imports nothing, and takes less than 5 KB.
func TestReleasesAreSmallAndWhole(t *testing.T) {
	for _, r := range widget.Releases() {
		var small bytes.Buffer
		w := must.Get(gzip.NewWriterLevel(&small, gzip.BestCompression))(t)
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
		must.Hold(t, bytes.HasPrefix(r.Module, []byte("// gridcast "+name+":")), "%s does not begin with its version", r.Version)
		if found := regexp.MustCompile(`(?m)^\s*import\s|https?://[a-z]`).Find(r.Module); found != nil {
			t.Errorf("%s depends on others: %s", r.Version, found)
		}
	}
}

// TestDocumentationNamesTheNewest: the page about the widget names the newest files, every element, and every
// property of the style sheets.
func TestDocumentationNamesTheNewest(t *testing.T) {
	page := ""
	for _, d := range docs.Documents() {
		if d.Path == "/docs/widget.md" {
			page = string(d.Body)
		}
	}
	charts := 0
	for i, r := range widget.Releases() {
		if strings.HasPrefix(r.Version, "charts-") {
			charts++
		}
		if i > 0 && charts != 1 {
			continue // an earlier release
		}
		wanted := []string{"/widget/" + r.Version + "/gridcast.js"}
		for _, m := range regexp.MustCompile(`customElements\.define\("([a-z-]+)"|<(gridcast-[a-z]+)>|var\((--gridcast-[a-z]+)`).FindAllStringSubmatch(string(r.Module), -1) {
			wanted = append(wanted, m[1]+m[2]+m[3])
		}
		must.Hold(t, len(wanted) >= 8, "%s: found %q alone", r.Version, wanted)
		must.Show(t, "/docs/widget", page, wanted...)
	}
}
