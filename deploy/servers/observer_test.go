package servers

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gridcast/deploy/operator"
	"gridcast/snapshots/blob/memblob"
)

// TestObserverRefuses names the answers to requests that store nothing.
func TestObserverRefuses(t *testing.T) {
	const token, line = "0123456789abcdef", `{"session_key":2024022,"at":"2024-11-24T06:03:30Z","phase":"started"}`
	running := &operator.Operator{Store: memblob.New()}
	for _, tc := range []struct {
		name, authorization, body string
		operator                  *operator.Operator
		status                    int
		want                      string
	}{
		{"no token", "", line, running, 401, "--live-token-file"},
		{"another token", "Bearer 0123456789abcdee", line, running, 401, "--live-token-file"},
		{"before the start", "Bearer " + token, line, nil, 503, "has not started"},
		{"a faulty line", "Bearer " + token, line + "\n{}\n", running, 422, `"lines":2,"new":0`},
		{"too much", "Bearer " + token, strings.Repeat(line+"\n", 20_000), running, 422, "too large"},
		{"nothing", "Bearer " + token, "\n", running, 200, `"lines":0`},
	} {
		r, w := httptest.NewRequest(http.MethodPost, "/live", strings.NewReader(tc.body)), httptest.NewRecorder()
		r.Header.Set("Authorization", tc.authorization)
		o := newObserver(token)
		o.operator.Store(tc.operator)
		o.ServeHTTP(w, r)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s: got %d %.200s, want %d with %q", tc.name, w.Code, w.Body, tc.status, tc.want)
		}
	}
}
