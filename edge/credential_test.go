package edge_test

import (
	"bufio"
	"io"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge/keys"
)

// TestConnectionRemembersItsKey changes the rights of a key under an open connection.
func TestConnectionRemembersItsKey(t *testing.T) {
	w := newWorld(t)
	c := w.dial()
	reader := bufio.NewReader(c)
	ask := func(key string) int {
		t.Helper()
		must.Get(io.WriteString(c, request("GET", "/api/v1/calendar", "X-API-Key: "+key)))(t)
		r := must.Get(read(reader, "GET"))(t)
		return r.StatusCode
	}
	var record keys.StoredKey
	var key string
	change := func(f func(*keys.List) error) {
		t.Helper()
		must.Do(t, keys.Update(t.Context(), w.store, f))
	}
	change(func(d *keys.List) (err error) {
		record, key, err = d.Create(keys.Request{Name: "n", Tier: "pro", Expires: realNow.Add(time.Hour)}, realNow)
		return err
	})
	w.await("the new key works", func() bool { return ask(key) == 200 })
	for _, tt := range []struct {
		name, key string
		want      int
	}{
		{"again", key, 200},
		{"another one", w.key["standard"], 200},
		{"one that is like it", key[:len(key)-1] + "!", 401},
		{"none", "", 401},
		{"the first", key, 200},
	} {
		must.Equal(t, tt.name, tt.want, ask(tt.key))
	}
	w.real.add(time.Hour)
	got := ask(key)
	must.Hold(t, got == 401, "expired: got %d, want 401", got)
	w.real.add(-time.Hour)
	got = ask(key)
	must.Hold(t, got == 200, "before it expires: got %d, want 200", got)
	change(func(d *keys.List) error {
		_, err := d.Revoke(record.ID, realNow)
		return err
	})
	w.await("the revoked key is refused", func() bool { return ask(key) == 401 })
	got = ask(w.key["standard"])
	must.Hold(t, got == 200, "another key: got %d, want 200", got)
}
