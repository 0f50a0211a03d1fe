package edge_test

import (
	"testing"

	"gridcast/deploy/must"
	"gridcast/edge/keys"
)

func TestUsageOfEachKey(t *testing.T) {
	w := newWorld(t)
	for range 32 { // the tier trial has 30
		w.do("GET", "/api/v1/calendar", "X-API-Key: "+w.key["trial"])
	}
	w.get("/api/v1/nothing")
	w.do("GET", "/api/v1/calendar", "X-API-Key: "+w.key["revoked"])
	want := map[string]keys.KeyUsage{}
	for key, usage := range map[string]keys.KeyUsage{"trial": {Requests: 32, Refused: 2}, "pro": {Requests: 1}} {
		hash, ok := keys.Sum([]byte(w.key[key]))
		if !ok {
			t.Fatalf("key %q is malformed", w.key[key])
		}
		usage.ID = hash.String()[:12]
		want[usage.ID] = usage
	}
	must.Equal(t, "usage", want, usage(w))
	before := w.edge.Status().Keys.Count
	must.Do(t, keys.Update(t.Context(), w.store, func(d *keys.List) error {
		_, _, err := d.Create(keys.Request{Name: "new", Tier: "pro"}, realNow)
		return err
	}))
	w.await("another table", func() bool { return w.edge.Status().Keys.Count == before+1 })
	must.Equal(t, "usage after a reload", want, usage(w))
}

func usage(w *world) map[string]keys.KeyUsage {
	byID := map[string]keys.KeyUsage{}
	for _, u := range w.edge.Usage() {
		byID[u.ID] = u
	}
	return byID
}
