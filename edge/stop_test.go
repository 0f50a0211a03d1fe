package edge_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge"
)

// TestDrain stops an edge while a connection is busy: the connection gets its response, then the end. The edge accepts no other.
func TestDrain(t *testing.T) { inBubble(t, drain) }

func drain(t *testing.T) {
	w := newWorld(t, piped)
	c := w.dial()
	reader := bufio.NewReader(c)
	half := request("GET", "/api/v1/calendar", "X-API-Key: "+w.key["pro"])
	must.Get(io.WriteString(c, half[:20]))(t)
	synctest.Wait() // the edge has read the half
	stopped := make(chan error, 1)
	go func() { stopped <- w.stop() }()
	w.await("stopping", func() bool { return w.edge.Ready() != nil })
	synctest.Wait()
	must.Fail(t, "a new connection", must.Err(w.listener.Accept()), net.ErrClosed)
	must.Get(io.WriteString(c, half[20:]))(t)
	r, err := read(reader, "GET")
	must.Require(t, err == nil && r.StatusCode == http.StatusOK, "got %v, %v, want the response to the request under way", r.Response, err)
	_, err = reader.ReadByte()
	must.Hold(t, errors.Is(err, io.EOF), "after the response: got %v, want the end of the connection", err)
	must.Succeed(t, "Run", <-stopped)
}

// TestCloseBeforeIdle closes a connection, as a stopping server does, between its last response and the wait for the next
// request. fasthttp closes each connection once, so the wait must end by itself.
func TestCloseBeforeIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, socket := net.Pipe()
		defer func() { _ = client.Close() }()
		c := edge.NewConnection(socket)
		must.Do(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		must.Do(t, c.Close())
		_, err := c.Read(make([]byte, 1))
		must.Hold(t, errors.Is(err, net.ErrClosed), "waiting for a request: got %v, want %v", err, net.ErrClosed)
	})
}

// TestStopBeforeStart ends edges that have hardly started.
func TestStopBeforeStart(t *testing.T) {
	w := newWorld(t) // for its store
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	var ended sync.WaitGroup
	edges := 50
	if testing.Short() {
		edges = 10
	}
	for range edges {
		listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		e := must.Get(edge.New(edge.DefaultConfig(), edge.Deps{Store: w.store, Log: discard, Listener: listener}))(t)
		ended.Go(func() {
			must.Succeed(t, "Run", e.Run(stopped))
		})
	}
	ended.Wait()
}

// TestDrainDelay shows that /readyz fails before connections are refused.
func TestDrainDelay(t *testing.T) { inBubble(t, drainDelay) }

func drainDelay(t *testing.T) {
	w := newWorld(t, piped, func(c *edge.Config, _ *edge.Deps, _ *setup) { c.DrainDelay = time.Minute })
	stopped := make(chan error, 1)
	go func() { stopped <- w.stop() }()
	w.await("stopping", func() bool { return w.edge.Ready() != nil })
	r := w.do("GET", "/readyz")
	must.Equal(t, "the status of /readyz", http.StatusServiceUnavailable, r.StatusCode)
	must.Show(t, "/readyz", string(r.body), w.edge.Ready().Error())
	r = w.get("/api/v1/calendar")
	must.Hold(t, r.StatusCode == http.StatusOK, "data: got %d, want 200", r.StatusCode)
	must.Succeed(t, "Run", <-stopped)
}

// TestDrainCutsConnections stops an edge under a client that holds its connection beyond the deadline. This is a clean
// end: the edge logs the number of connections.
func TestDrainCutsConnections(t *testing.T) { inBubble(t, drainCutsConnections) }

func drainCutsConnections(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, piped, func(c *edge.Config, d *edge.Deps, _ *setup) {
		c.DrainTimeout = time.Second
		d.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	c := w.dial()
	must.Get(io.WriteString(c, request("GET", "/api/v1/calendar", "X-API-Key: "+w.key["pro"])[:20]))(t)
	synctest.Wait() // the edge has read the half
	must.Succeed(t, "Run", w.stop())
	got, want := log.String(), "level=WARN msg=\"edge cuts connections at the drain deadline\" connections=1\n"
	must.Hold(t, strings.HasSuffix(got, want), "log: got %q, want the end %q", got, want)
}
