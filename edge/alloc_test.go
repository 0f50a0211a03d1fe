package edge_test

import (
	"fmt"
	"testing"

	"github.com/valyala/fasthttp"

	"gridcast/edge"
)

// TestNoAllocations runs the handler alone, without fasthttp's own work.
func TestNoAllocations(t *testing.T) {
	w := newWorld(t, func(c *edge.Config, _ *edge.Deps, _ *setup) { c.Tiers["pro"] = 1e6 })
	etag := w.get("/api/v1/calendar").Header.Get("ETag")
	for range 31 { // the tier trial has 30
		w.do("GET", "/api/v1/calendar", "X-API-Key: "+w.key["trial"])
	}
	for _, tt := range []struct {
		name, target string
		header       [2]string
		key          string
		status       int
	}{
		{"200", "/api/v1/standings?year=2023&type=constructors", [2]string{"Accept-Encoding", "gzip, deflate, br;q=0.9"}, "pro", 200},
		{"200 by the general path", "/api/v1/standings?_=1&year=2024", [2]string{}, "pro", 200},
		{"200 of a past season", "/api/v1/standings?_=1&year=2023", [2]string{"Accept-Encoding", "gzip"}, "pro", 200},
		{"200 of a past season as it is", "/api/v1/standings?year=2023", [2]string{}, "pro", 200},
		{"304", "/api/v1/calendar", [2]string{"If-None-Match", `W/"other", ` + etag}, "pro", 304},
		{"401 without a key", "/api/v1/calendar", [2]string{}, "", 401},
		{"401 with an unknown key", "/api/v1/calendar", [2]string{}, "revoked", 401},
		{"404", "/api/v1/nothing", [2]string{}, "pro", 404},
		{"429", "/api/v1/calendar", [2]string{}, "trial", 429},
		{"next race", "/api/v1/next-race", [2]string{}, "pro", 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var ctx fasthttp.RequestCtx
			ctx.Request.SetRequestURI(tt.target)
			if tt.header[0] != "" {
				ctx.Request.Header.Set(tt.header[0], tt.header[1])
			}
			ctx.Request.Header.Set("Authorization", "Bearer "+w.key[tt.key])
			w.edge.Handle(&ctx)
			n := testing.AllocsPerRun(200, func() {
				ctx.Response.Reset()
				w.edge.Handle(&ctx)
			})
			if got := ctx.Response.StatusCode(); got != tt.status {
				t.Fatalf("got status %d, want %d: %s", got, tt.status, ctx.Response.Body())
			}
			if n != 0 {
				t.Errorf("got %v allocations, want 0", n)
			}
		})
	}
}

// BenchmarkHandler measures the handler without the server around it.
func BenchmarkHandler(b *testing.B) {
	w := newWorld(b, func(c *edge.Config, _ *edge.Deps, _ *setup) { c.Tiers["pro"] = 1e6 })
	etag := w.get("/api/v1/calendar").Header.Get("ETag")
	for _, tt := range []struct{ name, target, ifNoneMatch string }{
		{"200", "/api/v1/standings?year=2023", ""},
		{"304", "/api/v1/calendar", etag},
		{"next-race", "/api/v1/next-race", ""},
	} {
		b.Run(tt.name, func(b *testing.B) {
			var ctx fasthttp.RequestCtx
			ctx.Request.SetRequestURI(tt.target)
			ctx.Request.Header.Set("Authorization", fmt.Sprintf("Bearer %s", w.key["pro"]))
			ctx.Request.Header.Set("Accept-Encoding", "gzip, deflate, br, zstd")
			if tt.ifNoneMatch != "" {
				ctx.Request.Header.Set("If-None-Match", tt.ifNoneMatch)
			}
			b.ReportAllocs()
			for b.Loop() {
				ctx.Response.Reset()
				w.edge.Handle(&ctx)
			}
		})
	}
}
