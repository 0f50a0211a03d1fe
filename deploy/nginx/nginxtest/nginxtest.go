// Package nginxtest runs a shipped configuration of nginx before two real edges.
package nginxtest

import (
	"context"
	"crypto/sha256"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/edge/keys"
	"gridcast/schemas/catalog"
	"gridcast/snapshots/blob/memblob"
)

// Start runs nginx with the text of an http block until the test ends. It skips the test where nginx is missing.
// nginx accepts connections a little later: see [Do].
func Start(t *testing.T, text string) {
	t.Helper()
	if _, err := exec.LookPath("nginx"); err != nil {
		t.Skip("nginx is not on this machine: its configuration is not tried")
	}
	folder := t.TempDir()
	for _, path := range []string{folder, filepath.Dir(folder)} { // nginx works as another user
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cache := filepath.Join(folder, "cache")
	if err := os.Mkdir(cache, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(cache, 0o777); err != nil {
		t.Fatal(err)
	}
	text = strings.NewReplacer("/var/cache/gridcast-cdn", cache).Replace(text)
	all := "pid nginx.pid; daemon off; events {} http { access_log off; client_body_temp_path a; proxy_temp_path b; " +
		"fastcgi_temp_path c; uwsgi_temp_path d; scgi_temp_path e;\n" + text + "\n}\n"
	if err := os.WriteFile(filepath.Join(folder, "nginx.conf"), []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	nginx := exec.Command("nginx", "-p", folder, "-c", "nginx.conf", "-e", "error.log")
	nginx.Stdout, nginx.Stderr = &printed, &printed
	if err := nginx.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = nginx.Process.Signal(os.Interrupt)
		_ = nginx.Wait()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(folder, "error.log"))
			t.Logf("nginx printed %q, and logged:\n%s", printed.String(), log)
		}
	})
}

// Do sends the request until nginx accepts the connection.
func Do(t *testing.T, method, url, key string, header http.Header) (*http.Response, string) {
	t.Helper()
	var response *http.Response
	var body []byte
	must.Until(t, method+" "+url, func() bool {
		request := must.Get(http.NewRequestWithContext(t.Context(), method, url, nil))(t)
		for name, values := range header {
			request.Header[name] = values
		}
		if key != "" {
			request.Header.Set("X-API-Key", key)
		}
		var err error
		if response, err = http.DefaultClient.Do(request); err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		body = must.Get(io.ReadAll(response.Body))(t)
		return true
	})
	return response, string(body)
}

// Edges are two edges of one store with a sandbox, with a key of each tier. The key "earlier" is one of the tier sandbox
// from before its keys began with gc_test_.
type Edges struct {
	Addresses [2]string
	Key       map[string]string
	Stop      func() // both; the end of the test does it too
}

// StartEdges starts two edges that serve a small version.
func StartEdges(t *testing.T) *Edges {
	t.Helper()
	store := memblob.New()
	edgetest.Publish(t, store, 1)
	edgetest.PublishSandbox(t, store, nil, "2024-12-08T12:00:00Z@"+time.Now().UTC().Format(time.RFC3339)+"*1", 1001)
	e := &Edges{Key: map[string]string{}}
	err := keys.Update(t.Context(), store, func(d *keys.List) error {
		for _, tier := range keys.DefaultTiers().Names() {
			_, key, err := d.Create(keys.Request{Name: tier, Tier: tier}, time.Now())
			if err != nil {
				return err
			}
			e.Key[tier] = key
		}
		e.Key["earlier"] = keys.Generate("pro")
		earlier := d.Keys[len(d.Keys)-1]
		sum := keys.Hash(sha256.Sum256([]byte(e.Key["earlier"]))).String()
		earlier.ID, earlier.SHA256, earlier.Prefix, earlier.Tier = sum[:len(earlier.ID)], sum, e.Key["earlier"][:len(earlier.Prefix)], keys.Sandbox
		d.Keys = append(d.Keys, earlier)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg := edge.DefaultConfig()
	cfg.Tiers[keys.Sandbox] = 6000 // for CheckWorlds
	ctx, cancel := context.WithCancel(context.Background())
	running := make([]chan error, 0, len(e.Addresses))
	for i := range e.Addresses {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		e.Addresses[i] = listener.Addr().String()
		server, err := edge.New(cfg, edge.Deps{
			Store: store, Log: slog.New(slog.DiscardHandler), Listener: listener, Downloads: edgetest.Downloads{},
			Clock: time.Now, RaceTime: func(time.Time) time.Time { return edgetest.AbuDhabi.Add(-time.Hour) },
		})
		if err != nil {
			t.Fatal(err)
		}
		ran := make(chan error, 1)
		go func() { ran <- server.Run(ctx) }()
		running = append(running, ran)
		must.Until(t, "an edge loads its version", func() bool {
			return server.Status().Version != 0 && server.Status().Sandbox != nil && server.Status().Keys.Loaded
		})
	}
	e.Stop = func() {
		cancel()
		for _, ran := range running {
			if err := <-ran; err != nil {
				t.Errorf("an edge ended with %v", err)
			}
		}
		running = nil
	}
	t.Cleanup(e.Stop)
	return e
}

// CheckProxy sends the requests of a client that a proxy could answer wrongly itself: every method, an oversized
// header, and requests while both edges are away. Each response must be in the words of the API.
func CheckProxy(t *testing.T, base string, e *Edges) {
	t.Helper()
	key := e.Key["pro"]
	check := func(what, method, path, key string, header http.Header, status int) {
		t.Helper()
		response, body := Do(t, method, base+path, key, header)
		if response.StatusCode != status {
			t.Errorf("%s: got %s, want %d; body %.200q", what, response.Status, status, body)
		}
		if got := response.Header.Get("Access-Control-Allow-Origin"); got != "*" {
			t.Errorf("%s: got Access-Control-Allow-Origin %q, want *", what, got)
		}
		wantBody := `{"ok":true`
		if status >= 400 {
			wantBody = `{"ok":false,"error":"`
			code, _, _ := strings.Cut(strings.TrimPrefix(body, wantBody), `"`)
			if want := "</docs/errors#" + code + `>; rel="help"`; method != http.MethodHead && response.Header.Get("Link") != want {
				t.Errorf("%s: got Link %q, want %q", what, response.Header.Get("Link"), want)
			}
		}
		if method != http.MethodHead && status != http.StatusNoContent && !strings.HasPrefix(body, wantBody) {
			t.Errorf("%s: got body %.100q, want JSON of the API", what, body)
		}
		if status == http.StatusMethodNotAllowed && response.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("%s: got Allow %q, want the three methods", what, response.Header.Get("Allow"))
		}
	}
	const path = "/api/v1/standings"
	for method, status := range map[string]int{
		"GET": 200, "HEAD": 200, "OPTIONS": 204, "POST": 405, "PUT": 405, "PATCH": 405, "DELETE": 405, "PROPFIND": 405, "TRACE": 405,
	} {
		check(method, method, path, key, nil, status)
	}
	check("no key", "GET", path, "", nil, 401)
	check("POST without a key", "POST", path, "", nil, 401)
	check("an unknown path", "GET", "/api/v1/nothing", key, nil, 404)
	check("a bad parameter", "GET", path+"?year=x", key, nil, 422)
	check("an oversized header", "GET", path, key, http.Header{"X-Long": {strings.Repeat("x", 40_000)}}, 400)
	response, body := Do(t, "GET", base+"/.well-known/api-catalog", "", nil)
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "application/linkset+json") || !strings.HasPrefix(body, `{"linkset":`) {
		t.Errorf("the API catalog: got %s, %q, %.100q; want the set of links", response.Status, kind, body)
	}
	check("security.txt of an operator without a contact", "GET", "/.well-known/security.txt", "", nil, 404)
	e.Stop()
	check("both edges away", "GET", path, key, nil, 503)
	check("both edges away, the countdown", "GET", "/api/v1/next-race", key, nil, 503)
}

