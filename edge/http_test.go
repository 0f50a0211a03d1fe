package edge_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/schemas"
	"gridcast/schemas/catalog"
)

// TestOrderOfChecks sends requests with several faults; the first check answers.
func TestOrderOfChecks(t *testing.T) {
	started := newWorld(t, func(c *edge.Config, _ *edge.Deps, _ *setup) { c.Tiers["trial"] = 1 })
	started.do("GET", "/api/v1/drivers", "X-API-Key: "+started.key["trial"])
	noVersion := newWorld(t, withoutVersion)
	noKeys := newWorld(t, withoutKeys)
	for _, tt := range []struct {
		decision       string
		world          *world
		method, target string
		key            string // a name of world.key, or the key itself
		line           string
		status         int
	}{
		{"preflight before keys are loaded", noKeys, "OPTIONS", "/api/v1/calendar", "", "", 204},
		{"key table before key", noKeys, "GET", "/api/v1/calendar", "wrong", "", 503},
		{"preflight before key", started, "OPTIONS", "/api/v1/nothing", "wrong", "", 204},
		{"key before limit, origin, route, method and parameters", started, "POST", "/api/v1/nothing?year=", "wrong", "Origin: https://x.example", 401},
		{"limit before route, method and parameters", started, "POST", "/api/v1/nothing?year=", "trial", "", 429},
		{"origin before route", started, "GET", "/api/v1/nothing", "widget", "Origin: https://x.example", 403},
		{"route before method", started, "POST", "/api/v1/nothing?year=", "pro", "", 404},
		{"method before parameters", started, "POST", "/api/v1/calendar?year=", "pro", "", 405},
		{"parameters before data", started, "GET", "/api/v1/calendar?year=", "pro", "", 422},
		{"parameters before version", noVersion, "GET", "/api/v1/calendar?year=24", "pro", "", 422},
		{"a well-formed request without a version", noVersion, "GET", "/api/v1/calendar?year=2024", "pro", "", 503},
		{"route before version", noVersion, "GET", "/api/v1/nothing", "pro", "", 404},
		{"method before version", noVersion, "PUT", "/api/v1/calendar", "pro", "", 405},
		{"countdown without a version", noVersion, "GET", "/api/v1/next-race", "pro", "", 503},
	} {
		t.Run(tt.decision, func(t *testing.T) {
			key := tt.key
			if k := tt.world.key[key]; k != "" {
				key = k
			}
			lines := []string{"X-API-Key: " + key}
			if tt.line != "" {
				lines = append(lines, tt.line)
			}
			if tt.method == "POST" || tt.method == "PUT" {
				lines = append(lines, "Content-Length: 0")
			}
			r := tt.world.do(tt.method, tt.target, lines...)
			if r.StatusCode != tt.status {
				t.Errorf("got %d, want %d: %s", r.StatusCode, tt.status, r.body)
			}
			if tt.status == 503 && r.Header.Get("Retry-After") == "" {
				t.Error("503 without Retry-After")
			}
			if tt.status == 405 && !strings.Contains(r.head, "\r\nAllow: GET, HEAD, OPTIONS\r\n") {
				t.Errorf("405 without Allow:\n%s", r.head)
			}
		})
	}
}

func TestHeadersOfData(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		decision, target string
		want             []string
		not              []string
	}{
		{
			"a snapshot", "/api/v1/standings",
			[]string{
				"Content-Type: application/json; charset=utf-8", "Cache-Control: private, max-age=30, must-revalidate",
				"Vary: Accept-Encoding, Authorization, X-API-Key", "ETag: ",
			},
			[]string{"Last-Modified", "Content-Encoding", "Retry-After", "Allow"},
		},
		{"a season that is over", "/api/v1/standings?year=2023", []string{"Cache-Control: private, max-age=300, must-revalidate"}, nil},
		{"a round of a season that is over", "/api/v1/predictions?session_key=2023005", []string{"Cache-Control: private, max-age=300, must-revalidate"}, nil},
		{"a season that is over, of which a result is awaited", "/api/v1/standings?year=1950", []string{"Cache-Control: private, max-age=30, must-revalidate"}, nil},
		{"all seasons", "/api/v1/accuracy", []string{"Cache-Control: private, max-age=30, must-revalidate"}, nil},
		{"a round without a pick", "/api/v1/predictions?session_key=2023007", []string{"Cache-Control: private, max-age=30, must-revalidate"}, nil},
		{"the countdown", "/api/v1/next-race", []string{"Cache-Control: no-store", "Content-Type: application/json; charset=utf-8"}, []string{"ETag", "Content-Encoding"}},
	} {
		t.Run(tt.decision, func(t *testing.T) {
			r := w.get(tt.target)
			for _, want := range tt.want {
				if !strings.Contains(r.head, "\r\n"+want) {
					t.Errorf("no %q in\n%s", want, r.head)
				}
			}
			for _, not := range tt.not {
				if strings.Contains(r.head, "\r\n"+not) {
					t.Errorf("%q in\n%s", not, r.head)
				}
			}
			head := w.do("HEAD", tt.target, "X-API-Key: "+w.key["pro"])
			if got, want := comparable(head.head), comparable(r.head); got != want {
				t.Errorf("HEAD differs:\n%s\nGET:\n%s", got, want)
			}
		})
	}
}

