package edge_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/porttest"
)

// TestAdmin reads the pages of an operator.
func TestAdmin(t *testing.T) {
	address := porttest.Address(t)
	w := newWorld(t, func(c *edge.Config, _ *edge.Deps, _ *setup) { c.AdminListen = address })
	w.get("/api/v1/calendar")
	w.do("GET", "/api/v1/calendar")
	body := fetch(t, "http://"+address+"/metrics")
	must.Show(t, "/metrics", body,
		"\ngridcast_edge_requests_total{endpoint=\"calendar\",status=\"200\",tier=\"pro\"} 1\n",
		"\ngridcast_edge_requests_total{endpoint=\"unrouted\",status=\"401\",tier=\"none\"} 1\n",
		"\ngridcast_edge_version 1\n",
		"\ngridcast_edge_version_age_seconds 0\n",
		"\ngridcast_edge_versions_loaded_total 1\n",
		"\ngridcast_edge_versions_refused_total 0\n",
		"\ngridcast_edge_ready 1\n",
		"\ngridcast_edge_keys 6\n",
		"\ngo_goroutines ")
	var status wire.Success[edge.StatusDocument]
	err := json.Unmarshal([]byte(fetch(t, "http://"+address+"/status")), &status)
	must.Hold(t, err == nil && status.Data.Version == 1, "status: got %+v, %v", status, err)
	fetch(t, "http://"+address+"/debug/pprof/")
}

func fetch(t testing.TB, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, url, nil))(t)
	response := must.Get(http.DefaultClient.Do(r))(t)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must.Require(t, err == nil && response.StatusCode == http.StatusOK, "%s: got %s, %v", url, response.Status, err)
	return string(body)
}

// TestLook uses a store that never reports a change by itself, so that only the notification on the
// admin port, and not the end of a wait, makes the edge poll.
func TestLook(t *testing.T) {
	address := porttest.Address(t)
	var patience atomic.Int64 // number of watches that ended without a change
	w := newWorld(t, func(c *edge.Config, d *edge.Deps, _ *setup) {
		c.AdminListen = address
		d.Store = faultblob.Wrap(d.Store, func(ctx context.Context, c faultblob.Call) faultblob.Fate {
			if c.Op != faultblob.Watch || c.Key != snapshots.PointerKey {
				return faultblob.Fate{}
			}
			<-ctx.Done()
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				patience.Add(1)
			}
			return faultblob.Fate{Err: context.Cause(ctx)}
		})
	})
	for n, looked := int64(2), 0; looked < 4; n++ { // a watch may end by itself just when a version is published
		must.Require(t, n < 40, "of %d versions the edge found %d by a notification", n-2, looked)
		edgetest.Publish(t, w.store, n)
		patience.Store(0)
		for w.edge.Status().Version < n { // the edge may have been about to poll when the notification came
			response, err := http.Post("http://"+address+"/look", "", nil)
			if err != nil || response.StatusCode != http.StatusNoContent {
				t.Fatalf("POST /look: got %v, %v, want 204", response, err)
			}
			response.Body.Close()
		}
		if patience.Load() == 0 {
			looked++
		}
	}
}
