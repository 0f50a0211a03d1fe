package edge_test

import (
	"net/http"
	"testing"

	"gridcast/deploy/must"
	"gridcast/edge/keys"
)

// TestUsageOfEachKey asks with keys of every state, and compares the counters with the received responses.
func TestUsageOfEachKey(t *testing.T) {
	w := newWorld(t)
	want := map[string]keys.Counts{}
	ask := func(key, method, target string, lines ...string) {
		r := w.do(method, target, append(lines, "X-API-Key: "+w.key[key])...)
		hash, ok := keys.Sum([]byte(w.key[key]))
		if !ok {
			t.Fatalf("key %q is malformed", w.key[key])
		}
		id := hash.String()[:12]
		c := keys.Counts{Requests: 1, Bytes: uint64(len(r.body))}
		switch r.StatusCode {
		case http.StatusUnauthorized:
			c.Unauthorized = 1
		case http.StatusForbidden:
			c.Forbidden = 1
		case http.StatusTooManyRequests:
			c.Limited = 1
		}
		want[id] = want[id].Plus(c)
	}
	for range 32 { // the tier trial has 30
		ask("trial", "GET", "/api/v1/calendar")
	}
	ask("pro", "GET", "/api/v1/nothing")
	ask("pro", "HEAD", "/api/v1/calendar")
	ask("pro", "GET", "/api/v1/calendar", "If-None-Match: *")
	ask("pro", "GET", "/api/v1/standings", "Accept-Encoding: gzip")
	ask("widget", "GET", "/api/v1/calendar", "Origin: https://example.com")
	ask("revoked", "GET", "/api/v1/calendar")
	ask("expired", "GET", "/api/v1/calendar")
	w.do("OPTIONS", "/api/v1/calendar", "X-API-Key: "+w.key["pro"])
	w.do("GET", "/api/v1/calendar", "X-API-Key: "+keys.Generate("pro"))
	first := w.edge.Usage()
	must.Equal(t, "usage", want, usage(first.Keys))
	before := w.edge.Status().Keys.Count
	must.Do(t, keys.Update(t.Context(), w.store, func(d *keys.List) error {
		_, _, err := d.Create(keys.Request{Name: "new", Tier: "pro"}, realNow)
		return err
	}))
	w.await("another table", func() bool { return w.edge.Status().Keys.Count == before+1 })
	second := w.edge.Usage()
	must.Equal(t, "usage after a reload", want, usage(second.Keys))
	must.Hold(t, second.Instance == first.Instance && second.Answer == first.Answer+1 && second.UptimeMS >= first.UptimeMS, "got %+v after %+v", second, first)
	must.Hold(t, newWorld(t).edge.Usage().Instance != first.Instance, "two edges are the same instance")
}

func usage(list []keys.KeyUsage) map[string]keys.Counts {
	byID := map[string]keys.Counts{}
	for _, u := range list {
		byID[u.ID] = u.Counts
	}
	return byID
}
