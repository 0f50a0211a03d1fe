package edge_test

import (
	"runtime/debug"
	"slices"
	"testing"

	"github.com/valyala/fasthttp"

	"gridcast/deploy/must"
	"gridcast/edge/keys"
)

// TestNoAllocations runs the handler alone, without fasthttp's own work.
func TestNoAllocations(t *testing.T) {
	w := newWorld(t, perMinute("pro", 1e6), perMinute("sandbox", 1e6))
	w.openSandbox(1001)
	w.key["public"] = keys.Public
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
		{"sandbox", "/api/v1/calendar", [2]string{}, "sandbox", 200},
		{"sandbox's next race", "/api/v1/next-race", [2]string{}, "sandbox", 200},
		{"sandbox by the public key", "/api/v1/calendar", [2]string{"Accept-Encoding", "br"}, "public", 200},
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
			must.Hold(t, n == 0, "got %v allocations, want 0", n)
		})
	}
}

// TestServerAllocatesOneByte sends the same request again and again over a socket, fasthttp's own work included. While
// fasthttp waits for a request without buffers, it reads into a byte of its own: its only allocation.
func TestServerAllocatesOneByte(t *testing.T) {
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("under the race detector, sync.Pool drops values, so that fasthttp allocates them again")
	}
	w := newWorld(t, perMinute("pro", 1e9))
	etag := w.get("/api/v1/calendar").Header.Get("ETag")
	for _, tt := range []struct{ name, target, line, key, status string }{
		{"200", "/api/v1/standings?year=2023&type=constructors", "Accept-Encoding: gzip, deflate, br;q=0.9", "pro", "200"},
		{"304", "/api/v1/calendar", "If-None-Match: W/\"other\", " + etag, "pro", "304"},
		{"401", "/api/v1/calendar", "Accept: */*", "revoked", "401"},
		{"next race", "/api/v1/next-race", "Accept: */*", "pro", "200"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			once := w.repeat(request("GET", tt.target, tt.line, "Authorization: Bearer "+w.key[tt.key]))
			got := string(once()[len("HTTP/1.1 "):][:3])
			must.Require(t, got == tt.status, "got status %s, want %s", got, tt.status)
			// Other goroutines hardly ever allocate once for each run.
			if n := testing.AllocsPerRun(500, func() { once() }); n > 1 {
				t.Errorf("got %v allocations, want at most 1", n)
			}
		})
	}
}

// repeat returns a function that sends the request on its own connection and returns the response, which comes in
// one piece.
func (w *world) repeat(request string) func() []byte {
	c, sent, buffer := w.dial(), []byte(request), make([]byte, 64<<10)
	return func() []byte {
		if _, err := c.Write(sent); err != nil {
			w.t.Error(err)
		}
		n, err := c.Read(buffer)
		if err != nil {
			w.t.Error(err)
		}
		return buffer[:n]
	}
}
