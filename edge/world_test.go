package edge_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/edge/keys"
	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/blobtest"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/blob/memblob"
)

// realNow is the clock of limits in tests, some way into a minute.
var realNow = time.Date(2026, 11, 20, 12, 0, 30, 0, time.UTC)

// clock stands still until it is set.
type clock struct{ at atomic.Pointer[time.Time] }

func newClock(at time.Time) *clock {
	c := &clock{}
	c.set(at)
	return c
}

func (c *clock) set(at time.Time) { c.at.Store(&at) }
func (c *clock) now() time.Time   { return *c.at.Load() }

// instead returns the test's time for any real time.
func (c *clock) instead(time.Time) time.Time { return c.now() }

func (c *clock) add(d time.Duration) { c.set(c.now().Add(d)) }

// world is a running edge with a key of each kind.
type world struct {
	t        testing.TB
	edge     *edge.Edge
	listener net.Listener // the edge's listener; a loopback address unless an option says otherwise
	store    *memblob.Store
	real     *clock
	race     *clock
	key      map[string]string // by tier, and "expired", "revoked", "widget"
	stop     func() error      // ends the edge and returns the error of Run
}

type option func(*edge.Config, *edge.Deps, *setup)

// setup is the content of the store when the edge starts.
type setup struct {
	keys, version bool
	copied        bool          // the edge has a copy of both
	warnAfter     time.Duration // 0: the edge's own
	quiet         time.Duration // before downloads are made
	impatient     bool          // the edge does not wait for the store before it serves
	lacks         string        // a path that the version lacks
}

var discard = slog.New(slog.DiscardHandler)

func withoutKeys(_ *edge.Config, _ *edge.Deps, s *setup)    { s.keys = false }
func withoutVersion(_ *edge.Config, _ *edge.Deps, s *setup) { s.version = false }

// perMinute gives a tier another limit.
func perMinute(tier string, limit int) option {
	return func(c *edge.Config, _ *edge.Deps, _ *setup) { c.Tiers[tier] = limit }
}

// onDisk has a store in a folder, with version 1 and a list of keys.
func onDisk(t *testing.T, dir string) (store blob.Store, on option) {
	t.Helper()
	store = must.Get(dirblob.Open(dir))(t)
	edgetest.Publish(t, store, 1)
	must.Do(t, keys.Update(t.Context(), store, func(*keys.List) error { return nil }))
	return store, func(_ *edge.Config, d *edge.Deps, s *setup) {
		d.Store, s.copied, s.keys, s.version = store, true, false, false
	}
}

// newWorld starts an edge that serves version 1. It ends with the test.
func newWorld(t testing.TB, options ...option) *world {
	t.Helper()
	w := &world{
		t: t, store: memblob.New(),
		real: newClock(realNow), race: newClock(edgetest.AbuDhabi.Add(-time.Hour)), key: map[string]string{},
	}
	cfg := edge.DefaultConfig()
	cfg.DrainTimeout = time.Minute // long enough for a busy machine
	deps := edge.Deps{
		Store: w.store, Log: discard, Downloads: edgetest.Downloads{},
		Clock: w.real.now, RaceTime: w.race.instead,
	}
	want := setup{keys: true, version: true}
	for _, o := range options {
		o(&cfg, &deps, &want)
	}
	if deps.Listener == nil {
		deps.Listener = must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		// These connections take real time, and a busy machine must not end them.
		cfg.ReadTimeout, cfg.WriteTimeout, cfg.IdleTimeout = time.Hour, time.Hour, time.Hour
	}
	w.listener = deps.Listener
	if want.keys {
		w.createKeys()
	}
	if want.version {
		w.publish(want.lacks)
	}
	e := must.Get(edge.New(cfg, deps))(t)
	if want.warnAfter > 0 {
		e.WarnAfter(want.warnAfter)
	}
	if want.impatient {
		e.FirstLook(0)
	}
	e.MakeDownloadsAfter(want.quiet)
	w.edge = e
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	ended := false
	w.stop = func() error {
		cancel()
		if ended {
			return nil
		}
		ended = true
		return <-ran
	}
	t.Cleanup(func() {
		must.Succeed(t, "Run", w.stop())
	})
	w.await("keys loaded", func() bool { return e.Status().Keys.Loaded == (want.keys || want.copied) })
	w.await("version loaded", func() bool { return (e.Status().Version > 0) == (want.version || want.copied) })
	return w
}

