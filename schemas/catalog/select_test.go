package catalog_test

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
)

var known = catalog.Known{Seasons: []int{1950, 1951, 1952, 2007, 2024, 2025, 2026}, Current: 2026}

func endpoint(t testing.TB, path string) *catalog.Endpoint {
	t.Helper()
	i, ok := catalog.Lookup(path)
	must.Require(t, ok, "Lookup(%q): not found", path)
	return &catalog.Endpoints[i]
}

// TestSelect: testdata/select.txt has the variant or the refusal of each query.
func TestSelect(t *testing.T) {
	golden.Table(t, "testdata/select.txt", func(input string) string {
		path, query, _ := strings.Cut(input, "?")
		v, err := endpoint(t, path).Select([]byte(query), known)
		if err == nil {
			return v.Path()
		}
		must.Hold(t, errors.As(err, new(*catalog.ParamError)), "%s: got %v, want a *ParamError", input, err)
		return err.Error()
	})
}

func TestSelectWithoutSeasons(t *testing.T) {
	_, err := endpoint(t, "/calendar").Select([]byte("year=2026"), catalog.Known{})
	const want = `bad value "2026" for parameter year: no such season; allowed: one season (none is known yet)`
	must.Hold(t, err != nil && err.Error() == want, "got %v, want %s", err, want)
}

func TestSelectDoesNotAllocate(t *testing.T) {
	e := endpoint(t, "/predictions")
	query := []byte("_=1700000000&y%65ar=2024&session_key=2024001")
	if n := testing.AllocsPerRun(100, func() {
		if v, err := e.Select(query, known); err != nil || v.SessionKey != 2024001 {
			t.Errorf("Select: %+v, %v", v, err)
		}
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

func FuzzSelect(f *testing.F) {
	for _, query := range []string{
		"", "year=2026", "type=constructors&year=2007", "session_key=2024001", "%", "ye%61r=1", "a=b&&=&;", "type=%ff",
	} {
		f.Add(query)
	}
	all := map[catalog.Variant]bool{}
	for _, v := range catalog.All(known, nil) {
		all[v] = true
	}
	f.Fuzz(func(t *testing.T, query string) {
		// The standard library judges percent-encoding the same way, but refuses ";".
		_, decodeErr := url.ParseQuery(strings.ReplaceAll(query, ";", ""))
		if strings.Contains(query, ";") {
			decodeErr = nil
		}
		for i := range catalog.Endpoints {
			e := &catalog.Endpoints[i]
			v, err := e.Select([]byte(query), known)
			if err != nil {
				message := err.Error()
				if !utf8.ValidString(message) || len(message) > 600 || strings.ContainsFunc(message, unicode.IsControl) {
					t.Errorf("%s?%q: message %q", e.Path, query, message)
				}
				continue
			}
			if decodeErr != nil {
				t.Errorf("%s?%q: got %s, want an error as of net/url: %v", e.Path, query, v.Path(), decodeErr)
			}
			if !all[v] && v.SessionKey <= 0 && v.Page <= 0 && !e.File {
				t.Errorf("%s?%q: got %+v, which nobody renders", e.Path, query, v)
			}
			if parsed, err := catalog.ParsePath(v.Path()); err != nil || parsed != v {
				t.Errorf("%s?%q: %s parses to %+v, %v", e.Path, query, v.Path(), parsed, err)
			}
		}
	})
}

// TestDefaultSeasons: an endpoint that looks back has a default season of its own.
func TestDefaultSeasons(t *testing.T) {
	k := catalog.Known{Seasons: []int{2025, 2026}, Current: 2026, Past: map[string]int{"standings": 2025, "results": 2025}}
	for target, want := range map[string]int{"/standings": 2025, "/results": 2025, "/calendar": 2026, "/predictions": 2026, "/accuracy": 0} {
		i, ok := catalog.Lookup(target)
		must.Require(t, ok, "no endpoint %s", target)
		v, err := catalog.Endpoints[i].Select(nil, k)
		must.Hold(t, err == nil && v.Year == want, "%s: got season %d, %v; want %d", target, v.Year, err, want)
	}
}

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
		got := tt.v.Path()
		must.Hold(t, got == tt.path, "%+v: got path %q, want %q", tt.v, got, tt.path)
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
		v, err := catalog.ParsePath(path)
		must.Hold(t, err != nil, "ParsePath(%q): got %+v, want an error", path, v)
	}
}

func TestAll(t *testing.T) {
	k := catalog.Known{Seasons: []int{2025, 2026}, Current: 2026, Pages: 2}
	all := catalog.All(k, []int64{2026002, 2025001, 2026002})
	got := make([]string, len(all))
	for i, v := range all {
		got[i] = v.Path()
	}
	golden.File(t, "testdata/all.txt", strings.Join(got, "\n")+"\n")
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
		got, ok := catalog.Lookup(e.Path)
		must.Hold(t, ok && got == i, "Lookup(%q): got %v, %v", e.Path, got, ok)
		must.Hold(t, e.Path == "/"+string(e.Name), "%s: got path %s", e.Name, e.Path)
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
