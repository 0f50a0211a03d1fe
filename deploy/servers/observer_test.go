package servers

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/flags"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/snapshots/blob/memblob"
)

// liveToken returns the token of live sources, read from a file.
func liveToken(t *testing.T, text string) *flags.Token {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	return must.Get((&flags.Console{LiveTokenFile: file}).LiveToken())(t)
}

// noLedger is the fault of lines of a service without a ledger.
var noLedger = regexp.MustCompile(`("line \d+: there is no ledger",)+`)

// TestObserverRefuses names the answers to requests that store nothing.
func TestObserverRefuses(t *testing.T) {
	const token, line = "0123456789abcdef", `{"session_key":2024022,"at":"2024-11-24T06:03:30Z","phase":"started"}`
	live := liveToken(t, token)
	running := &operator.Operator{Store: memblob.New()}
	for _, tc := range []struct {
		name, authorization, body string
		operator                  *operator.Operator
	}{
		{"no token", "", line, running},
		{"another token", "Bearer 0123456789abcdee", line, running},
		{"before the start", "Bearer " + token, line, nil},
		{"a faulty line", "Bearer " + token, line + "\n{}\n", running},
		{"too much", "Bearer " + token, strings.Repeat(line+"\n", 20_000), running},
		{"nothing", "Bearer " + token, "\n", running},
	} {
		r, w := httptest.NewRequest(http.MethodPost, "/live", strings.NewReader(tc.body)), httptest.NewRecorder()
		r.Header.Set("Authorization", tc.authorization)
		o := &observer{token: live}
		o.operator.Store(tc.operator)
		o.ServeHTTP(w, r)
		golden.Sentence(t, "live lines: "+tc.name, fmt.Sprint(w.Code, " ", noLedger.ReplaceAllString(w.Body.String(), "…")))
	}
}

// TestGuessingTheLiveToken checks that after ten wrong tokens an address has to wait, and other addresses have not.
func TestGuessingTheLiveToken(t *testing.T) {
	const token = "0123456789abcdef"
	live := liveToken(t, token)
	synctest.Test(t, func(t *testing.T) {
		o := &observer{token: live}
		o.operator.Store(&operator.Operator{Store: memblob.New()})
		want := func(address, token string, status int) {
			t.Helper()
			r, w := httptest.NewRequest(http.MethodPost, "/live", strings.NewReader("\n")), httptest.NewRecorder()
			r.RemoteAddr = address
			r.Header.Set("Authorization", "Bearer "+token)
			o.ServeHTTP(w, r)
			if w.Code != status || (w.Header().Get("Retry-After") != "") != (status == http.StatusTooManyRequests) {
				t.Errorf("%s with %s: got %d, Retry-After %q; want %d", address, token, w.Code, w.Header().Get("Retry-After"), status)
			}
		}
		for range 10 {
			want("192.0.2.1:1000", "guess", http.StatusUnauthorized)
		}
		want("192.0.2.1:1001", "guess", http.StatusTooManyRequests)
		want("192.0.2.1:1002", token, http.StatusTooManyRequests)
		want("192.0.2.2:1000", token, http.StatusOK)
		must.Advance(time.Minute)
		want("192.0.2.1:1003", token, http.StatusOK)
	})
}

