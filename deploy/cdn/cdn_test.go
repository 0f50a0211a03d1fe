// Package cdn_test runs the configuration of a cache in front of edges in nginx.
package cdn_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gridcast/snapshots/blob/porttest"
)

// While a version spreads, nginx asks one edge which response it is and gets the body from another,
// which serves the version before. That one is not kept as the new one.
func TestVersionsApart(t *testing.T) {
	if _, err := exec.LookPath("nginx"); err != nil {
		t.Skip("nginx is not on this machine: its cache is not tried")
	}
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

	folder, address := t.TempDir(), porttest.Address(t)
	for _, parent := range []string{folder, filepath.Dir(folder)} { // the user nobody must be able to enter them
		if err := os.Chmod(parent, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	shipped, err := os.ReadFile("nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(folder, "cache")
	if err := os.Mkdir(cache, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(cache, 0o777); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(
		"include /etc/gridcast/cdn-key.conf;", `map "" $cdn_key { default "of the cache"; }`,
		"/var/cache/gridcast-cdn", cache, "127.0.0.1:8088", address,
		"127.0.0.1:8081", first.Listener.Addr().String(), "127.0.0.1:8082", second.Listener.Addr().String(),
	).Replace(string(shipped))
	all := "pid nginx.pid; daemon off; events {} http { access_log off; client_body_temp_path a; proxy_temp_path b; fastcgi_temp_path c; uwsgi_temp_path d; scgi_temp_path e;\n" + text + "\n}\n"
	if err := os.WriteFile(filepath.Join(folder, "nginx.conf"), []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	nginx := exec.Command("nginx", "-p", folder, "-c", "nginx.conf", "-e", "error.log")
	nginx.Stdout, nginx.Stderr = &printed, &printed
	if err := nginx.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- nginx.Wait() }()
	t.Cleanup(func() {
		_ = nginx.Process.Signal(os.Interrupt)
		<-ended
	})
	get := func(path string) (body, status string, err error) {
		response, err := http.Get("http://" + address + path)
		if err != nil {
			return "", "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return fmt.Sprintf("%s %s", response.Header.Get("ETag"), text), response.Header.Get("X-Cache"), err
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, _, err := get("/readyz"); err == nil {
			break
		}
		select {
		case err := <-ended:
			log, _ := os.ReadFile(filepath.Join(folder, "error.log"))
			t.Fatalf("nginx ended: %v\n%s%s", err, printed.String(), log)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("nginx does not answer")
		}
	}
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
		got, status, err := get("/api/v1/standings")
		if err != nil || got != step.want || status != step.status {
			t.Errorf("edges at %s and %s: got %s, %s, %v; want %s, %s", step.version, step.behind, got, status, err, step.want, step.status)
		}
	}
}
