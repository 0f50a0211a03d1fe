//go:build linux

package light

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var requests = [][]byte{[]byte("GET /full HTTP/1.1\r\nHost: x\r\n\r\n"), []byte("GET /bare HTTP/1.1\r\nHost: x\r\n\r\n")}

// serve starts a server and returns its address. The server ends with the test.
func serve(t *testing.T, handler http.HandlerFunc) netip.AddrPort {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		_ = server.Close()
		running.Wait()
	})
	return netip.MustParseAddrPort(listener.Addr().String())
}

// TestRunCountsAnswers lets the server count too. One of two requests is answered with more
// than arrives at once, the other without a body.
func TestRunCountsAnswers(t *testing.T) {
	const connections, length = 8, 300 * time.Millisecond
	var full, bare atomic.Int64
	body := strings.Repeat("x", 300<<10)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bare" {
			bare.Add(1)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		full.Add(1)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = io.WriteString(w, body)
	})
	report, err := Run(Config{Server: server, Connections: connections, Length: length, Requests: requests})
	if err != nil {
		t.Fatal(err)
	}
	served := full.Load() + bare.Load()
	if n := int64(report.Requests); n == 0 || n > served || served-n > connections {
		t.Errorf("counted %d answers of %d", n, served)
	}
	if d := full.Load() - bare.Load(); d < -connections || d > connections {
		t.Errorf("%d and %d requests of two in turn", full.Load(), bare.Load())
	}
	if report.P50 <= 0 || report.P99 < report.P50 || report.Length < length {
		t.Errorf("implausible: %+v", report)
	}
}

func TestRunRefuses(t *testing.T) {
	answering := func(status int) netip.AddrPort {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	closing := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	good := Config{Server: answering(http.StatusOK), Connections: 2, Length: 10 * time.Second, Requests: requests}
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"an error", func(c *Config) { c.Server = answering(http.StatusUnauthorized) }, `answered with "HTTP/1.1 401 Unauthorized"`},
		{"a connection that ends", func(c *Config) { c.Server = closing }, "the server has closed a connection"},
		{"nobody", func(c *Config) { c.Server = netip.MustParseAddrPort("127.0.0.1:1") }, "connect to 127.0.0.1:1: connection refused"},
		{"no requests", func(c *Config) { c.Requests = nil }, "2 connections, 10s, 0 requests"},
		{"an address that is not", func(c *Config) { c.Server = netip.AddrPort{} }, "want an IPv4 address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := good
			tt.change(&cfg)
			if _, err := Run(cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// TestResponseInParts gives every response in two parts, cut at every byte.
func TestResponseInParts(t *testing.T) {
	for _, whole := range []string{
		"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 12\r\n\r\nContent-Len:",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 304 Not Modified\r\nServer: x\r\n\r\n",
	} {
		var r response
		for cut := 1; cut < len(whole); cut++ {
			if complete, err := r.take([]byte(whole[:cut])); complete || err != nil {
				t.Fatalf("%d bytes of %q: complete %v, %v", cut, whole, complete, err)
			}
			if complete, err := r.take([]byte(whole[cut:])); !complete || err != nil {
				t.Fatalf("%q after %d bytes: complete %v, %v", whole, cut, complete, err)
			}
		}
	}
}

func TestResponseRefused(t *testing.T) {
	for whole, want := range map[string]string{
		"HTTP/1.1 200 OK\r\n\r\n":                           "without Content-Length",
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n":      `parsing "x"`,
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP": "4 bytes follow",
		"HTTP/1.1 429 Too Many Requests\r\nA: b\r\n\r\n":    `"HTTP/1.1 429 Too Many Requests"`,
		"\r\n\r\n": `answered with ""`,
		"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("b", 1<<16): "no end of a header",
	} {
		var r response
		if _, err := r.take([]byte(whole)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, want an error with %q", whole, err, want)
		}
	}
}
