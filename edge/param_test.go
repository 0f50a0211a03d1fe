package edge_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gridcast/deploy/must"
	"gridcast/schemas/wire"
)

// TestParameters has a row for each decision about routes and parameters.
func TestParameters(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		decision string
		target   string
		status   int
		same     string // a target with the same body, if 200
		names    string // text in the message of an error
	}{
		{"type defaults to drivers", "/standings", 200, "/standings?type=drivers&year=2024", ""},
		{"year defaults to the current season", "/calendar", 200, "/calendar?year=2024", ""},
		{"accuracy defaults to all seasons", "/accuracy", 200, "/accuracy?", ""},
		{"order of parameters does not matter", "/standings?year=2023&type=constructors", 200, "/standings?type=constructors&year=2023", ""},
		{"a season known is served", "/standings?year=1950", 200, "/standings?year=1950&type=drivers", ""},
		{"a season not known is refused", "/standings?year=1949", 422, "", `"1949" for parameter year`},
		{"year has four digits", "/standings?year=24", 422, "", `"24" for parameter year`},
		{"type is exact lower case", "/standings?type=Drivers", 422, "", `"Drivers" for parameter type`},
		{"the message says what is allowed", "/standings?type=teams", 422, "", "drivers, constructors"},
		{"an empty value is refused", "/calendar?year=", 422, "", `"" for parameter year`},
		{"a repeated parameter is refused", "/calendar?year=2024&year=2024", 422, "", `"2024" for parameter year`},
		{"bad percent-encoding is refused", "/calendar?year=20%2", 422, "", `"20%2" for parameter year`},
		{"bad percent-encoding is refused in unknown parameters", "/drivers?x=%zz", 422, "", `"%zz" for parameter x`},
		{"bad percent-encoding is refused on the countdown", "/next-race?x=%zz", 422, "", `"%zz" for parameter x`},
		{"good percent-encoding is understood", "/calendar?year=%32023", 200, "/calendar?year=2023", ""},
		{"unknown parameters are ignored", "/calendar?_=1700000000", 200, "/calendar", ""},
		{"a session key without year looks through all seasons", "/predictions?session_key=2023005", 200, "/predictions?year=2023&session_key=2023005", ""},
		{"session key and year must both match", "/predictions?year=2024&session_key=2023005", 200, "/predictions?session_key=999", ""},
		{"no match is an empty list", "/predictions?session_key=2024009", 200, "/predictions?session_key=1", ""},
		{"a session key does not begin with zero", "/predictions?session_key=02023005", 422, "", `"02023005" for parameter session_key`},
		{"a session key has at most 16 digits", "/predictions?session_key=12345678901234567", 422, "", `parameter session_key`},
		{"a known season without picks is an empty list", "/predictions?year=1950", 200, "/predictions?year=1950&", ""},

		{"one trailing slash is tolerated", "/calendar/", 200, "/calendar", ""},
		{"also before a query", "/calendar/?year=2023", 200, "/calendar?year=2023", ""},
		{"also with an unknown parameter", "/calendar/?x=1", 200, "/calendar", ""},
		{"two trailing slashes are not", "/calendar//", 404, "", ""},
		{"a doubled slash is another path", "//calendar", 404, "", ""},
		{"dots are not folded", "/drivers/../calendar", 404, "", ""},
		{"the path is not decoded", "/calendar%73", 404, "", ""},
		{"nor where decoding would name a route", "/c%61lendar", 404, "", ""},
		{"the path is exact lower case", "/Calendar", 404, "", ""},
		{"a path below a route is none", "/calendar/2024", 404, "", ""},
		{"the base path alone is no route", "", 404, "", ""},
		{"nor with its slash", "/", 404, "", ""},
		{"a fragment is part of the target", "/calendar#x", 404, "", ""},
	} {
		t.Run(tt.decision, func(t *testing.T) {
			target := "/api/v1" + tt.target
			r := w.get(target)
			if r.StatusCode != tt.status {
				t.Fatalf("%s: got %d, want %d: %s", target, r.StatusCode, tt.status, r.body)
			}
			if tt.status == 200 {
				valid(t, target, r.body)
				if other := w.get("/api/v1" + tt.same); string(other.body) != string(r.body) {
					t.Errorf("%s:\n got %s\nwant %s, as %s", target, r.body, other.body, tt.same)
				}
				return
			}
			var body wire.Error
			must.Do(t, json.Unmarshal(r.body, &body))
			if want := map[int]wire.Code{404: wire.NotFound, 422: wire.BadParam}[tt.status]; body.Error != want {
				t.Errorf("got code %s, want %s", body.Error, want)
			}
			if !strings.Contains(body.Message, tt.names) {
				t.Errorf("got message %q, want %q in it", body.Message, tt.names)
			}
		})
	}
}
