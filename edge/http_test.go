package edge_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// TestHeaderExamplesAreServed: the documented example of a header that is the same in every answer is its value.
func TestHeaderExamplesAreServed(t *testing.T) {
	var api struct {
		Components struct {
			Headers map[string]struct{ Example any }
		}
	}
	must.Do(t, json.Unmarshal(schemas.OpenAPIJSON(), &api))
	w := newWorld(t)
	r, refused := w.get("/api/v1/standings"), w.do("POST", "/api/v1/standings", "X-API-Key: "+w.key["pro"], "Content-Length: 0")
	for component, got := range map[string]string{
		"Vary": r.Header.Get("Vary"), "AllowOrigin": r.Header.Get("Access-Control-Allow-Origin"),
		"ExposeHeaders": r.Header.Get("Access-Control-Expose-Headers"), "CacheControl": r.Header.Get("Cache-Control"),
		"Allow": refused.Header.Get("Allow"), "NoStore": refused.Header.Get("Cache-Control"),
	} {
		want := api.Components.Headers[component].Example
		must.Hold(t, got == want, "%s: served %q, documented %q", component, got, want)
	}
}

// TestErrorsLeadToTheirHelp follows the Link of errors to the row of their code. The recorded answers hold that every
// error has that field.
func TestErrorsLeadToTheirHelp(t *testing.T) {
	w := newWorld(t)
	page := string(w.get("/docs/errors").body)
	key := "X-API-Key: " + w.key["pro"]
	for code, r := range map[wire.Code]response{
		wire.Unauthorized: w.do("GET", "/api/v1/standings"), wire.NotFound: w.do("GET", "/nowhere"), wire.BadParam: w.get("/api/v1/standings?year=abcd"),
		wire.MethodNotAllowed: w.do("POST", "/api/v1/standings", key, "Content-Length: 0"),
		wire.BadRequest:       w.do("GET", "/api/v1/standings", key, "Origin: https://a.example", "Origin: https://b.example"),
	} {
		must.Equal(t, "the Link of an error", fmt.Sprintf(`</docs/errors#%s>; rel="help"`, code), r.Header.Get("Link"))
		must.Show(t, "/docs/errors", page, fmt.Sprintf(`<tr id="%s">`, code))
	}
}

// TestEndpointThatTheVersionLacks requests an endpoint that was added after the version was
// published.
func TestEndpointThatTheVersionLacks(t *testing.T) {
	index, _ := catalog.Lookup("/drivers")
	catalog.Endpoints[index].Additive = true
	t.Cleanup(func() { catalog.Endpoints[index].Additive = false }) // after the edge has ended
	w := newWorld(t, func(_ *edge.Config, _ *edge.Deps, s *setup) { s.lacks = "drivers" })
	r := w.get("/api/v1/drivers")
	if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %v, want a 503 that says when to come back", r.StatusCode, r.Header)
	}
}
