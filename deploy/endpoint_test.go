package deploy_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
)

// placesOfEndpoint are the places that the documentation of schemas/catalog lists for a new endpoint, each with its form
// of the name. A derived endpoint has no renderer, and some have a reason to be in no download.
var placesOfEndpoint = []struct{ file, form string }{
	{"schemas/catalog/catalog.go", `Name: CONSTANT,`},
	{"schemas/contracts.go", `(catalog.CONSTANT,`},
	{"schemas/paths.yaml", "/api/v1/PATH:\n"},
	{"schemas/endpoints.yaml", "\nPATH:\n"},
	{"builder/render/render.go", `catalog.CONSTANT:`},
	{"builder/bulk/bulk.go builder/bulk/bulk_test.go", `catalog.CONSTANT`},
	{"README.md", "| `/PATH` |"},
	{"deploy/CHANGELOG.md", "`/PATH"},
}

// TestEndpointIsInEveryPlace names the places that an endpoint lacks, and the other files that know the name of one that
// only the listed places should know.
func TestEndpointIsInEveryPlace(t *testing.T) {
	text := func(files string) string {
		var all strings.Builder
		for file := range strings.FieldsSeq(files) {
			body := must.Get(os.ReadFile(filepath.Join("..", file)))(t)
			all.Write(body)
		}
		return strings.Join(strings.Fields(all.String()), " ")
	}
	for _, e := range catalog.Endpoints {
		if !e.Additive || e.File {
			continue
		}
		for _, place := range placesOfEndpoint {
			if e.Derived && place.file == "builder/render/render.go" {
				continue
			}
			form := strings.NewReplacer("CONSTANT", constantOf(e.Name), "PATH", string(e.Name)).Replace(place.form)
			must.Show(t, fmt.Sprintf("/%s: %s", e.Name, place.file), text(place.file), strings.TrimSpace(form))
		}
	}
	listed := []string{"builder/bulk/bulk.go", "builder/render/render.go", "builder/check/statistics.go", "builder/check/contradictions.go", "edge/edgetest/version.go", "schemas/contracts.go", "builder/bulk/downloads.go"}
	must.Do(t, filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		path = filepath.ToSlash(strings.TrimPrefix(path, "../"))
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || slices.Contains(listed, path) {
			return err
		}
		for _, name := range []catalog.Name{catalog.Sessions, catalog.StandingsProgress, catalog.HeadToHead, catalog.Careers, catalog.FormerCareers, catalog.Identifiers} {
			must.Hold(t, !strings.Contains(text(path), "catalog."+constantOf(name)),
				"%s knows /%s; schemas/catalog does not list it among the places of an endpoint", path, name)
		}
		return nil
	}))
}

// constantOf returns the Go name of an endpoint: StandingsProgress of standings-progress, ChangesLog of changes/log.
func constantOf(name catalog.Name) string {
	var b strings.Builder
	for part := range strings.FieldsFuncSeq(string(name), func(r rune) bool { return r == '-' || r == '/' }) {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}
