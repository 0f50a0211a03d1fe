package edge_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/schemas/wire"
	"gridcast/snapshots/blob/memblob"
)

// TestHTTPLayer has a row for each refusal before the gateway sees a request.
func TestHTTPLayer(t *testing.T) {
	w := newWorld(t, func(c *edge.Config, _ *edge.Deps, _ *setup) {
		c.MaxHeaderBytes = 2 << 10
		c.MaxBodyBytes = 100
	})
	for _, tt := range []struct {
		decision, bytes string
		status          int
		code            wire.Code
	}{
		{"no HTTP at all", "nonsense\r\n\r\n", 400, wire.BadRequest},
		{"a header without a colon", "GET / HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n", 400, wire.BadRequest},
		{"a body too large", "POST /api/v1/calendar HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n" + strings.Repeat("x", 101), 413, wire.TooLarge},
		{"a header too large", "GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 2<<10) + "\r\n\r\n", 431, wire.TooLarge},
		{"a target too large", "GET /" + strings.Repeat("x", 2<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431, wire.TooLarge},
	} {
		t.Run(tt.decision, func(t *testing.T) {
			refused(t, w.raw("GET", tt.bytes), tt.status, tt.code)
		})
	}
	t.Run("a request that never ends", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t, piped)
			refused(t, w.raw("GET", "GET /api/v1/calendar HTTP/1.1\r\nHost: x\r\n"), 408, wire.Timeout)
		})
	})
}

// refused checks a refusal after which the connection is closed.
func refused(t *testing.T, r response, status int, code wire.Code) {
	t.Helper()
	body := must.JSON[wire.Error](t, r.body)
	if r.StatusCode != status || body.Error != code || !r.Close {
		t.Errorf("got %d %s, close %t, want %d %s and the connection closed", r.StatusCode, body.Error, r.Close, status, code)
	}
}

// TestBugIsAnError lets the clock of the countdown panic.
func TestBugIsAnError(t *testing.T) {
	var broken atomic.Bool
	w := newWorld(t, func(_ *edge.Config, d *edge.Deps, _ *setup) {
		race := d.RaceTime
		d.RaceTime = func(actual time.Time) time.Time {
			if broken.Load() {
				panic("clock fell off the wall")
			}
			return race(actual)
		}
	})
	<-w.edge.Started() // reads that clock too
	broken.Store(true)
	c := w.dial()
	reader := bufio.NewReader(c)
	for _, tt := range []struct {
		target string
		status int
		body   string
	}{
		{"/api/v1/next-race", 500, `{"ok":false,"error":"internal_error","message":"something went wrong on our side"}`},
		{"/api/v1/nothing", 404, ""}, // on the same connection: the server goes on
	} {
		must.Get(io.WriteString(c, request("GET", tt.target, "X-API-Key: "+w.key["pro"])))(t)
		r := must.Get(read(reader, "GET"))(t)
		check(t, r, tt.target)
		if r.StatusCode != tt.status || tt.body != "" && string(r.body) != tt.body {
			t.Errorf("%s: got %d %s, want %d %s", tt.target, r.StatusCode, r.body, tt.status, tt.body)
		}
	}
}

func TestAddressTaken(t *testing.T) {
	taken := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	cfg := edge.DefaultConfig()
	cfg.Listen = taken.Addr().String()
	e := must.Get(edge.New(cfg, edge.Deps{Store: memblob.New(), Log: discard}))(t)
	must.Fail(t, "an address in use", e.Run(t.Context()), syscall.EADDRINUSE)
}
