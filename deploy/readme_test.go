package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeNamesWhatExists follows every path of the repository that README.md names in
// backquotes, and holds each walk through the house to six files.
func TestReadmeNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	path := regexp.MustCompile("`((?:builder|edge|snapshots|scheduler|schemas|deploy)/[a-z0-9_./-]+)`")
	for _, match := range path.FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join("..", match[1])); err != nil {
			t.Errorf("README.md names %s: %v", match[1], err)
		}
	}
	_, walks, _ := strings.Cut(string(text), "Four walks")
	walks, _, _ = strings.Cut(walks, "\n\nA new endpoint")
	list := strings.Split(walks, "\n- **")[1:]
	if len(list) != 4 {
		t.Fatalf("got %d walks, want 4", len(list))
	}
	for _, walk := range list {
		name, files, _ := strings.Cut(walk, "**")
		files, _, _ = strings.Cut(files, "\n\n")
		// The console page of a command is another way in, not another step.
		steps := strings.Split(files, "→")
		if len(steps) > 6 {
			t.Errorf("%s: %d steps, want at most 6", name, len(steps))
		}
		for _, step := range steps {
			if !path.MatchString(step) {
				t.Errorf("%s: %q names no file", name, strings.TrimSpace(step))
			}
		}
	}
}
