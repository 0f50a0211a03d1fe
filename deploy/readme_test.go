package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gridcast/schemas/catalog"
)

// readReadme returns the text of README.md.
func readReadme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReadmeIsTwoPages bounds README.md to 1,500 words.
func TestReadmeIsTwoPages(t *testing.T) {
	if n := len(strings.Fields(readReadme(t))); n > 1500 {
		t.Errorf("README.md has %d words, want at most 1,500", n)
	}
}

// TestReadmeListsEveryEndpoint names an endpoint without a row in the table of README.md.
func TestReadmeListsEveryEndpoint(t *testing.T) {
	for _, e := range catalog.Endpoints {
		if !strings.Contains(readReadme(t), "`"+e.Path+"` ") {
			t.Errorf("README.md does not name %s", e.Path)
		}
	}
}

// TestReadmeNamesWhatExists follows every path and link in README.md and the pages of deploy/docs. It holds each of
// the six walks through the house to seven files.
func TestReadmeNamesWhatExists(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	path := regexp.MustCompile("`((?:builder|edge|snapshots|scheduler|schemas|deploy)/[a-z0-9_./-]+)`")
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[a-z0-9-]+)?\)`)
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range path.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join("..", match[1])); err != nil {
				t.Errorf("%s names %s: %v", page, match[1], err)
			}
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), match[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, match[1], err)
			}
		}
	}
	_, walks, _ := strings.Cut(readReadme(t), "Six walks")
	walks, _, _ = strings.Cut(walks, "\n\nA new endpoint")
	list := strings.Split(walks, "\n- **")[1:]
	if len(list) != 6 {
		t.Fatalf("got %d walks, want 6", len(list))
	}
	for _, walk := range list {
		name, files, _ := strings.Cut(walk, "**")
		// The console page of a command is another way in, not another step.
		steps := strings.Split(files, "→")
		if len(steps) > 7 {
			t.Errorf("%s: %d steps, want at most 7", name, len(steps))
		}
		for _, step := range steps {
			if !path.MatchString(step) {
				t.Errorf("%s: %q names no file", name, strings.TrimSpace(step))
			}
		}
	}
}
