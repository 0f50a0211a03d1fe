package catalog_test

import (
	"errors"
	"net/url"
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
	if !ok {
		t.Fatalf("Lookup(%q): not found", path)
	}
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
			if err != nil {
				t.Fatalf("Select: %v", err)
			}
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
			if !errors.As(err, &got) {
				t.Fatalf("got %+v, %v, want a *ParamError", v, err)
			}
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
		if !ok {
			t.Fatalf("no endpoint %s", target)
		}
		v, err := catalog.Endpoints[i].Select(nil, k)
		must.Hold(t, err == nil && v.Year == want, "%s: got season %d, %v; want %d", target, v.Year, err, want)
	}
}