// comparable removes the counts of requests and seconds.
func comparable(head string) string {
	var kept []string
	for line := range strings.Lines(head) {
		if !strings.HasPrefix(line, "X-RateLimit-Remaining") && !strings.HasPrefix(line, "Date") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// TestEncodings decodes the responses. The parser's tests cover the choice among q-values.
func TestEncodings(t *testing.T) {
	w := newWorld(t)
	plain := w.get("/api/v1/calendar")
	tag := strings.Trim(plain.Header.Get("ETag"), `"`)
	for _, tt := range []struct {
		decision, accept, encoding, etag string
	}{
		{"none asked for", "", "", tag},
		{"brotli among equals", "gzip, zstd, br", "br", tag + "-br"},
		{"zstd before gzip", "gzip, zstd", "zstd", tag + "-zst"},
		{"gzip alone", "gzip, deflate", "gzip", tag + "-gz"},
		{"the client's q-values decide", "br;q=0.1, gzip", "gzip", tag + "-gz"},
		{"identity asked for", "br;q=0.5, identity", "", tag},
		{"unknown codings", "deflate, compress", "", tag},
		{"nothing acceptable", "identity;q=0, *;q=0", "", tag},
	} {
		t.Run(tt.decision, func(t *testing.T) {
			var lines []string
			if tt.accept != "" {
				lines = append(lines, "Accept-Encoding: "+tt.accept)
			}
			r := w.get("/api/v1/calendar", lines...)
			if got := r.Header.Get("Content-Encoding"); got != tt.encoding {
				t.Errorf("got encoding %q, want %q", got, tt.encoding)
			}
			if !strings.Contains(r.head, "\r\nETag: \""+tt.etag+"\"\r\n") {
				t.Errorf("want ETag %q in\n%s", tt.etag, r.head)
			}
			if got := decode(t, tt.encoding, r.body); !bytes.Equal(got, plain.body) {
				t.Errorf("got %s, want %s", got, plain.body)
			}
			if r := w.get("/api/v1/next-race", lines...); r.Header.Get("Content-Encoding") != "" {
				t.Error("the countdown is encoded")
			}
			if r := w.get("/api/v1/nothing", lines...); r.Header.Get("Content-Encoding") != "" {
				t.Error("an error is encoded")
			}
		})
	}
	if r := w.get("/api/v1/calendar", "Accept-Encoding: gzip", "Accept-Encoding: br"); r.Header.Get("Content-Encoding") != "br" {
		t.Errorf("repeated field: got encoding %q, want br: they are one list", r.Header.Get("Content-Encoding"))
	}
}

func decode(t testing.TB, encoding string, body []byte) []byte {
	t.Helper()
	var (
		plain = body
		err   error
	)
	switch encoding {
	case "br":
		plain, err = fasthttp.AppendUnbrotliBytes(nil, body)
	case "gzip":
		plain, err = fasthttp.AppendGunzipBytes(nil, body)
	case "zstd":
		plain, err = fasthttp.AppendUnzstdBytes(nil, body)
	}
	if err != nil {
		t.Fatalf("%s: %v", encoding, err)
	}
	return plain
}

// TestNotModified has a row for each decision about If-None-Match.
func TestNotModified(t *testing.T) {
	w := newWorld(t)
	const target = "/api/v1/calendar"
	hash := strings.Trim(w.get(target).Header.Get("ETag"), `"`)
	tag := func(suffix string) string { return `"` + hash + suffix + `"` }
	other := w.get("/api/v1/drivers").Header.Get("ETag")
	for _, tt := range []struct {
		decision, ifNoneMatch, accept string
		etag                          string // of the 304; empty: 200
	}{
		{"the tag itself", tag(""), "", tag("")},
		{"weakly compared", "W/" + tag(""), "", tag("")},
		{"in a list", other + ", " + tag("") + `, "x"`, "", tag("")},
		{"in a list with weak tags and odd spaces", ` W/"x",,` + "\tW/" + tag("-br") + " ", "br", tag("-br")},
		{"the tag of another coding of the same content", tag("-gz"), "br", tag("-gz")},
		{"of several, the one a 200 would carry", tag("-gz") + ", " + tag("-br"), "br", tag("-br")},
		{"star", "*", "gzip", tag("-gz")},
		{"star without a coding", "*", "", tag("")},
		{"another tag", other, "", ""},
		{"without quotes", hash, "", ""},
		{"a suffix nobody gave out", tag("-xx"), "", ""},
		{"star in a list is no star", `"x", *`, "", ""},
	} {
		t.Run(tt.decision, func(t *testing.T) {
			lines := []string{"If-None-Match: " + tt.ifNoneMatch}
			if tt.accept != "" {
				lines = append(lines, "Accept-Encoding: "+tt.accept)
			}
			r := w.get(target, lines...)
			if tt.etag == "" {
				if r.StatusCode != http.StatusOK || len(r.body) == 0 {
					t.Errorf("got %d with %d bytes, want 200", r.StatusCode, len(r.body))
				}
				return
			}
			if r.StatusCode != http.StatusNotModified || r.Header.Get("ETag") != tt.etag {
				t.Errorf("got %d with %s, want 304 with %s", r.StatusCode, r.Header.Get("ETag"), tt.etag)
			}
			for _, name := range []string{"Cache-Control: private, max-age=30, must-revalidate", "Vary: Accept-Encoding, Authorization, X-API-Key"} {
				if !strings.Contains(r.head, "\r\n"+name+"\r\n") {
					t.Errorf("304 without %q:\n%s", name, r.head)
				}
			}
			if strings.Contains(r.head, "\r\nContent-") {
				t.Errorf("304 describes a body:\n%s", r.head)
			}
		})
	}
	t.Run("a repeated field is one list", func(t *testing.T) {
		if r := w.get(target, "If-None-Match: "+other, "If-None-Match: "+tag("")); r.StatusCode != http.StatusNotModified {
			t.Errorf("got %d, want 304", r.StatusCode)
		}
	})
	t.Run("the countdown has nothing to match", func(t *testing.T) {
		if r := w.get("/api/v1/next-race", "If-None-Match: *"); r.StatusCode != http.StatusOK {
			t.Errorf("got %d, want 200", r.StatusCode)
		}
	})
}

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
		if want := api.Components.Headers[component].Example; got != want {
			t.Errorf("%s: served %q, documented %q", component, got, want)
		}
	}
}

