package catalog_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
)

func TestPath(t *testing.T) {
	for _, tt := range []struct {
		v    catalog.Variant
		path string
	}{
		{catalog.Variant{Endpoint: catalog.Standings, Type: "drivers", Year: 2026}, "standings/drivers/2026"},
		{catalog.Variant{Endpoint: catalog.Standings, Type: "constructors", Year: 1958}, "standings/constructors/1958"},
		{catalog.Variant{Endpoint: catalog.Calendar, Year: 2026}, "calendar/2026"},
		{catalog.Variant{Endpoint: catalog.Drivers}, "drivers"},
		{catalog.Variant{Endpoint: catalog.Predictions, Year: 2026}, "predictions/2026"},
		{catalog.Variant{Endpoint: catalog.Predictions, SessionKey: 2026004}, "predictions/session/2026004"},
		{catalog.Variant{Endpoint: catalog.Predictions, SessionKey: catalog.NoSession}, "predictions/none"},
		{catalog.Variant{Endpoint: catalog.NextRace}, "next-race"},
		{catalog.Variant{Endpoint: catalog.Accuracy}, "accuracy/all"},
		{catalog.Variant{Endpoint: catalog.Accuracy, Year: 2026}, "accuracy/2026"},
	} {
		if got := tt.v.Path(); got != tt.path {
			t.Errorf("%+v: got path %q, want %q", tt.v, got, tt.path)
		}
		if got, err := catalog.ParsePath(tt.path); err != nil || got != tt.v {
			t.Errorf("ParsePath(%q): got %+v, %v, want %+v", tt.path, got, err, tt.v)
		}
	}
}

func TestParsePathRefuses(t *testing.T) {
	for _, path := range []string{
		"", "/", "standings", "standings/", "standings/drivers", "standings/drivers/", "standings/drivers/26",
		"standings/drivers/2026/", "standings/drivers/2026/x", "standings/teams/2026", "standings/2026",
		"/standings/drivers/2026", "standings//2026", "Standings/drivers/2026",
		"calendar", "calendar/", "calendar/0000", "calendar/+202", "calendar/20260", "calendar/2026.json",
		"drivers/", "drivers/2026", "next-race/", "next-race/1",
		"predictions", "predictions/", "predictions/all", "predictions/session", "predictions/session/",
		"predictions/session/0", "predictions/session/-1", "predictions/session/02026004",
		"predictions/session/99999999999999999", "predictions/none/",
		"accuracy", "accuracy/", "accuracy/0000", "accuracy/none", "../drivers", "nonsense",
	} {
		if v, err := catalog.ParsePath(path); err == nil {
			t.Errorf("ParsePath(%q): got %+v, want an error", path, v)
		}
	}
}

func TestAll(t *testing.T) {
	k := catalog.Known{Seasons: []int{2025, 2026}, Current: 2026, Pages: 2}
	all := catalog.All(k, []int64{2026002, 2025001, 2026002})
	got := make([]string, len(all))
	for i, v := range all {
		got[i] = v.Path()
	}
	want := strings.Fields(`
		accuracy/2025 accuracy/2026 accuracy/all
		calendar/2025 calendar/2026
		careers/constructors/2025 careers/constructors/2026 careers/constructors/all
		careers/drivers/2025 careers/drivers/2026 careers/drivers/all
		changes/2025 changes/2026 changes/all changes/log/1 changes/log/2 changes/log/none
		circuits/2025 circuits/2026 circuits/all
		drivers
		forecast forecast-history forecast-history/none
		forecast-history/session/2025001 forecast-history/session/2026002
		forecast/none
		forecast/session/2025001 forecast/session/2026002
		former-careers/constructors former-careers/drivers
		head-to-head/2025 head-to-head/2026
		identifiers/circuits identifiers/constructors identifiers/drivers identifiers/grands-prix
		live live/none live/session/2025001 live/session/2026002
		next-race
		predictions/2025 predictions/2026 predictions/none
		predictions/session/2025001 predictions/session/2026002
		probabilities/2025 probabilities/2026 probabilities/none
		probabilities/session/2025001 probabilities/session/2026002
		results/2025 results/2026 results/none
		results/session/2025001 results/session/2026002
		sessions sessions/none
		sessions/session/2025001 sessions/session/2026002
		standings-progress/constructors/2025 standings-progress/constructors/2026
		standings-progress/drivers/2025 standings-progress/drivers/2026
		standings/constructors/2025 standings/constructors/2026
		standings/drivers/2025 standings/drivers/2026
		title-odds/2025 title-odds/2026
		track-record/2025 track-record/2026 track-record/all
		weekends/2025 weekends/2026 weekends/none
		weekends/session/2025001 weekends/session/2026002`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	must.Hold(t, slices.IsSorted(got), "not in ascending order of path")
}

// TestTargetsSelectTheirVariant shows that a request can select every rendered variant, and that
// paths, targets and variants agree.
func TestTargetsSelectTheirVariant(t *testing.T) {
	for _, v := range catalog.All(known, []int64{1950007, 2024001, 2026022}) {
		path, query, _ := strings.Cut(strings.TrimPrefix(v.Target(), catalog.BasePath), "?")
		got, err := endpoint(t, path).Select([]byte(query), known)
		if err != nil || got != v {
			t.Errorf("%s: selects %+v, %v, want %+v", v.Target(), got, err, v)
		}
		if parsed, err := catalog.ParsePath(v.Path()); err != nil || parsed != v {
			t.Errorf("ParsePath(%q): got %+v, %v, want %+v", v.Path(), parsed, err, v)
		}
	}
}

func TestLookup(t *testing.T) {
	for i := range catalog.Endpoints {
		e := &catalog.Endpoints[i]
		if got, ok := catalog.Lookup(e.Path); !ok || got != i {
			t.Errorf("Lookup(%q): got %v, %v", e.Path, got, ok)
		}
		if e.Path != "/"+string(e.Name) {
			t.Errorf("%s: got path %s", e.Name, e.Path)
		}
	}
	for _, path := range []string{"", "/", "/standings/", "standings", "//standings", "/Standings", "/standing%73"} {
		if i, ok := catalog.Lookup(path); ok {
			t.Errorf("Lookup(%q): got %s, want nothing", path, catalog.Endpoints[i].Name)
		}
	}
}

// TestPatterns shows that the documented pattern and the values Select takes agree.
func TestPatterns(t *testing.T) {
	wide := catalog.Known{Current: 1950}
	for year := range 10000 {
		wide.Seasons = append(wide.Seasons, year)
	}
	values := []string{
		"drivers", "constructors", "Drivers", "teams", "0", "1", "9", "0001", "1950", "9999", "01950", "12345",
		"2024001", "02024001", "9999999999999999", "10000000000000000", "12a4", "-123", "1 23",
	}
	for i := range catalog.Endpoints {
		e := &catalog.Endpoints[i]
		for _, param := range e.Params {
			pattern := regexp.MustCompile(param.Pattern)
			for _, value := range values {
				_, err := e.Select([]byte(param.Name+"="+strings.ReplaceAll(value, " ", "+")), wide)
				if want := pattern.MatchString(value); (err == nil) != want {
					t.Errorf("%s?%s=%s: got error %v, but %s matches: %t", e.Path, param.Name, value, err, param.Pattern, want)
				}
			}
		}
	}
}
