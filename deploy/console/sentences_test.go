package console_test

import (
	"flag"
	"fmt"
	"html"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/sentences.txt anew")

// saying guards testdata/sentences.txt, which alone holds the sentences for people that tests compare: a name
// and a text a line.
var saying sync.Mutex

// varies is the part of a sentence that differs by run: a time, a duration, the port of a test, a generated
// identifier.
var varies = regexp.MustCompile(`before \d+ [A-Z][a-z]+ \d{4} \d\d:\d\d UTC|(\d+ d )?\d\d:\d\d:\d\d|\b\d+(\.\d+)? m?s\b|(127\.0\.0\.1|localhost):\d{2,}|\b([0-9a-f]{12}|wh[a-z2-7]{10})\b|…[A-Za-z0-9]+`)

// says compares a text for people with testdata/sentences.txt.
func says(t *testing.T, name, got string) {
	t.Helper()
	const file = "testdata/sentences.txt"
	saying.Lock()
	defer saying.Unlock()
	stored, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got = strings.Join(strings.Fields(varies.ReplaceAllString(got, "~")), " ")
	lines := strings.Split(strings.TrimSpace(string(stored)), "\n")
	i, found := slices.BinarySearchFunc(lines, name, func(line, name string) int {
		of, _, _ := strings.Cut(line, "\t")
		return strings.Compare(of, name)
	})
	switch line := fmt.Sprintf("%s\t%s", name, got); {
	case found && lines[i] == line:
	case !*update:
		t.Errorf("%s:\ngot  %s\nwant %s", name, line, slices.Concat(lines, []string{""})[i])
	case found:
		lines[i] = line
	default:
		lines = slices.Insert(lines, i, line)
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.TrimSpace(strings.Join(lines, "\n"))+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

var tags = regexp.MustCompile(`(?s)<(script|style).*?</(script|style)>|<[^>]*>`)

// words returns the text of a page.
func words(page string) string { return html.UnescapeString(tags.ReplaceAllString(page, " ")) }
