package names_test

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gridcast/builder/names"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

func TestSlug(t *testing.T) { golden.Table(t, "testdata/slugs.txt", names.Slug) }

// TestSlugIsF1DB: Slug gives the identifiers that F1DB gives. The exceptions are names that F1DB itself
// keeps apart from others, or writes in another order.
func TestSlugIsF1DB(t *testing.T) {
	release := must.Get(zip.OpenReader(sourcetest.Path(t, sourcetest.F1DB2026)))(t)
	defer release.Close()
	other := map[string]string{"Qing Hua Ma": "ma-qinghua", "ATS": "ats-wheels", "Lotus": "lotus-f1"}
	for _, file := range []string{"f1db-drivers.json", "f1db-constructors.json", "f1db-grands-prix.json"} {
		f := must.Get(release.Open(file))(t)
		var rows []struct{ ID, Name string }
		must.Do(t, json.NewDecoder(f).Decode(&rows))
		must.Hold(t, len(rows) >= 50, "%s has %d rows, want all", file, len(rows))
		for _, row := range rows {
			if got := names.Slug(row.Name); got != row.ID && other[row.Name] != row.ID {
				t.Errorf("%s: %q: got %s, want %s", file, row.Name, got, row.ID)
			}
		}
	}
}

func TestNearest(t *testing.T) {
	candidates := [][]string{{"VER", "Verstappen"}, {"HAM", "Hamilton"}, {"RUS", "Russell"}, {"HAD", "Hadjar"}}
	for _, test := range []struct {
		text  string
		wrong int
		want  string
	}{
		{"VRE", 2, "VER"}, // two letters swapped are one mistake
		{"verstapen", 2, "VER"},
		{"RSU", 2, "RUS"},
		{"HAX", 2, "HAM HAD"}, // equally near
		{"XQJ", 2, ""},
		{"hamiltonn", 0, ""},
		{"H", 2, ""}, // as many wrong letters as it has
	} {
		var got []string
		for _, candidate := range names.Nearest(test.text, test.wrong, candidates, slices.Clone[[]string]) {
			got = append(got, candidate[0])
		}
		text := strings.Join(got, " ")
		must.Hold(t, text == test.want, "%q with %d wrong letters: got %q, want %q", test.text, test.wrong, text, test.want)
	}
	long := strings.Repeat("x", 10_000) // a table of its letters is for a spelling of about its length only
	made := testing.AllocsPerRun(1, func() { names.Nearest(long, 2, candidates, slices.Clone[[]string]) })
	must.Hold(t, made < 100, "a text of %d letters takes %v allocations", len(long), made)
}

func TestDidYouMean(t *testing.T) {
	for want, suggestions := range map[string][]string{
		"":                                  nil,
		"; did you mean VER?":               {"VER"},
		"; did you mean VER or HAM or RUS?": {"VER", "HAM", "RUS"},
	} {
		must.Equal(t, fmt.Sprint(suggestions), want, names.DidYouMean(suggestions))
	}
	must.Equal(t, "five suggestions", "", names.DidYouMean([]string{"A", "B", "C", "D", "E"}))
}
