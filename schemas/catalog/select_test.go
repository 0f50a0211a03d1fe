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

	"github.com/google/go-cmp/cmp"

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

func TestSelect(t *testing.T) {
	for _, tt := range []struct{ path, query, want string }{
		{"/standings", "", "standings/drivers/2026"},
		{"/standings", "type=drivers", "standings/drivers/2026"},
		{"/standings", "type=constructors", "standings/constructors/2026"},
		{"/standings", "year=1950", "standings/drivers/1950"},
		{"/standings", "year=2025&type=constructors", "standings/constructors/2025"},
		{"/standings", "session_key=0", "standings/drivers/2026"}, // not a parameter of this endpoint
		{"/calendar", "", "calendar/2026"},
		{"/calendar", "year=2007", "calendar/2007"},
		{"/calendar", "type=nonsense&year=2007", "calendar/2007"},
		{"/drivers", "", "drivers"},
		{"/drivers", "year=nonsense", "drivers"},
		{"/predictions", "", "predictions/2026"},
		{"/predictions", "year=2024", "predictions/2024"},
		{"/predictions", "session_key=2024001", "predictions/session/2024001"},
		{"/predictions", "year=2024&session_key=2024001", "predictions/session/2024001"},
		{"/predictions", "session_key=2024001&year=2024", "predictions/session/2024001"},
		{"/predictions", "year=2025&session_key=2024001", "predictions/none"},
		{"/predictions", "session_key=2020001", "predictions/none"}, // 2020 is not known
		{"/predictions", "session_key=1", "predictions/none"},
		{"/predictions", "session_key=9999999999999999", "predictions/none"},
		{"/next-race", "year=1&session_key=", "next-race"},
		{"/accuracy", "", "accuracy/all"},
		{"/accuracy", "year=2024", "accuracy/2024"},
		{"/changes", "page=7", "changes/all"},
		{"/changes/log", "", "changes/log/1"},
		{"/changes/log", "year=2024&page=7", "changes/log/7"}, // a page is of all seasons
		{"/changes/log", "page=999999", "changes/log/none"},

		// Unknown parameters are ignored.
		{"/standings", "_=1700000000&year=1951&utm_source=x&utm_source=y", "standings/drivers/1951"},
		{"/standings", "&&&", "standings/drivers/2026"},
		{"/standings", "=&=x&;", "standings/drivers/2026"},
		{"/standings", "YEAR=1&Type=", "standings/drivers/2026"}, // names are case-sensitive
		{"/standings", "year[]=1&yea=1&years=1&%79%65=1", "standings/drivers/2026"},
		{"/standings", "x=%00%FF", "standings/drivers/2026"},

		// Names and values are decoded.
		{"/standings", "ye%61r=%32007", "standings/drivers/2007"},
		{"/standings", "%74%79%70%65=construct%6Frs", "standings/constructors/2026"},
		{"/standings", "+year=1&year+=1", "standings/drivers/2026"}, // " year" is another name
	} {
		t.Run(tt.path+"?"+tt.query, func(t *testing.T) {
			v, err := endpoint(t, tt.path).Select([]byte(tt.query), known)
			must.Require(t, err == nil, "Select: %v", err)
			must.Equal(t, tt.query, tt.want, v.Path())
		})
	}
}

