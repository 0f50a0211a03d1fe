package edge_test

import (
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
)

// TestDeprecatedEndpoint deprecates an endpoint in the catalog: its answers say when, and those of others say nothing. No row
// of the catalog leaves clients less than twelve months.
func TestDeprecatedEndpoint(t *testing.T) {
	for i := range catalog.Endpoints {
		e := &catalog.Endpoints[i]
		if e.Deprecated.IsZero() != e.Sunset.IsZero() || e.Sunset.Before(e.Deprecated.AddDate(1, 0, 0)) && !e.Sunset.IsZero() {
			t.Errorf("%s is deprecated from %s and ends at %s: want twelve months between them", e.Path, e.Deprecated, e.Sunset)
		}
	}
	i, _ := catalog.Lookup("/circuits")
	row := &catalog.Endpoints[i]
	before := *row
	t.Cleanup(func() { *row = before })
	row.Deprecated, row.Sunset = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2028, 1, 1, 12, 0, 0, 0, time.UTC)
	w := newWorld(t)
	key := "X-API-Key: " + w.key["pro"]
	r := w.do("GET", "/api/v1/circuits", key)
	for what, r := range map[string]response{"200": r, "304": w.do("GET", "/api/v1/circuits", key, "If-None-Match: "+r.Header.Get("ETag"))} {
		must.Equal(t, what+": Deprecation", "@1798761600", r.Header.Get("Deprecation"))
		must.Equal(t, what+": Sunset", "Sat, 01 Jan 2028 12:00:00 GMT", r.Header.Get("Sunset"))
	}
	other := w.do("GET", "/api/v1/drivers", key)
	must.Equal(t, "another endpoint", "", other.Header.Get("Deprecation")+other.Header.Get("Sunset"))
}
