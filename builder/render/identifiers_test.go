package render_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/render"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/source/jolpica"
	"gridcast/schemas"
)

// foreign reads the tables of foreign names, by source.
func foreign(t *testing.T) map[string]source.Equivalents {
	t.Helper()
	tables := map[string]source.Equivalents{}
	for name, read := range map[string]func() (source.Equivalents, error){"Jolpica": jolpica.Names, "OpenF1": render.OpenF1Names} {
		var err error
		if tables[name], err = read(); err != nil {
			t.Fatal(err)
		}
	}
	return tables
}

// TestCoverageIsSaid: the document of the API says how many drivers, teams and circuits have names of the other sources.
func TestCoverageIsSaid(t *testing.T) {
	document := strings.Join(strings.Fields(string(schemas.OpenAPIYAML())), " ")
	for name, table := range foreign(t) {
		want := fmt.Sprintf("%s's names are known of %d drivers, %d teams, %d circuits and %d Grands Prix", name,
			len(table.Foreign("driver")), len(table.Foreign("team")), len(table.Foreign("circuit")), len(table.Foreign("grand_prix")))
		if !strings.Contains(document, want) {
			t.Errorf("the document does not say that %s", want)
		}
	}
}

// TestNamesOfOpenF1 checks that each row of the table names an identifier of the embedded seasons. No reader of OpenF1
// would notice a wrong one.
func TestNamesOfOpenF1(t *testing.T) {
	facts, table := archivetest.Embedded(t).Facts(), foreign(t)["OpenF1"]
	known := map[string]func(id string) bool{
		"driver":  func(id string) bool { _, ok := facts.Drivers[season.DriverID(id)]; return ok },
		"team":    func(id string) bool { _, ok := facts.Teams[season.TeamID(id)]; return ok },
		"circuit": func(id string) bool { _, ok := facts.Circuits[season.CircuitID(id)]; return ok },
		"grand_prix": func(id string) bool {
			return slices.ContainsFunc(facts.Seasons, func(s season.Season) bool {
				return slices.ContainsFunc(s.Rounds, func(r season.Round) bool { return string(r.GrandPrix) == id })
			})
		},
	}
	for kind, has := range known {
		names := table.Foreign(kind)
		if len(names) == 0 {
			t.Errorf("there is no %s", kind)
		}
		for id, theirs := range names {
			if !has(id) {
				t.Errorf("%s %q = %s: the embedded seasons have no %s", kind, theirs, id, id)
			}
		}
	}
}
