package edge_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/edge/keys"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
)

// TestEdgeForgetsALie lets the store lie about each kind of object that an edge reads, while a version is published and a
// key revoked. Running and restarted, the edge answers from the last good ones, and is current ten seconds after the store
// is honest again. The tests of keys and snapshots have every lie.
func TestEdgeForgetsALie(t *testing.T) {
	must.Long(t, "eight worlds of two edges")
	for _, key := range []string{keys.Object, snapshots.PointerKey, "manifests/2.json.gz", "objects/2/drivers.json.gz"} {
		for name, fate := range map[string]faultblob.Fate{
			"a wrong bit": {Mangle: func(data []byte) []byte { data[len(data)/2] ^= 1; return data }},
			"missing":     {Err: fmt.Errorf("read: %w", blob.ErrNotFound)},
			"an error":    {Err: errors.New("500 Internal Server Error")},
		} {
			t.Run(key+"/"+name, func(t *testing.T) { inBubble(t, func(t *testing.T) { forget(t, key, fate) }) })
		}
	}
}

func forget(t *testing.T, key string, fate faultblob.Fate) {
	var lying atomic.Bool
	lies := func(_ *edge.Config, d *edge.Deps, _ *setup) {
		d.Store = faultblob.Wrap(d.Store, func(_ context.Context, c faultblob.Call) faultblob.Fate {
			// A lie about a body includes the delta, because an edge reads the body only if it has no delta.
			if lying.Load() && (c.Key == key || strings.HasPrefix(key, "objects/") && strings.HasPrefix(c.Key, "deltas/")) {
				return fate
			}
			return faultblob.Fate{}
		})
	}
	cache := inDir(t.TempDir())
	w := newWorld(t, piped, cache, lies)
	status := func(tier string) int { return w.do("GET", "/api/v1/standings", "X-API-Key: "+w.key[tier]).StatusCode }
	first := w.get("/api/v1/standings")
	must.Equal(t, "before the lie", 200, first.StatusCode)
	must.Advance(10 * time.Second) // until the copy is kept

	lying.Store(true)
	must.Advance(15 * time.Second) // until each watch is a new one
	edgetest.Publish(t, w.store, 2)
	must.Do(t, keys.Update(t.Context(), w.store, func(d *keys.List) error {
		for i := range d.Keys {
			if d.Keys[i].Tier == "standard" {
				d.Keys[i].Revoked = realNow
			}
		}
		return nil
	}))
	for range 20 {
		must.Advance(3 * time.Second)
		must.Equal(t, "while the store lies", 200, status("pro"))
	}
	s := w.edge.Status()
	must.Hold(t, s.Stale || s.Keys.Stale || s.Refused != nil || s.StoreProblem != "" || s.Keys.Problem != "", "nothing is said of the lie: %+v", s)
	must.Do(t, w.stop())

	again := newWorld(t, piped, cache, func(c *edge.Config, d *edge.Deps, s *setup) {
		d.Store, s.keys, s.version, s.copied = w.store, false, false, true
		lies(c, d, s)
	})
	again.store, again.key = w.store, w.key
	w = again
	must.Equal(t, "after a restart, while the store lies", 200, status("pro"))
	must.Advance(time.Minute)

	lying.Store(false)
	must.Advance(10 * time.Second)
	now := w.get("/api/v1/standings")
	must.Hold(t, now.StatusCode == http.StatusOK && string(now.body) != string(first.body), "honest for ten seconds: got %d, want the new version", now.StatusCode)
	must.Equal(t, "honest for ten seconds, the revoked key", 401, status("standard"))
	s = w.edge.Status()
	must.Hold(t, !s.Stale && !s.Keys.Stale && s.Version == 2, "honest for ten seconds: got %+v", s)
}
