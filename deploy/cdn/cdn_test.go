// Package cdn_test runs the configuration of a cache in front of edges in nginx.
package cdn_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"gridcast/deploy/must"
	"gridcast/deploy/nginx/nginxtest"
	"gridcast/snapshots/blob/porttest"
)

// start runs the shipped cache with its own key before two edges, and returns its address.
func start(t *testing.T, key string, edges [2]string) string {
	t.Helper()
	shipped := must.Get(os.ReadFile("nginx.conf"))(t)
	address := porttest.Address(t)
	nginxtest.Start(t, strings.NewReplacer(
		"include /etc/gridcast/cdn-key.conf;", `map "" $cdn_key { default "`+key+`"; }`,
		"127.0.0.1:8088", address, "127.0.0.1:8081", edges[0], "127.0.0.1:8082", edges[1],
	).Replace(string(shipped)))
	return "http://" + address
}

// TestProxy sends the cache every request that it could answer wrongly by itself.
func TestProxy(t *testing.T) {
	edges := nginxtest.StartEdges(t)
	nginxtest.CheckProxy(t, start(t, edges.Key["cache"], edges.Addresses), edges)
}

// TestWorldsStayApart: neither world's bodies reach the keys of the other through the cache.
func TestWorldsStayApart(t *testing.T) {
	edges := nginxtest.StartEdges(t)
	nginxtest.CheckWorlds(t, start(t, edges.Key["cache"], edges.Addresses), edges)
}

// TestOneClientTakesNothingFromOthers checks that requests with ever new parameters make no new entries, and that
// a client keeps its own limit when the key of the cache has none left.
func TestOneClientTakesNothingFromOthers(t *testing.T) {
	edges := nginxtest.StartEdges(t)
	const own = 30 // the limit of the tier of the cache's key
	base := start(t, edges.Key["trial"], edges.Addresses)
	for n := range 3 * own {
		response, _ := nginxtest.Do(t, "GET", base+"/api/v1/standings?cb="+strconv.Itoa(n), edges.Key["pro"], nil)
		if status := response.Header.Get("X-Cache"); response.StatusCode != http.StatusOK || status != "HIT" && n > 0 {
			t.Fatalf("cache buster %d: got %s from the cache: %s; want 200, HIT", n, response.Status, status)
		}
	}
	// Paths that the cache may not keep use its key up.
	for n := range 3 * own {
		nginxtest.Do(t, "GET", base+"/api/v1/predictions?session_key="+strconv.Itoa(n+1)+"&year=2024", edges.Key["pro"], nil)
		nginxtest.Do(t, "GET", base+"/api/v1/calendar?year=202"+strconv.Itoa(3+n%2), edges.Key["pro"], nil)
	}
	for _, path := range []string{"/api/v1/drivers", "/api/v1/accuracy", "/api/v1/results", "/api/v1/standings?type=constructors"} {
		response, body := nginxtest.Do(t, "GET", base+path, edges.Key["standard"], nil)
		if response.StatusCode != http.StatusOK || response.Header.Get("X-RateLimit-Limit") != "120" {
			t.Errorf("%s: got %s with limit %q, want 200 with the client's 120; body %.100s", path, response.Status, response.Header.Get("X-RateLimit-Limit"), body)
		}
	}
}

// TestVersionsApart lets nginx ask one edge for the tag, and get the body from another that still serves the
// version before. The cache does not keep that body as the new one.
func TestVersionsApart(t *testing.T) {
	var version, behind atomic.Value // the requested version, and the one behind it
	version.Store("one")
	behind.Store("one")
	edge := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &behind
		if r.Method == http.MethodHead {
			v = &version
		}
		tag, _ := v.Load().(string)
		w.Header().Set("ETag", `"`+tag+`"`)
		_, _ = io.WriteString(w, tag)
	})
	first, second := httptest.NewServer(edge), httptest.NewServer(edge)
	t.Cleanup(first.Close)
	t.Cleanup(second.Close)
	base := start(t, "of the cache", [2]string{first.Listener.Addr().String(), second.Listener.Addr().String()})
	for _, step := range []struct {
		version, behind string
		want, status    string
	}{
		{"one", "one", `"one" one`, "MISS"},
		{"one", "one", `"one" one`, "HIT"},
		{"two", "one", `"one" one`, "MISS"}, // of an edge that is behind
		{"two", "two", `"two" two`, "MISS"}, // and is not taken for the new version
		{"two", "two", `"two" two`, "HIT"},
		{"one", "two", `"one" one`, "HIT"}, // asked of an edge that is behind
	} {
		version.Store(step.version)
		behind.Store(step.behind)
		response, body := nginxtest.Do(t, "GET", base+"/api/v1/standings", "", nil)
		got, status := fmt.Sprintf("%s %s", response.Header.Get("ETag"), body), response.Header.Get("X-Cache")
		must.Hold(t, got == step.want && status == step.status,
			"edges at %s and %s: got %s, %s; want %s, %s", step.version, step.behind, got, status, step.want, step.status)
	}
}