// published holds the objects of a store with version 1, by the path that the version lacks. They are made once,
// because rendering and checking a version takes most of the time of a new world.
var published = struct {
	sync.Mutex

	objects map[string]map[string][]byte
}{objects: map[string]map[string][]byte{}}

// publish makes version 1 the store's first.
func (w *world) publish(lacks string) {
	w.t.Helper()
	published.Lock()
	defer published.Unlock()
	objects, ok := published.objects[lacks]
	if !ok {
		store := memblob.New()
		edgetest.Publish(w.t, store, 1, lacks)
		objects = blobtest.Objects(w.t, store)
		published.objects[lacks] = objects
	}
	blobtest.Fill(w.t, w.store, objects)
}

// createKeys creates keys of the tiers that tests use most. Others may be added to the defaults.
func (w *world) createKeys() {
	w.t.Helper()
	must.Do(w.t, keys.Update(w.t.Context(), w.store, func(d *keys.List) error {
		for _, tier := range []string{"pro", "sandbox", "standard", "trial"} {
			_, key, err := d.Create(keys.Request{Name: tier, Tier: tier}, realNow)
			if err != nil {
				return err
			}
			w.key[tier] = key
		}
		var err error
		if _, w.key["expired"], err = d.Create(keys.Request{Name: "e", Tier: "pro", Expires: realNow}, realNow.Add(-time.Hour)); err != nil {
			return err
		}
		if _, w.key["widget"], err = d.Create(keys.Request{
			Name: "w", Tier: "pro", Origins: []string{"https://example.org"},
		}, realNow); err != nil {
			return err
		}
		record, key, err := d.Create(keys.Request{Name: "r", Tier: "pro"}, realNow)
		if err != nil {
			return err
		}
		w.key["revoked"] = key
		_, err = d.Revoke(record.ID, realNow)
		return err
	}))
}

// response is a response as it came over the wire.
type response struct {
	*http.Response
	head string // status line and header, byte for byte
	body []byte
}

// dial opens a connection that the end of the test closes.
func (w *world) dial() net.Conn {
	w.t.Helper()
	var (
		c   net.Conn
		err error
	)
	if handed, ok := w.listener.(*edgetest.Listener); ok {
		c = handed.Dial()
	} else if c, err = net.Dial("tcp", w.listener.Addr().String()); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	return c
}

// raw sends bytes on their own connection and reads one response to a request of method.
func (w *world) raw(method, bytes string) response {
	w.t.Helper()
	c := w.dial()
	defer c.Close()
	must.Get(io.WriteString(c, bytes))(w.t)
	r, err := read(bufio.NewReader(c), method)
	must.Require(w.t, err == nil, "%q: %v", bytes, err)
	check(w.t, r, bytes)
	return r
}

// do sends a request with these header lines.
func (w *world) do(method, target string, lines ...string) response {
	w.t.Helper()
	return w.raw(method, request(method, target, lines...))
}

// get is do with a key of the tier pro.
func (w *world) get(target string, lines ...string) response {
	w.t.Helper()
	return w.do("GET", target, append(lines, "X-API-Key: "+w.key["pro"])...)
}

func request(method, target string, lines ...string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: api.example.org\r\n%s\r\n", method, target, strings.Join(append(lines, ""), "\r\n"))
}

// read reads a response and keeps the bytes of its head.
func read(r *bufio.Reader, method string) (response, error) {
	var head bytes.Buffer
	for !bytes.HasSuffix(head.Bytes(), []byte("\r\n\r\n")) {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return response{}, fmt.Errorf("after %q: %w", head.String(), err)
		}
		head.Write(line)
	}
	parsed, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(head.Bytes())), &http.Request{Method: method})
	if err != nil {
		return response{}, err
	}
	var body []byte
	if method != http.MethodHead && parsed.ContentLength > 0 {
		body = make([]byte, parsed.ContentLength)
		_, err = io.ReadFull(r, body)
	}
	return response{Response: parsed, head: head.String(), body: body}, err
}

