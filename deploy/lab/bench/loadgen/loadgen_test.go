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

var getRoot = []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")

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

// answers returns the number of answers so far.
func answers(g *generator) (n int) {
	for _, s := range g.collected.seconds {
		n += len(s.latencies) + len(s.refusals) + s.Errors
	}
	return n
}

// closedLoop is a load of one server without a schedule.
func closedLoop(server netip.AddrPort, connections int, length time.Duration) Config {
	return openLoop(server, connections, Step{Length: length})
}

func openLoop(server netip.AddrPort, connections int, steps ...Step) Config {
	return Config{Servers: []netip.AddrPort{server}, Connections: connections, Steps: steps, Requests: [][]byte{getRoot}}
}

// byAnswers runs a load on a clock that advances a millisecond for each response and a nanosecond for each
// reading, so that a slow machine exchanges as many requests as a fast one.
func byAnswers(t *testing.T, cfg Config) (Report, error) {
	t.Helper()
	g := must.Get(newGenerator(cfg))(t)
	readings := time.Duration(0)
	g.now = func() time.Duration {
		readings++
		return time.Duration(answers(g))*time.Millisecond + readings
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
	report := must.Get(byAnswers(t, closedLoop(server, connections, length)))(t)
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
	good := closedLoop(answering(http.StatusOK), 2, time.Minute)
	for _, tt := range []struct {
		name   string
		change func(*Config)
	}{
		{"an error", func(c *Config) { c.Servers[0] = answering(http.StatusUnauthorized) }},
		{"a connection that ends", func(c *Config) { c.Servers[0] = closing }},
		{"nobody", func(c *Config) { c.Servers[0] = netip.MustParseAddrPort("127.0.0.1:1") }},
		{"a rate below zero", func(c *Config) { c.Steps[0].PerSecond = -1 }},
		{"more than was asked for", func(c *Config) { c.Servers[0] = talkative }},
		{"no request", func(c *Config) { c.Requests = nil }},
		{"a closed loop before a step", func(c *Config) { c.Steps = append(c.Steps, c.Steps[0]) }},
		{"a step without a length", func(c *Config) { c.Steps[0].Length = 0 }},
		{"an address that is not", func(c *Config) { c.Servers[0] = netip.AddrPort{} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := good
			cfg.Servers, cfg.Steps = slices.Clone(good.Servers), slices.Clone(good.Steps)
			tt.change(&cfg)
			golden.Sentence(t, "refused: "+tt.name, must.Err(Run(cfg)))
		})
	}
}

// TestSchedule has two rates, of which the second divides no second evenly.
func TestSchedule(t *testing.T) {
	cfg := Config{Steps: []Step{{Length: time.Second, PerSecond: 4}, {Length: 500 * time.Millisecond, PerSecond: 3}}}
	var got []time.Duration
	for at, more := cfg.due(0, 0); more; at, more = cfg.due(len(got), 0) {
		got = append(got, at.Round(time.Millisecond))
	}
	want := []time.Duration{0, 250, 500, 750, 1000, 1333}
	for i := range want {
		want[i] *= time.Millisecond
	}
	must.Hold(t, slices.Equal(got, want) && cfg.total() == len(want), "got %v and %d in all, want %v", got, cfg.total(), want)
}

// stalling runs an open loop of 100 requests a second over one connection. The server stalls in the first request. The
// clock advances by a tick at each reading while the server stalls, and otherwise only while no response is missing.
func stalling(t *testing.T, length, stall time.Duration, balance bool) (report Report, latencies []time.Duration, served int64) {
	t.Helper()
	var count atomic.Int64
	goOn := make(chan struct{})
	server := serve(t, func(http.ResponseWriter, *http.Request) {
		if count.Add(1) == 1 {
			<-goOn
		}
	})
	cfg := openLoop(server, 1, Step{Length: length, PerSecond: 100})
	cfg.Balance = balance
	g := must.Get(newGenerator(cfg))(t)
	now, stalls := time.Duration(0), true
	g.now = func() time.Duration {
		if now == stall && stalls {
			stalls = false
			close(goOn)
		}
		if stalls || g.in == 0 {
			now += tick
		}
		return now
	}
	report = must.Get(g.run())(t)
	for _, s := range g.collected.seconds {
		latencies = append(latencies, s.latencies...)
	}
	slices.Sort(latencies)
	return report, latencies, count.Load()
}

const tick = 7 * time.Millisecond

// TestOpenLoop shows that a stall delays every request that is due during it (no coordinated omission): the one connection
// then answers a request each tick, while requests come every 10 ms.
func TestOpenLoop(t *testing.T) {
	const length, interval, stall = 400 * time.Millisecond, 10 * time.Millisecond, 29 * tick
	report, got, served := stalling(t, length, stall, false)
	var want []time.Duration
	for due := time.Duration(0); due < length; due += interval {
		want = append(want, stall+due/interval*tick-due)
	}
	slices.Sort(want)
	for i, latency := range got {
		got[i] = latency.Round(time.Microsecond)
	}
	if !slices.Equal(got, want) || served != int64(len(want)) {
		t.Errorf("%d requests were served, with the latencies %v, want %v", served, got, want)
	}
	if report.Requests != len(want) || report.Length != length || report.P99 != stall || report.P50.Round(time.Microsecond) != want[len(want)/2] {
		t.Errorf("got %+v, want %d requests in %s, 99 of 100 in %s", report, len(want), length, stall)
	}
	must.Hold(t, report.InTime == 1+int((length-stall)/tick), "%d requests were answered in time", report.InTime)
}

// TestBalancerGivesUp stalls the server for longer than a request waits for a connection.
func TestBalancerGivesUp(t *testing.T) {
	const length, stall = 2 * time.Second, 1400 * time.Millisecond
	report, latencies, served := stalling(t, length, stall, true)
	first, second := report.Seconds[0], report.Seconds[1]
	must.Hold(t, first.GivenUp > 30 && first.GivenUp < 60 && second.GivenUp == 0, "got %d and %d requests given up", first.GivenUp, second.GivenUp)
	must.Hold(t, int(served) == 200-first.GivenUp && first.Answered+second.Answered == int(served), "%d requests were served, %d given up", served, first.GivenUp)
	longest := latencies[len(latencies)-2] // the first was under way
	must.Hold(t, longest <= patience, "a request was answered after %s, want %s at most", longest, patience)
}

// TestBalancer has a server that refuses a request in three, fails with one in ten, and closes a connection in
// eleven. The generator counts each kind once, and repeats the requests of closed connections.
func TestBalancer(t *testing.T) {
	var counts [4]atomic.Int64 // success, 429, 503, closed
	var served atomic.Int64
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		n := served.Add(1)
		switch {
		case n%11 == 0:
			counts[3].Add(1)
			panic(http.ErrAbortHandler)
		case n%10 == 0:
			counts[2].Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
		case n%3 == 0:
			counts[1].Add(1)
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			counts[0].Add(1)
		}
	})
	cfg := openLoop(server, 4, Step{Length: time.Second, PerSecond: 300}, Step{Length: time.Second, PerSecond: 100})
	cfg.Balance = true
	g := must.Get(newGenerator(cfg))(t)
	g.now = idleClock(g)
	report := must.Get(g.run())(t)
	var got Second
	for _, s := range report.Seconds {
		got.Answered, got.Refused, got.Errors, got.Repeated = got.Answered+s.Answered, got.Refused+s.Refused, got.Errors+s.Errors, got.Repeated+s.Repeated
	}
	for i, n := range []int{got.Answered, got.Refused, got.Errors, got.Repeated} {
		must.Hold(t, int64(n) == counts[i].Load() && n > 0, "outcome %d: counted %d, the server %d", i, n, counts[i].Load())
	}
	must.Hold(t, got.Answered+got.Refused+got.Errors == 400 && len(report.Seconds) == 2 && report.Seconds[0].Statuses[503] > 0, "got %+v", report)
}