// TestTokensFollowTheirFiles replaces the tokens of a running port in the ways of editors and of Kubernetes. A file without
// a usable token changes nothing, and the log says so once.
func TestTokensFollowTheirFiles(t *testing.T) {
	var log must.Buffer
	s := terminal.New(&log, &log)
	s.Log = slog.New(slog.NewTextHandler(&log, nil))
	dir := t.TempDir()
	write := func(folder, text string) {
		t.Helper()
		must.Do(t, os.MkdirAll(filepath.Join(dir, folder), 0o700))
		for _, name := range []string{"operator", "live"} {
			must.Do(t, os.WriteFile(filepath.Join(dir, folder, name), []byte(text), 0o600))
		}
	}
	write("..1", "the first token of all\n")
	must.Do(t, os.Symlink("..1", filepath.Join(dir, "..data")))
	f := &flags.Console{
		OperatorListen: "127.0.0.1:0", OperatorTokenFile: filepath.Join(dir, "..data", "operator"), LiveTokenFile: filepath.Join(dir, "..data", "live"),
	}
	p := must.Get(listen(t.Context(), f, &worker{streams: s}))(t)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- p.serve(ctx) }()
	defer func() {
		stop()
		must.Do(t, <-served)
	}()
	requests := 0
	accepts := func(token string) bool {
		t.Helper()
		r, w := httptest.NewRequest(http.MethodPost, "/live", nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+token)
		requests++ // each from another address, because an address may send few wrong tokens a minute
		r.RemoteAddr = netip.AddrFrom4([4]byte{10, byte(requests >> 16), byte(requests >> 8), byte(requests)}).String()
		p.ServeHTTP(w, r)
		return w.Code != http.StatusUnauthorized && p.token.Value() == token
	}
	must.Require(t, accepts("the first token of all"), "the first token is refused")
	write("..2", "the second token of all\n")
	must.Do(t, os.Symlink("..2", filepath.Join(dir, "..new")))
	must.Do(t, os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")))
	must.Until(t, "the swap of a link", func() bool { return accepts("the second token of all") })
	must.Hold(t, !accepts("the first token of all"), "a replaced token is still accepted")
	write("next", "the third token of all\n")
	for _, name := range []string{"operator", "live"} {
		must.Do(t, os.Rename(filepath.Join(dir, "next", name), filepath.Join(dir, "..2", name)))
	}
	must.Until(t, "another file", func() bool { return accepts("the third token of all") })
	const refused = "its last good content stays in use"
	for i, bad := range []func(string) error{
		func(file string) error { return os.Truncate(file, 0) },
		func(file string) error { return os.WriteFile(file, []byte("too short"), 0o600) }, // the fault goes on: nothing is said again
		os.Remove,
	} {
		before := strings.Count(log.String(), refused)
		must.Do(t, bad(f.OperatorTokenFile))
		must.Do(t, bad(f.LiveTokenFile))
		if i == 0 {
			must.Until(t, "emptied files", func() bool { return strings.Count(log.String(), refused) == 2 })
		} else if n := strings.Count(log.String(), refused); n != before {
			t.Errorf("one fault is said %d times", n)
		}
		must.Hold(t, accepts("the third token of all"), "the last good token is refused")
	}
	write("..2", "the fourth token of all\n")
	must.Until(t, "files that are good again", func() bool { return accepts("the fourth token of all") })
	must.Do(t, os.Truncate(f.LiveTokenFile, 0))
	must.Until(t, "an emptied file, later", func() bool { return strings.Count(log.String(), refused) == 3 })
}

// TestNotifyStarted: systemd hears that a server is ready once it has a version. Without one it hears that before it would
// end the server after 90 s.
func TestNotifyStarted(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	systemd := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"}))(t)
	t.Cleanup(func() { _ = systemd.Close() })
	t.Setenv("NOTIFY_SOCKET", socket)
	heard := func() string {
		t.Helper()
		state := make([]byte, 100)
		n := must.Get(systemd.Read(state))(t)
		return string(state[:n])
	}
	version := make(chan struct{})
	close(version)
	for _, test := range []struct {
		name    string
		started chan struct{}
		after   time.Duration
	}{{"a version", version, 0}, {"no version", nil, startWait}} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			notifyStarted(t.Context(), test.started, slog.New(slog.DiscardHandler))
			took := time.Since(began)
			must.Hold(t, took == test.after && took < 90*time.Second, "%s: systemd is told after %v, want %v", test.name, took, test.after)
		})
		got := heard()
		must.Hold(t, got == "READY=1", "%s: systemd heard %q", test.name, got)
		if got := heard(); got != "STOPPING=1" {
			t.Errorf("%s: at the end of the context systemd heard %q", test.name, got)
		}
	}
}

// TestReturnMemory: a process returns much garbage once, in its first quiet second, and little garbage never.
func TestReturnMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			must.Succeed(t, "returnMemory", returnMemory(ctx))
		}()
		defer synctest.Wait()
		defer cancel()
		collections := func(after time.Duration) uint32 {
			var before, now runtime.MemStats
			runtime.ReadMemStats(&before)
			must.Advance(after)
			runtime.ReadMemStats(&now)
			return now.NumForcedGC - before.NumForcedGC
		}
		collections(time.Minute) // other tests may have left garbage
		for _, test := range []struct {
			name      string
			allocated int
			after     time.Duration
			want      uint32
		}{
			{"much garbage in a busy second", 2 * muchGarbage, time.Second, 0},
			{"a quiet second after it", 0, time.Second, 2},
			{"later", 0, time.Minute, 0},
			{"little garbage", muchGarbage / 2, time.Minute, 0},
		} {
			held = make([]byte, test.allocated)
			must.Equal(t, test.name+": collections", test.want, collections(test.after))
		}
	})
}

var held []byte // so that the compiler does not omit the allocation
