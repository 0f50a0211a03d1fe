package edge_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge/keys"
)

// TestCredentials has a row for each decision about keys.
func TestCredentials(t *testing.T) {
	w := newWorld(t)
	good, typo := w.key["pro"], []byte(w.key["pro"])
	typo[20] ^= 1
	const (
		noKey   = `Bearer realm="gridcast"`
		refused = `Bearer realm="gridcast", error="invalid_token"`
	)
	for _, tt := range []struct {
		decision  string
		lines     []string
		challenge string // WWW-Authenticate of a 401; empty: the key is accepted
	}{
		{"Bearer", []string{"Authorization: Bearer " + good}, ""},
		{"the scheme is case-insensitive", []string{"Authorization: bEARER " + good}, ""},
		{"X-API-Key", []string{"X-API-Key: " + good}, ""},
		{"header names are case-insensitive", []string{"x-api-key: " + good}, ""},
		{"also that of the Bearer", []string{"authorization: Bearer " + good}, ""},
		{"a Bearer decides, the other field may be wrong", []string{"Authorization: Bearer " + good, "X-API-Key: wrong"}, ""},
		{"a Bearer decides, also when it is wrong", []string{"Authorization: Bearer wrong", "X-API-Key: " + good}, refused},
		{"an empty Bearer is ignored", []string{"Authorization: Bearer", "X-API-Key: " + good}, ""},
		{"a blank Bearer is ignored", []string{"Authorization: Bearer  \t", "X-API-Key: " + good}, ""},
		{"a blank Bearer beside a wrong key", []string{"Authorization: Bearer ", "X-API-Key: wrong"}, refused},
		{"an empty Bearer is no key", []string{"Authorization: Bearer"}, noKey},
		{"an empty X-API-Key beside a Bearer", []string{"Authorization: Bearer " + good, "X-API-Key:"}, ""},
		{"another scheme is ignored", []string{"Authorization: Basic dTpw", "X-API-Key: " + good}, ""},
		{"another scheme is no key", []string{"Authorization: Basic dTpw"}, noKey},
		{"a scheme that begins like Bearer is another", []string{"Authorization: Bearers " + good}, noKey},
		{"repeated Authorization", []string{"Authorization: Bearer " + good, "Authorization: Bearer " + good}, refused},
		{"repeated Authorization, one of another scheme", []string{"Authorization: Basic dTpw", "Authorization: Bearer " + good}, refused},
		{"repeated X-API-Key", []string{"X-API-Key: " + good, "X-API-Key: " + good}, refused},
		{"missing", nil, noKey},
		{"empty", []string{"X-API-Key:"}, noKey},
		{"unknown", []string{"X-API-Key: " + keys.Generate()}, refused},
		{"a typo", []string{"X-API-Key: " + string(typo)}, refused},
		{"revoked", []string{"X-API-Key: " + w.key["revoked"]}, refused},
		{"expired", []string{"X-API-Key: " + w.key["expired"]}, refused},
	} {
		t.Run(tt.decision, func(t *testing.T) {
			r := w.do("GET", "/api/v1/calendar", tt.lines...)
			if tt.challenge == "" {
				if r.StatusCode != http.StatusOK {
					t.Errorf("got %d, want 200: %s", r.StatusCode, r.body)
				}
				return
			}
			if r.StatusCode != http.StatusUnauthorized || !strings.Contains(r.head, "\r\nWWW-Authenticate: "+tt.challenge+"\r\n") {
				t.Errorf("got\n%swant 401 with %s", r.head, tt.challenge)
			}
			body := `{"ok":false,"error":"unauthorized","message":"this API key is not valid: check that all of it was copied, and that it has neither expired nor been revoked"}`
			if tt.challenge == noKey {
				body = `{"ok":false,"error":"unauthorized","message":"no API key arrived: send it as Authorization: Bearer KEY or X-API-Key: KEY; a key in the query is not read"}`
			}
			if string(r.body) != body {
				t.Errorf("got body %s, want the same one for every fault of a key:\n%s", r.body, body)
			}
		})
	}
	t.Run("never in the query", func(t *testing.T) {
		for _, name := range []string{"key", "api_key", "access_token"} {
			if r := w.do("GET", "/api/v1/calendar?"+name+"="+good); r.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s: got %d, want 401", name, r.StatusCode)
			}
		}
	})
	t.Run("expiry is real time", func(t *testing.T) {
		w.real.add(-time.Minute)
		defer w.real.add(time.Minute)
		if r := w.do("GET", "/api/v1/calendar", "X-API-Key: "+w.key["expired"]); r.StatusCode != http.StatusOK {
			t.Errorf("before the expiry: got %d, want 200", r.StatusCode)
		}
	})
}

// TestOrigins has a row for each decision about keys for widgets.
func TestOrigins(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		decision, key, origin string
		status                int
	}{
		{"an allowed origin", "widget", "https://example.org", 200},
		{"another one", "widget", "https://evil.example", 403},
		{"another port is another origin", "widget", "https://example.org:8443", 403},
		{"the opaque origin", "widget", "null", 403},
		{"two origins in one field", "widget", "https://example.org https://evil.example", 403},
		{"a list of origins", "widget", "https://example.org, https://example.org", 403},
		{"no origin", "widget", "", 200},
		{"a key without origins", "pro", "https://evil.example", 200},
	} {
		t.Run(tt.decision, func(t *testing.T) {
			var lines []string
			if tt.origin != "" {
				lines = append(lines, "Origin: "+tt.origin)
			}
			r := w.do("GET", "/api/v1/calendar", append(lines, "X-API-Key: "+w.key[tt.key])...)
			if r.StatusCode != tt.status {
				t.Errorf("got %d, want %d: %s", r.StatusCode, tt.status, r.body)
			}
			if tt.status == 403 && !strings.Contains(string(r.body), `"error":"origin_not_allowed"`) {
				t.Errorf("got body %s", r.body)
			}
		})
	}
}

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
		if got := ask(tt.key); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
	w.real.add(time.Hour)
	if got := ask(key); got != 401 {
		t.Errorf("expired: got %d, want 401", got)
	}
	w.real.add(-time.Hour)
	if got := ask(key); got != 200 {
		t.Errorf("before it expires: got %d, want 200", got)
	}
	change(func(d *keys.List) error {
		_, err := d.Revoke(record.ID, realNow)
		return err
	})
	w.await("the revoked key is refused", func() bool { return ask(key) == 401 })
	if got := ask(w.key["standard"]); got != 200 {
		t.Errorf("another key: got %d, want 200", got)
	}
}
