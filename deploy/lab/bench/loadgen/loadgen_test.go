//go:build linux

package loadgen

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

var request = []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")

// serve starts a server and returns its address. The server ends with the test.
func serve(t *testing.T, handler http.HandlerFunc) netip.AddrPort {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		_ = server.Close()
		running.Wait()
	})
	return netip.MustParseAddrPort(listener.Addr().String())
}

// byAnswers runs a load on a clock that advances a millisecond for each response and a nanosecond for each
// reading, so that a slow machine exchanges as many requests as a fast one.
func byAnswers(t *testing.T, cfg Config) (Report, error) {
	t.Helper()
	g := must.Get(newGenerator(cfg))(t)
	readings := time.Duration(0)
	g.now = func() time.Duration {
		readings++
		return time.Duration(len(g.latencies))*time.Millisecond + readings
	}
	return g.run()
}

// TestRunCountsAnswers compares the report with the server's own count. The server answers every other request
// with a body that arrives in several reads, and the others without a body.
func TestRunCountsAnswers(t *testing.T) {
	const connections, length = 8, 400 * time.Millisecond
	var served atomic.Int64
	body := strings.Repeat("x", 300<<10)
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if served.Add(1)%2 == 0 {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = io.WriteString(w, body)
	})
	report := must.Get(byAnswers(t, Config{Server: server, Connections: connections, Length: length, Request: request}))(t)
	if n := int64(report.Requests); n == 0 || n > served.Load() || served.Load()-n > connections {
		t.Errorf("counted %d answers of %d", n, served.Load())
	}
	must.Hold(t, report.P50 > 0 && report.P99 >= report.P50 && report.Length >= length, "implausible: %+v", report)
}

func TestRunRefuses(t *testing.T) {
	answering := func(status int) netip.AddrPort {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	closing := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	talkative := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 304 Not Modified\r\n\r\nmore")
		}
	})
	good := Config{Server: answering(http.StatusOK), Connections: 2, Length: time.Minute, Request: request}
	for _, tt := range []struct {
		name   string
		change func(*Config)
	}{
		{"an error", func(c *Config) { c.Server = answering(http.StatusUnauthorized) }},
		{"a connection that ends", func(c *Config) { c.Server = closing }},
		{"nobody", func(c *Config) { c.Server = netip.MustParseAddrPort("127.0.0.1:1") }},
		{"a rate below zero", func(c *Config) { c.PerSecond = -1 }},
		{"more than was asked for", func(c *Config) { c.Server = talkative }},
		{"no request", func(c *Config) { c.Request = nil }},
		{"an address that is not", func(c *Config) { c.Server = netip.AddrPort{} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := good
			tt.change(&cfg)
			golden.Sentence(t, "refused: "+tt.name, must.Err(Run(cfg)))
		})
	}
}

// TestOpenLoop stalls the server, so that several requests wait on a connection. The generator sends as many as the
// schedule has, and their latencies count from the instants at which they were due. The clock advances by 7 ms
// while the server stalls, and otherwise only while no response is missing.
func TestOpenLoop(t *testing.T) {
	const length, interval, tick, stall = 400 * time.Millisecond, 10 * time.Millisecond, 7 * time.Millisecond, 29 * 7 * time.Millisecond
	var served atomic.Int64
	goOn := make(chan struct{})
	server := serve(t, func(http.ResponseWriter, *http.Request) {
		if served.Add(1) == 1 {
			<-goOn
		}
	})
	g := must.Get(newGenerator(Config{Server: server, Connections: 1, Length: length, Request: request, PerSecond: 100}))(t)
	now, stalls := time.Duration(0), true
	g.now = func() time.Duration {
		if now == stall && stalls {
			stalls = false
			close(goOn)
		}
		if stalls || g.sent == len(g.latencies) {
			now += tick
		}
		return now
	}
	report := must.Get(g.run())(t)
	var want []time.Duration // a request that is due between two ticks is sent at the second
	for due := time.Duration(0); due < length; due += interval {
		want = append(want, max(stall, (due+tick-1)/tick*tick)-due)
	}
	slices.Sort(want)
	for i, latency := range g.latencies {
		g.latencies[i] = latency.Round(time.Microsecond)
	}
	if !slices.Equal(g.latencies, want) || served.Load() != int64(len(want)) {
		t.Errorf("%d requests were served, with the latencies %v, want %v", served.Load(), g.latencies, want)
	}
	if report.Requests != len(want) || report.Length != length || report.P99.Round(time.Microsecond) != stall || report.P50.Round(time.Microsecond) != want[len(want)/2] {
		t.Errorf("got %+v, want %d requests in %s, 99 of 100 in %s", report, len(want), length, stall)
	}
}

