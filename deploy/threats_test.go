package deploy_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gridcast/deploy/must"
)

// TestThreats checks that every row of the threat model names a test, and that every test exists that this page, promises.md or
// region.md names.
func TestThreats(t *testing.T) {
	page := must.Get(os.ReadFile("docs/threats.md"))(t)
	tests := map[string]bool{}
	defined := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	must.Do(t, filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		for _, match := range defined.FindAllSubmatch(content, -1) {
			tests[string(match[1])] = true
		}
		return err
	}))
	named, rows := regexp.MustCompile("`(Test\\w+)`"), 0
	for row := range strings.Lines(string(page)) {
		if !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| Power") {
			continue
		}
		rows++
		names := named.FindAllStringSubmatch(row, -1)
		must.Hold(t, len(names) != 0, "no test for the row %.60s", row)
		for _, name := range names {
			if !tests[name[1]] {
				t.Errorf("there is no %s, named in the row %.60s", name[1], row)
			}
		}
	}
	for _, page := range []string{"docs/promises.md", "docs/region.md"} {
		for _, name := range named.FindAllStringSubmatch(string(must.Get(os.ReadFile(page))(t)), -1) {
			must.Hold(t, tests[name[1]], "%s names %s, which does not exist", page, name[1])
		}
	}
	must.Hold(t, rows >= 7, "the page has %d rows, want one for each of seven powers", rows)
}

// TestEdgesCannotWrite checks the rights that the policy of S3 gives edges.
func TestEdgesCannotWrite(t *testing.T) {
	data := must.Get(os.ReadFile("s3/policy.json"))(t)
	var policy struct {
		Statement []struct {
			Effect    string
			Principal struct{ AWS []string }
			Action    []string
		}
	}
	must.Do(t, json.Unmarshal(data, &policy))
	var rights []string
	for _, s := range policy.Statement {
		if slices.Contains(s.Principal.AWS, "edge") && s.Effect == "Allow" {
			rights = append(rights, s.Action...)
		}
	}
	want := []string{"s3:GetObject", "s3:ListBucket"}
	must.Hold(t, slices.Equal(rights, want), "edges may do %v, want %v", rights, want)
}
