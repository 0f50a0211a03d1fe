package deploy_test

import (
	"os"
	"regexp"
	"testing"

	"gridcast/deploy/must"

	"golang.org/x/mod/modfile"
)

// TestDependenciesPage compares the tables of deploy/docs/dependencies.md with the direct requirements of go.mod.
func TestDependenciesPage(t *testing.T) {
	text := must.Get(os.ReadFile("../go.mod"))(t)
	module := must.Get(modfile.Parse("go.mod", text, nil))(t)
	page := must.Get(os.ReadFile("docs/dependencies.md"))(t)
	described := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (v[^,]+), [0-9-]{10} \\| [^|]+ \\| [^|]+ \\| [^|]+ \\|$").FindAllStringSubmatch(string(page), -1) {
		described[row[1]] = row[2]
	}
	for _, r := range module.Require {
		if !r.Indirect && described[r.Mod.Path] != r.Mod.Version {
			t.Errorf("%s: the page has the version %q, go.mod has %s", r.Mod.Path, described[r.Mod.Path], r.Mod.Version)
		}
		delete(described, r.Mod.Path)
	}
	for path := range described {
		t.Errorf("the page describes %s, which go.mod does not require", path)
	}
}