// TestOpenLoopGivesUp has a server that never answers.
func TestOpenLoopGivesUp(t *testing.T) {
	ended := make(chan struct{})
	server := serve(t, func(http.ResponseWriter, *http.Request) { <-ended })
	defer close(ended)
	g := must.Get(newGenerator(Config{Server: server, Connections: 2, Length: time.Second, Request: request, PerSecond: 10}))(t)
	now := time.Duration(0)
	g.now = func() time.Duration { now += 10 * time.Millisecond; return now }
	golden.Sentence(t, "a server that never answers", must.Err(g.run()))
}

// TestResponseInParts gives two responses in a row in two parts, cut at every byte.
func TestResponseInParts(t *testing.T) {
	for _, whole := range []string{
		"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 12\r\n\r\nContent-Len:",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 304 Not Modified\r\nServer: x\r\n\r\n",
	} {
		var r response
		for cut := 1; cut < 2*len(whole); cut++ {
			ended := 0
			for _, part := range []string{(whole + whole)[:cut], (whole + whole)[cut:]} {
				for p := []byte(part); len(p) > 0; {
					rest, complete, err := r.parse(p)
					must.Require(t, err == nil, "%q, %d bytes at once: %v", whole, cut, err)
					if p = rest; complete {
						ended++
					}
				}
			}
			must.Require(t, ended == 2, "%q, %d bytes at once: %d responses, want 2", whole, cut, ended)
		}
	}
}

func TestResponseRefused(t *testing.T) {
	for _, whole := range []string{
		"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 429 Too Many Requests\r\nA: b\r\n\r\n", "\r\n\r\n", "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("b", 1<<16),
	} {
		var r response
		golden.Sentence(t, fmt.Sprintf("response %.60q", whole), must.Err2(r.parse([]byte(whole))))
	}
}

// TestTLS compares the reports with the server's count of connections and resumed sessions.
func TestTLS(t *testing.T) {
	closing := []byte("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	for _, tt := range []struct {
		name           string
		request        []byte
		run            func(Config) (Report, error)
		short, resumes bool
	}{
		{"kept alive", request, func(cfg Config) (Report, error) { return byAnswers(t, cfg) }, false, false},
		{"a connection for each request", closing, func(cfg Config) (Report, error) { return RunShort(cfg, false) }, true, false},
		{"with tickets", closing, func(cfg Config) (Report, error) { return RunShort(cfg, true) }, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var served, opened, resumed atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				served.Add(1)
				if r.TLS.DidResume {
					resumed.Add(1)
				}
				_, _ = io.WriteString(w, strings.Repeat("x", 1000))
			}))
			server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					opened.Add(1)
				}
			}
			server.StartTLS()
			cfg := Config{
				Server: netip.MustParseAddrPort(server.Listener.Addr().String()), Connections: 4, Length: 200 * time.Millisecond, TLS: true, Request: tt.request,
			}
			report := must.Get(tt.run(cfg))(t)
			server.Close() // waits for the handlers
			connections := int64(cfg.Connections)
			if n := int64(report.Requests); n == 0 || n > served.Load() || served.Load()-n > connections {
				t.Errorf("counted %d answers of %d", n, served.Load())
			}
			want := connections
			if tt.short {
				want = served.Load()
			}
			if opened.Load() != want {
				t.Errorf("got %d connections, want %d", opened.Load(), want)
			}
			sessions := int64(0)
			if tt.resumes {
				sessions = served.Load() - connections // the first connection of each worker has no ticket
			}
			if resumed.Load() != sessions {
				t.Errorf("got %d resumed sessions of %d, want %d", resumed.Load(), served.Load(), sessions)
			}
		})
	}
}