func TestPreflight(t *testing.T) {
	w := newWorld(t)
	r := w.do("OPTIONS", "/api/v1/standings?year=2024", "Origin: https://example.org",
		"Access-Control-Request-Method: GET", "Access-Control-Request-Headers: x-api-key")
	if r.StatusCode != http.StatusNoContent || len(r.body) != 0 {
		t.Errorf("got %d with %q, want 204 without a body", r.StatusCode, r.body)
	}
	for name, want := range map[string]string{
		"Access-Control-Max-Age":       "7200",
		"Access-Control-Allow-Methods": "GET, HEAD, OPTIONS",
		"Access-Control-Allow-Headers": "Authorization, X-API-Key, If-None-Match, Cache-Control, Content-Type, X-Requested-With, traceparent, tracestate, baggage",
		"Allow":                        "GET, HEAD, OPTIONS",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"ETag", "Retry-After", "WWW-Authenticate", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Repr-Digest"} {
		if !strings.Contains(r.Header.Get("Access-Control-Expose-Headers"), name) {
			t.Errorf("%s is not exposed", name)
		}
	}
}

func TestAbsoluteForm(t *testing.T) {
	w := newWorld(t)
	r := w.get("http://api.example.org/api/v1/calendar?year=2023")
	if want := w.get("/api/v1/calendar?year=2023"); !bytes.Equal(r.body, want.body) {
		t.Errorf("got %d %s, want %s", r.StatusCode, r.body, want.body)
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