// CheckWorlds asks a proxy for the same paths with a key of the real world and with one of the sandbox, in both orders, with the
// tag of either world and for a part of the body. Each client must get the answer of an edge to its key.
func CheckWorlds(t *testing.T, base string, e *Edges) {
	t.Helper()
	check := func(path, key string, header http.Header) http.Header {
		t.Helper()
		if header = header.Clone(); header == nil {
			header = http.Header{}
		}
		plain := []string{"identity"}
		header["Accept-Encoding"] = plain
		whole, body := Do(t, "GET", "http://"+e.Addresses[0]+path, e.Key[key], http.Header{"Accept-Encoding": plain})
		got, part := Do(t, "GET", base+path, e.Key[key], header)
		must.Equal(t, key+" "+path+": world", whole.Header.Get("X-Gridcast-World"), got.Header.Get("X-Gridcast-World"))
		if tag := header.Get("If-None-Match"); tag != "" && tag == whole.Header.Get("ETag") {
			must.Hold(t, got.StatusCode == http.StatusNotModified, "%s with %s and its tag: got %s, want 304", path, key, got.Status)
			return whole.Header
		}
		ok := got.StatusCode == http.StatusOK && part == body || // an edge sends no parts, and a cache may
			got.StatusCode == http.StatusPartialContent && header.Get("Range") != "" && part == body[:min(len(body), 50)]
		if !ok || got.Header.Get("ETag") != whole.Header.Get("ETag") {
			t.Errorf("%s with %s and %v: got %s with tag %s and %.120q, want tag %s and %.120q", path, key, header, got.Status, got.Header.Get("ETag"), part, whole.Header.Get("ETag"), body)
		}
		return whole.Header
	}
	const real = "pro"
	paths := map[[2]string][]string{} // asked by these keys in this order
	for i, other := range []string{"sandbox", "earlier", "public"} {
		season := []string{"", "?year=2023", "?year=1950"}[i]
		paths[[2]string{real, other}] = []string{"/api/v1/standings" + season, "/api/v1/title-odds" + season}
		paths[[2]string{other, real}] = []string{"/api/v1/calendar" + season, "/api/v1/results" + season}
	}
	e.Key["public"] = keys.Public
	for order, all := range paths {
		for _, path := range all {
			tags := map[string]string{}
			for _, key := range []string{order[0], order[1], order[0]} {
				tags[key] = check(path, key, nil).Get("ETag")
			}
			must.Hold(t, tags[order[0]] != tags[order[1]], "%s has one tag in both worlds", path)
			for _, key := range order {
				for _, tag := range tags {
					check(path, key, http.Header{"If-None-Match": {tag}})
					check(path, key, http.Header{"Range": {"bytes=0-49"}, "If-Range": {tag}})
				}
				check(path, key, http.Header{"Range": {"bytes=0-49"}})
			}
		}
	}
	for _, f := range catalog.Feeds {
		for _, world := range []string{"", "/sandbox", ""} {
			check(world+f.Path, "none", nil)
		}
	}
}
