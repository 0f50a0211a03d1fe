package edge_test

import (
	"bytes"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/deploy/must"
	"gridcast/edge"
)

// TestNothingIsKeptAboutClients sends good and refused requests of a client and looks for its address, its key and its
// program in the log, the metrics, the store and the edge's own copy.
func TestNothingIsKeptAboutClients(t *testing.T) {
	const address, program, cookie = "203.0.113.77", "ReaderApp/7", "session=8f2c"
	var log bytes.Buffer
	registry, dir := prometheus.NewRegistry(), t.TempDir()
	w := newWorld(t, func(c *edge.Config, d *edge.Deps, _ *setup) {
		c.CacheDir, c.TrustedProxies = dir, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		d.Log, d.Registry = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), registry
	})
	about := []string{"X-Forwarded-For: " + address, "User-Agent: " + program, "Cookie: " + cookie}
	statuses := map[int]bool{}
	for _, path := range []string{"/api/v1/calendar", "/api/v1/calendar?year=1", "/api/v1/nothing", "/status", "/docs"} {
		for _, key := range []string{w.key["trial"], w.key["revoked"], "gc_live_wrong"} {
			for range 12 {
				statuses[w.do("GET", path, append(about, "X-API-Key: "+key)...).StatusCode] = true
			}
		}
	}
	must.Hold(t, statuses[200] && statuses[401] && statuses[404] && statuses[429], "got %v, want every kind of answer", statuses)
	kept := map[string]string{}
	for _, family := range must.Get(registry.Gather())(t) {
		kept["metrics"] += family.String()
	}
	for info, err := range w.store.List(t.Context(), "") {
		must.Do(t, err)
		kept[info.Key] = string(must.Get(w.store.Get(t.Context(), info.Key, 1<<28))(t).Data)
	}
	must.Do(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			kept[path] = string(must.Get(os.ReadFile(path))(t))
		}
		return err
	}))
	must.Do(t, w.stop())
	kept["the log"] = log.String()
	must.Hold(t, len(kept) > 10 && len(kept["metrics"]) > 1000 && len(kept["the log"]) > 100, "%d places are looked at, want all", len(kept))
	for place, text := range kept {
		must.Hide(t, place, text, address, program, cookie, w.key["trial"], w.key["revoked"], "gc_live_wrong")
	}
}