// check checks every response for the properties of all responses.
func check(t testing.TB, r response, request string) {
	t.Helper()
	limited := 1
	if unlimited(request, r.StatusCode) {
		limited = 0
	}
	for _, name := range []string{"X-RateLimit-Limit: ", "X-RateLimit-Remaining: ", "X-RateLimit-Reset: "} {
		n := strings.Count(r.head, "\r\n"+name)
		must.Hold(t, n == limited, "%q: %d times %q, want %d, in\n%s", request, n, name, limited, r.head)
	}
	for _, name := range []string{
		"Access-Control-Allow-Origin: *\r\n", "Access-Control-Expose-Headers: ", "X-Content-Type-Options: nosniff\r\n",
		"Server: gridcast\r\n", "Date: ",
	} {
		n := strings.Count(r.head, "\r\n"+name)
		must.Hold(t, n == 1, "%q: %d times %q in\n%s", request, n, name, r.head)
	}
	if r.StatusCode >= 400 {
		got := r.Header.Get("Content-Type")
		must.Hold(t, got == "application/json; charset=utf-8", "%q: error of type %q", request, got)
		got = r.Header.Get("Cache-Control")
		must.Hold(t, got == "no-store", "%q: error with Cache-Control %q", request, got)
		if r.body != nil {
			must.Succeed(t, fmt.Sprintf("%q", request), schemas.ValidateBody(schemas.ErrorKind, r.body))
		}
	}
	if strings.Contains(r.head, "Content-Length") && (r.StatusCode == http.StatusNoContent || r.StatusCode == http.StatusNotModified) {
		t.Errorf("%q: content length with status %d", request, r.StatusCode)
	}
}

// unlimited reports whether a request is for a path that needs no key and has no limit. Requests that are no HTTP
// have no path.
func unlimited(request string, status int) bool {
	method, rest, _ := strings.Cut(request, " ")
	target, _, _ := strings.Cut(rest, " ")
	path, _, _ := strings.Cut(target, "?")
	switch status {
	case http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusRequestHeaderFieldsTooLarge:
		return false
	}
	return strings.HasPrefix(target, "/") && method != "OPTIONS" && path != catalog.BasePath && !strings.HasPrefix(path, catalog.BasePath+"/")
}

// variant returns the variant of a target of the fixture.
func variant(t testing.TB, target string) catalog.Variant {
	t.Helper()
	path, query, _ := strings.Cut(strings.TrimPrefix(target, catalog.BasePath), "?")
	i, ok := catalog.Lookup(strings.TrimSuffix(path, "/"))
	must.Require(t, ok, "no endpoint for %s", target)
	return must.Get(catalog.Endpoints[i].Select([]byte(query), edgetest.Known))(t)
}

// valid checks a 200 body against the contract.
func valid(t testing.TB, target string, body []byte) {
	t.Helper()
	_, err := schemas.Decode(variant(t, target), body)
	must.Hold(t, err == nil, "%s: %v\n%s", target, err, body)
}

// await waits until another goroutine has reached a state.
func (w *world) await(what string, happened func() bool) {
	w.t.Helper()
	must.Until(w.t, what, happened)
}

// inBubble runs a test in a bubble, with a clock that advances when nothing else can run, so that
// waits end at the right instant on any machine. Its worlds are piped.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	// The server starts an endless goroutine at its first connection: outside the bubble.
	warm := fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}, Logger: debugless{}}
	client, served := net.Pipe()
	go func() { _ = warm.ServeConn(served) }()
	must.Get(io.WriteString(client, request("GET", "/")))(t)
	must.Get(http.ReadResponse(bufio.NewReader(client), nil))(t)
	client.Close()
	// So do its compressors, and their state from one bubble is useless in the next.
	edge.CompressDocuments()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { must.Advance(time.Minute) }) // the server's workers check once in a while whether to end
		test(t)
	})
}

// piped has connections that are no sockets.
func piped(_ *edge.Config, d *edge.Deps, _ *setup) { d.Listener = edgetest.NewListener() }

type debugless struct{}

func (debugless) Printf(string, ...any) {}

var here = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
