package usage_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"gridcast/deploy/console"
	"gridcast/deploy/must"
	"gridcast/deploy/usage"
	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/edge/keys"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/blob/porttest"
)

// began is the clock of limits, which stands still, so that all requests are in one window.
var began = time.Now()

// realEdge is an edge with its two ports, which restarts on the same ones.
type realEdge struct {
	t          *testing.T
	store      *memblob.Store
	api, admin string
	stop       func()
}

func (e *realEdge) start() {
	e.t.Helper()
	listen := func(at *string) net.Listener {
		if *at == "" {
			*at = porttest.Address(e.t)
		}
		return must.Get(net.Listen("tcp", *at))(e.t)
	}
	running := must.Get(edge.New(edge.DefaultConfig(), edge.Deps{Store: e.store, Log: discard, Clock: func() time.Time { return began }, Listener: listen(&e.api), Admin: listen(&e.admin)}))(e.t)
	ctx, cancel := context.WithCancel(e.t.Context())
	ended := make(chan error)
	go func() { ended <- running.Run(ctx) }()
	e.stop = func() {
		cancel()
		must.Succeed(e.t, "the edge ends", <-ended)
	}
	<-running.Started()
}

// ask sends a request and returns the status and the bytes of the body.
func (e *realEdge) ask(key string) (status, size int) {
	request := must.Get(http.NewRequestWithContext(e.t.Context(), http.MethodGet, "http://"+e.api+"/api/v1/calendar", nil))(e.t)
	request.Header.Set("X-API-Key", key)
	request.Header.Set("Accept-Encoding", "gzip") // else the client asks for it, and decodes
	request.Close = true
	response := must.Get(http.DefaultClient.Do(request))(e.t)
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode, len(must.Get(io.ReadAll(response.Body))(e.t))
}

// TestRealEdges has two schedulers read two edges by their admin ports. A key spends its minute, is revoked and removed, an
// edge restarts, and a scheduler is killed.
func TestRealEdges(t *testing.T) {
	store := memblob.New()
	edgetest.Publish(t, store, 1)
	var trial keys.StoredKey
	var secret string
	must.Do(t, keys.Update(t.Context(), store, func(d *keys.List) (err error) {
		trial, secret, err = d.Create(keys.Request{Name: "trial", Tier: "trial"}, time.Now().AddDate(-1, 0, 0))
		return err
	}))
	edges := []*realEdge{{t: t, store: store}, {t: t, store: store}}
	for _, e := range edges {
		e.start()
		t.Cleanup(func() { e.stop() })
	}
	scheduler := func() *usage.Collector {
		c := &usage.Collector{Store: store, Log: discard}
		for _, e := range edges {
			c.Edges = append(c.Edges, usage.Edge{Name: e.admin, Usage: console.Remote(e.admin).Usage})
		}
		return c
	}
	first, second := scheduler(), scheduler()
	var want keys.Counts
	ask := func(e *realEdge, n int) (status int) {
		for range n {
			var size int
			status, size = e.ask(secret)
			c := keys.Counts{Requests: 1, Bytes: uint64(size)}
			switch status {
			case http.StatusTooManyRequests:
				c.Limited = 1
			case http.StatusUnauthorized:
				c.Unauthorized = 1
			}
			want = want.Plus(c)
		}
		return status
	}
	ask(edges[0], 35)
	first.Round(t.Context(), false)
	ask(edges[1], 3)
	second.Round(t.Context(), true)
	ask(edges[0], 2)
	first.Round(t.Context(), true)
	first = scheduler() // killed
	edges[1].stop()
	edges[1].start()
	ask(edges[1], 4)
	first.Round(t.Context(), false)
	second.Round(t.Context(), true)
	must.Do(t, keys.Update(t.Context(), store, func(d *keys.List) error {
		_, err := d.Revoke(trial.ID, time.Now().Add(-time.Hour))
		return err
	}))
	must.Until(t, "the edge refuses the key", func() bool { return ask(edges[0], 1) == http.StatusUnauthorized })
	first.Round(t.Context(), true)
	must.Do(t, keys.Update(t.Context(), store, func(d *keys.List) error {
		must.Equal(t, "removed keys", 1, len(d.Prune(time.Now())))
		return nil
	}))
	second.Round(t.Context(), true)
	r := must.Get(usage.Load(t.Context(), store, ""))(t)
	got := r.Sums("", "9999")[trial.ID]
	must.Equal(t, "usage", want, got.Counts)
	must.Hold(t, want.Limited >= 7 && want.Unauthorized == 1 && got.LimitedDays >= 1, "got %+v", got)
	lost := slices.DeleteFunc(r.Gaps, func(g usage.Gap) bool { return g.Why == usage.Late }) // at midnight
	must.Hold(t, len(lost) == 1 && lost[0].Why == usage.Lost && lost[0].Edge == edges[1].admin, "got %v", lost)
}