func TestSelectRefuses(t *testing.T) {
	const (
		years = "one season from 1950 to 1952, 2007, from 2024 to 2026"
		types = "one of drivers, constructors"
		keys  = "one whole number of 1 to 16 digits that does not start with 0"
		hex   = "% followed by two hexadecimal digits, in names and values"

		empty    = "the value is empty"
		repeated = "given more than once"
		noSeason = "no such season"
		noYear   = "not a year of four digits"
		noKey    = "not a session key"
		noType   = "no such type"
		bad      = "malformed percent-encoding"
	)
	for _, tt := range []struct {
		path, query string
		want        catalog.ParamError
	}{
		{"/calendar", "year=", catalog.ParamError{"year", "", empty, years}},
		{"/calendar", "year", catalog.ParamError{"year", "", empty, years}},
		{"/calendar", "year=2026&year=2026", catalog.ParamError{"year", "2026", repeated, years}},
		{"/calendar", "year=2026&ye%61r=2025", catalog.ParamError{"year", "2025", repeated, years}},
		{"/calendar", "year=2023", catalog.ParamError{"year", "2023", noSeason, years}},
		{"/calendar", "year=0000", catalog.ParamError{"year", "0000", noYear, years}},
		{"/calendar", "year=26", catalog.ParamError{"year", "26", noYear, years}},
		{"/calendar", "year=02026", catalog.ParamError{"year", "02026", noYear, years}},
		{"/calendar", "year=2026+", catalog.ParamError{"year", "2026 ", noYear, years}},
		{"/calendar", "year=%202026", catalog.ParamError{"year", " 2026", noYear, years}},
		{"/calendar", "year=2026=", catalog.ParamError{"year", "2026=", noYear, years}},
		{"/calendar", "year=2026;x=1", catalog.ParamError{"year", "2026;x=1", noYear, years}},
		{"/calendar", "year=-202", catalog.ParamError{"year", "-202", noYear, years}},
		{"/calendar", "year=２０２６", catalog.ParamError{"year", "２０２６", noYear, years}},
		{"/accuracy", "year=all", catalog.ParamError{"year", "all", noYear, years}},
		{"/standings", "type=Drivers", catalog.ParamError{"type", "Drivers", noType, types}},
		{"/standings", "type=drivers&type=constructors", catalog.ParamError{"type", "constructors", repeated, types}},
		{"/standings", "type=", catalog.ParamError{"type", "", empty, types}},
		{"/standings", "type=driversdriversdrivers", catalog.ParamError{"type", "driversdriversdrivers", noType, types}},
		{"/predictions", "session_key=", catalog.ParamError{"session_key", "", empty, keys}},
		{"/predictions", "session_key=0", catalog.ParamError{"session_key", "0", noKey, keys}},
		{"/predictions", "session_key=02024001", catalog.ParamError{"session_key", "02024001", noKey, keys}},
		{"/predictions", "session_key=2024001.0", catalog.ParamError{"session_key", "2024001.0", noKey, keys}},
		{"/predictions", "session_key=%2B2024001", catalog.ParamError{"session_key", "+2024001", noKey, keys}},
		{"/predictions", "session_key=10000000000000000", catalog.ParamError{"session_key", "10000000000000000", noKey, keys}},
		{"/predictions", "session_key=1&session_key=1", catalog.ParamError{"session_key", "1", repeated, keys}},
		{"/predictions", "session_key=2024001&year=1", catalog.ParamError{"year", "1", noYear, years}},

		// Bad percent-encoding is refused anywhere, on every endpoint.
		{"/drivers", "x=%", catalog.ParamError{"x", "%", bad, hex}},
		{"/drivers", "%zz=1", catalog.ParamError{`"%zz"`, "1", bad, hex}},
		{"/next-race", "a=1&b=%4", catalog.ParamError{"b", "%4", bad, hex}},
		{"/next-race", "%", catalog.ParamError{`"%"`, "", bad, hex}},
		{"/calendar", "year=20%2", catalog.ParamError{"year", "20%2", bad, hex}},
		{"/calendar", "year=%G0%20%4x", catalog.ParamError{"year", "%G0 %4x", bad, hex}},

		// Long values are clipped, between characters.
		{"/calendar", "year=" + strings.Repeat("9", 41), catalog.ParamError{"year", strings.Repeat("9", 40) + "…", noYear, years}},
		{"/calendar", "year=" + strings.Repeat("9", 40), catalog.ParamError{"year", strings.Repeat("9", 40), noYear, years}},
		{"/calendar", "year=" + strings.Repeat("9", 39) + "é", catalog.ParamError{"year", strings.Repeat("9", 39) + "…", noYear, years}},
	} {
		t.Run(tt.path+"?"+tt.query, func(t *testing.T) {
			v, err := endpoint(t, tt.path).Select([]byte(tt.query), known)
			var got *catalog.ParamError
			must.Require(t, errors.As(err, &got), "got %+v, %v, want a *ParamError", v, err)
			if diff := cmp.Diff(tt.want, *got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestParamErrorMessage(t *testing.T) {
	for _, tt := range []struct{ query, want string }{
		{
			"year=1900",
			`bad value "1900" for parameter year: no such season; allowed: one season from 1950 to 1952, 2007, from 2024 to 2026`,
		},
		{
			"type=%00%1b[31m%22%FF",
			`bad value "\x00\x1b[31m\"` + "\uFFFD" + `" for parameter type: no such type; allowed: one of drivers, constructors`,
		},
		{
			"%1B%=1",
			`bad value "1" for parameter "\x1b%": malformed percent-encoding; allowed: % followed by two hexadecimal digits, in names and values`,
		},
	} {
		_, err := endpoint(t, "/standings").Select([]byte(tt.query), known)
		must.Hold(t, err != nil && err.Error() == tt.want, "%s:\n got %v\nwant %s", tt.query, err, tt.want)
	}
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
		overview overview/2025 overview/2026
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
