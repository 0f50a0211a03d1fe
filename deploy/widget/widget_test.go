package widget_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/widget"
	"gridcast/schemas/docs"
)

// TestReleasesAreSmallAndWhole: a release has all elements, says its version, imports nothing, and takes at most 9 KB.
func TestReleasesAreSmallAndWhole(t *testing.T) {
	for _, r := range widget.Releases() {
		var small bytes.Buffer
		w := must.Get(gzip.NewWriterLevel(&small, gzip.BestCompression))(t)
		if _, err := w.Write(r.Module); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes, %d with gzip", r.Version, len(r.Module), small.Len())
		if small.Len() > 9000 {
			t.Errorf("%s takes %d bytes with gzip, want at most 9,000", r.Version, small.Len())
		}
		must.Hold(t, bytes.HasPrefix(r.Module, []byte("// gridcast widget "+r.Version+":")), "%s does not begin with its version", r.Version)
		found := regexp.MustCompile(`(?m)(^|;)\s*import[\s"({]|https?://[a-z]`).Find(r.Module)
		must.Hold(t, found == nil, "%s depends on others: %s", r.Version, found)
	}
}

// TestReleaseIsMadeFromItsSource: the first line of the newest release names the digest of the source that it was made
// from. With -update esbuild makes the release anew, which is right only while no page can pin its hash.
func TestReleaseIsMadeFromItsSource(t *testing.T) {
	newest := widget.Releases()[0]
	source := must.Get(os.ReadFile("gridcast.js"))(t)
	line := fmt.Sprintf("// gridcast widget %s: see /docs/widget. Made from gridcast.js %x.\n", newest.Version, sha256.Sum256(source))
	if golden.Updates() {
		program := exec.CommandContext(t.Context(), "go", "tool", "-modfile=../tools/go.mod", "esbuild", "--minify", "--format=esm", "--charset=utf8")
		program.Stdin = bytes.NewReader(source)
		module := must.Get(program.Output())(t)
		must.Do(t, os.WriteFile("gridcast-"+newest.Version+".js", append([]byte(line), module...), 0o644))
		return
	}
	must.Hold(t, bytes.HasPrefix(newest.Module, []byte(line)), "gridcast-%s.js is not made from gridcast.js: go test ./deploy/widget -run TestReleaseIsMadeFromItsSource -update makes it", newest.Version)
}

// TestDocumentationNamesTheNewest: the page about the widget names the newest file, every element, every property of
// the style sheet, every part, and every attribute.
func TestDocumentationNamesTheNewest(t *testing.T) {
	page := ""
	for _, d := range docs.Documents() {
		if d.Path == "/docs/widget.md" {
			page = string(d.Body)
		}
	}
	source := string(must.Get(os.ReadFile("gridcast.js"))(t))
	wanted := []string{"/widget/" + widget.Releases()[0].Version + "/gridcast.js"}
	for _, m := range regexp.MustCompile(`<(gridcast-[a-z]+)>|var\((--gridcast-[a-z]+)|part: "([a-z]+)"`).FindAllStringSubmatch(source, -1) {
		wanted = append(wanted, m[1]+m[2]+m[3])
	}
	must.Hold(t, len(wanted) >= 20, "found %q alone", wanted)
	for _, m := range regexp.MustCompile(`"(\w+)"`).FindAllStringSubmatch(regexp.MustCompile(`observedAttributes = .*`).FindString(source), -1) {
		wanted = append(wanted, "`"+m[1]+"`")
	}
	must.Show(t, "/docs/widget", page, wanted...)
}