// idleClock is a clock that goes on by a millisecond at each look while no request is under way.
func idleClock(g *generator) func() time.Duration {
	now := time.Duration(0)
	return func() time.Duration {
		if g.in == 0 {
			now += time.Millisecond
		}
		return now
	}
}

// TestBalancerLeavesServer has a server that ends every connection without an answer, and another that answers only when
// the first has ended all its connections for a while. The generator repeats each request once, at the other server.
func TestBalancerLeavesServer(t *testing.T) {
	const connections = 8
	var ended atomic.Int64
	goOn := make(chan struct{})
	answering := serve(t, func(http.ResponseWriter, *http.Request) { <-goOn })
	ending := serve(t, func(http.ResponseWriter, *http.Request) {
		ended.Add(1)
		panic(http.ErrAbortHandler)
	})
	cfg := openLoop(answering, connections, Step{Length: time.Millisecond, PerSecond: connections * 1000})
	cfg.Servers, cfg.Balance = append(cfg.Servers, ending), true
	g := must.Get(newGenerator(cfg))(t)
	readings := 0
	g.now = func() time.Duration {
		if ended.Load() >= connections/2 {
			if readings++; readings == 5000 {
				close(goOn)
			}
		}
		return time.Millisecond
	}
	got := must.Get(g.run())(t).Seconds[0]
	must.Hold(t, got.Answered == connections && got.Repeated == connections/2 && got.Errors == 0 && ended.Load() == connections/2, "got %+v, and %d ended connections", got, ended.Load())
}

// TestBalancerHeedsClose has a server that ends each connection after an answer, and announces it.
func TestBalancerHeedsClose(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	cfg := openLoop(server, 4, Step{Length: time.Millisecond, PerSecond: 100_000})
	cfg.Balance = true
	g := must.Get(newGenerator(cfg))(t)
	g.now = idleClock(g)
	got := must.Get(g.run())(t).Seconds[0]
	must.Hold(t, got.Answered == 100 && got.Repeated == 0, "got %+v", got)
}

// TestOpenLoopGivesUp has a server that never answers.
func TestOpenLoopGivesUp(t *testing.T) {
	ended := make(chan struct{})
	server := serve(t, func(http.ResponseWriter, *http.Request) { <-ended })
	defer close(ended)
	g := must.Get(newGenerator(openLoop(server, 2, Step{Length: time.Second, PerSecond: 10})))(t)
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
		{"kept alive", getRoot, func(cfg Config) (Report, error) { return byAnswers(t, cfg) }, false, false},
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
			cfg := closedLoop(netip.MustParseAddrPort(server.Listener.Addr().String()), 4, 200*time.Millisecond)
			cfg.TLS, cfg.Requests = true, [][]byte{tt.request}
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
