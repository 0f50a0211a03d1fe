package edge_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/edge/keys"
)

// rate reads the three headers.
func rate(t testing.TB, r response) (limit, remaining int, reset int64) {
	t.Helper()
	var numbers [3]int64
	for i, name := range []string{"Limit", "Remaining", "Reset"} {
		n := must.Get(strconv.ParseInt(r.Header.Get("X-RateLimit-"+name), 10, 64))(t)
		numbers[i] = n
	}
	return int(numbers[0]), int(numbers[1]), numbers[2]
}

func TestLimitOfEachTier(t *testing.T) {
	w := newWorld(t)
	must.Do(t, keys.Update(t.Context(), w.store, func(d *keys.List) (err error) {
		_, w.key["cache"], err = d.Create(keys.Request{Name: "cache", Tier: "cache"}, realNow)
		return err
	}))
	w.await("the new key is known", func() bool { return w.edge.Status().Keys.Count == 7 })
	for tier, want := range map[string]int{"trial": 30, "sandbox": 30, "standard": 120, "pro": 600, "cache": 6000} {
		limit, remaining, reset := rate(t, w.do("GET", "/api/v1/calendar", "X-API-Key: "+w.key[tier]))
		must.Hold(t, limit == want && remaining == want-1, "%s: got limit %d with %d remaining, want %d with one less", tier, limit, remaining, want)
		now := realNow.Unix()
		must.Hold(t, reset > now && reset <= now+60, "%s: window ends at %d, want within a minute of %d", tier, reset, now)
	}
}

// TestAnotherTierKeepsTheCount spends 20 of 30 requests of a minute, and gives the key the tier of 120.
func TestAnotherTierKeepsTheCount(t *testing.T) {
	w := newWorld(t)
	ask := func() (limit, remaining int) {
		limit, remaining, _ = rate(t, w.do("GET", "/api/v1/calendar", "X-API-Key: "+w.key["trial"]))
		return limit, remaining
	}
	for range 20 {
		ask()
	}
	set := func(tier string) {
		must.Do(t, keys.Update(t.Context(), w.store, func(d *keys.List) error {
			for i := range d.Keys {
				if d.Keys[i].Name == "trial" {
					d.Keys[i].Tier = tier
				}
			}
			return nil
		}))
	}
	for _, tt := range []struct {
		tier             string
		limit, remaining int
	}{{"standard", 120, 99}, {"trial", 30, 8}} { // the request that asks counts too
		before := w.edge.Status().Keys.Since
		set(tt.tier)
		w.await("the other tier", func() bool { return w.edge.Status().Keys.Since != before })
		limit, remaining := ask()
		must.Hold(t, limit == tt.limit && remaining == tt.remaining, "%s: got %d of %d remaining, want %d of %d", tt.tier, remaining, limit, tt.remaining, tt.limit)
	}
}

// TestEveryRequestWithAKeyCounts has a row for each outcome.
func TestEveryRequestWithAKeyCounts(t *testing.T) {
	w := newWorld(t)
	etag := w.get("/api/v1/calendar").Header.Get("ETag")
	_, last, _ := rate(t, w.get("/api/v1/calendar"))
	for _, tt := range []struct {
		method, target, line string
		status               int
	}{
		{"GET", "/api/v1/calendar", "", 200},
		{"HEAD", "/api/v1/calendar", "", 200},
		{"GET", "/api/v1/next-race", "", 200},
		{"GET", "/api/v1/calendar", "If-None-Match: " + etag, 304},
		{"GET", "/api/v1/nothing", "", 404},
		{"POST", "/api/v1/calendar", "Content-Length: 0", 405},
		{"GET", "/api/v1/calendar?year=1", "", 422},
	} {
		lines := []string{"X-API-Key: " + w.key["pro"]}
		if tt.line != "" {
			lines = append(lines, tt.line)
		}
		r := w.do(tt.method, tt.target, lines...)
		_, remaining, _ := rate(t, r)
		if r.StatusCode != tt.status || remaining != last-1 {
			t.Errorf("%s %s: got %d with %d remaining, want %d with %d", tt.method, tt.target, r.StatusCode, remaining, tt.status, last-1)
		}
		last = remaining
	}
	for _, uncounted := range [][2]string{{"OPTIONS", "/api/v1/calendar"}, {"GET", "/healthz"}, {"GET", "/openapi.json"}, {"GET", "/nothing"}} {
		w.do(uncounted[0], uncounted[1], "X-API-Key: "+w.key["pro"])
	}
	_, remaining, _ := rate(t, w.get("/api/v1/calendar"))
	must.Hold(t, remaining == last-1, "preflight or what is outside the base path counted: got %d remaining, want %d", remaining, last-1)
}

func TestOverTheLimit(t *testing.T) {
	w := newWorld(t)
	send := func() response { return w.do("GET", "/api/v1/calendar", "X-API-Key: "+w.key["trial"]) }
	_, _, reset := rate(t, send())
	for i := range 29 {
		if r := send(); r.StatusCode != http.StatusOK {
			t.Fatalf("request %d of 30: got %d", i+2, r.StatusCode)
		}
	}
	w.real.set(time.Unix(reset, 0).Add(-1500 * time.Millisecond))
	for range 3 { // a refusal counts no further
		r := send()
		limit, remaining, end := rate(t, r)
		if r.StatusCode != http.StatusTooManyRequests || limit != 30 || remaining != 0 || end != reset {
			t.Errorf("got %d, limit %d, remaining %d, reset %d, want 429, 30, 0, %d", r.StatusCode, limit, remaining, end, reset)
		}
		got := r.Header.Get("Retry-After")
		must.Hold(t, got == "2", "1.5 s before the end: got Retry-After %q, want 2: rounded up", got)
	}
	w.real.set(time.Unix(reset, 0).Add(-time.Nanosecond))
	got := send().Header.Get("Retry-After")
	must.Hold(t, got == "1", "just before the end: got Retry-After %q, want 1", got)
	w.real.set(time.Unix(reset, 0))
	if r := send(); r.StatusCode != http.StatusOK || r.Header.Get("X-RateLimit-Remaining") != "29" {
		t.Errorf("in the next window: got %d with %s remaining, want 200 with 29", r.StatusCode, r.Header.Get("X-RateLimit-Remaining"))
	}
}

// TestAnonymousWindow shows that a client without a key sees its own window run down, and gets
// 401 also beyond it.
func TestAnonymousWindow(t *testing.T) {
	w := newWorld(t, func(c *edge.Config, _ *edge.Deps, _ *setup) { c.AnonymousLimit = 2 })
	for i, want := range []int{1, 0, 0} {
		r := w.do("GET", "/api/v1/calendar")
		if limit, remaining, _ := rate(t, r); r.StatusCode != http.StatusUnauthorized || limit != 2 || remaining != want {
			t.Errorf("request %d: got %d, limit %d, remaining %d, want 401, 2, %d", i+1, r.StatusCode, limit, remaining, want)
		}
	}
}
