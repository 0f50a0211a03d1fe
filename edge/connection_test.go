package edge_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge"
)

// asker is a client's connection.
type asker struct {
	net.Conn

	reader *bufio.Reader
}

func (w *world) asker() *asker {
	c := w.dial()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return &asker{c, bufio.NewReader(c)}
}

// ask sends the rest of a request and returns the status of its response.
func (a *asker) ask(t *testing.T, rest string) int {
	t.Helper()
	must.Get(io.WriteString(a, rest))(t)
	r, err := read(a.reader, "GET")
	must.Require(t, err == nil, "%q: %v", rest, err)
	must.Advance(time.Second) // the edge knows since when the connection is idle
	return r.StatusCode
}

// TestIdleConnectionsMakeRoom fills the places of an edge. A new client then gets the place of the connection
// that has been idle for longest, and a request that has begun to arrive is answered.
func TestIdleConnectionsMakeRoom(t *testing.T) { inBubble(t, idleMakeRoom) }

func idleMakeRoom(t *testing.T) {
	w := newWorld(t, piped, func(c *edge.Config, _ *edge.Deps, _ *setup) { c.MaxConnections = 3 })
	whole := request("GET", "/api/v1/calendar", "X-API-Key: "+w.key["pro"])
	busy, first, second := w.asker(), w.asker(), w.asker()
	if got := busy.ask(t, whole+whole[:30]); got != http.StatusOK { // the server reads both at once
		t.Fatalf("got %d", got)
	}
	for _, idle := range []*asker{first, second} {
		got := idle.ask(t, whole)
		must.Require(t, got == http.StatusOK, "got %d", got)
	}
	got := w.asker().ask(t, whole)
	must.Hold(t, got == http.StatusOK, "a new client: got %d, want 200", got)
	_, err := first.reader.ReadByte()
	must.Hold(t, errors.Is(err, io.EOF), "the longest idle connection: got %v, want its end", err)
	for name, c := range map[string]func() int{
		"the other idle connection": func() int { return second.ask(t, whole) },
		"the begun request":         func() int { return busy.ask(t, whole[30:]) },
	} {
		got := c()
		must.Hold(t, got == http.StatusOK, "%s: got %d, want 200", name, got)
	}
}

// TestIdleConnectionsKeepNoRequest: a connection that waits after the largest request takes hardly more memory than one that
// waits after a small one.
func TestIdleConnectionsKeepNoRequest(t *testing.T) {
	const connections, most = 200, 8 << 10
	w := newWorld(t, func(c *edge.Config, _ *edge.Deps, _ *setup) { c.IdleTimeout = time.Hour })
	held := func() int64 {
		runtime.GC()
		runtime.GC() // a pool keeps its buffers until the second collection
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	all := make([]*asker, connections)
	ask := func(whole string) {
		for i := range all {
			if all[i] == nil {
				all[i] = w.asker()
			}
			must.Get(io.WriteString(all[i], whole))(t)
			r := must.Get(read(all[i].reader, "GET"))(t)
			must.Require(t, r.StatusCode == http.StatusOK, "got %s", r.Status)
		}
	}
	ask(request("GET", "/healthz"))
	before := held()
	ask(request("GET", "/healthz", "X: "+strings.Repeat("x", 7<<10), "Content-Length: 16000") + strings.Repeat("x", 16000))
	each := int64(0)
	kept := !must.Within(20*time.Second, func() bool { each = (held() - before) / connections; return each < most })
	must.Hold(t, !kept, "an idle connection keeps %d bytes of its last request", each)
}

// TestRefusalAfterALargeAnswer sends a request that is refused behind one with a large answer, and goes on sending.
// The client, which reads late and slowly, gets both answers whole.
func TestRefusalAfterALargeAnswer(t *testing.T) {
	w := newWorld(t)
	for name, refused := range map[string]string{
		"no HTTP":         "nonsense\r\n\r\n",
		"a coded body":    request("POST", "/healthz", "Transfer-Encoding: chunked"),
		"a large header":  request("GET", "/healthz", "X: "+strings.Repeat("x", 64<<10)),
		"a large body":    request("POST", "/healthz", "Content-Length: 1000000"),
		"the last of all": request("GET", "/healthz", "Connection: close"),
	} {
		t.Run(name, func(t *testing.T) {
			dialer := net.Dialer{Control: func(_, _ string, socket syscall.RawConn) (err error) {
				return errors.Join(socket.Control(func(fd uintptr) {
					err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1)
				}), err)
			}}
			c := must.Get(dialer.Dial("tcp", w.listener.Addr().String()))(t)
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			must.Get(io.WriteString(c, request("GET", "/docs")+refused+strings.Repeat("more", 1<<10)))(t)
			reader := bufio.NewReader(c)
			first, err := read(reader, "GET")
			if err != nil || first.StatusCode != http.StatusOK || len(first.body) < 10_000 {
				t.Fatalf("the large answer: got %d bytes, %v", len(first.body), err)
			}
			must.Succeed(t, "the connection takes no more", must.Err(io.WriteString(c, "more")))
			second, err := read(reader, "GET")
			must.Require(t, err == nil && second.Close, "the refusal: got %v, %v", second.Response, err)
			_, err = reader.ReadByte()
			must.Hold(t, errors.Is(err, io.EOF), "then: got %v, want the end", err)
		})
	}
}

// TestStartWithoutAnything accepts connections of an edge that has no copy and whose store does not answer.
func TestStartWithoutAnything(t *testing.T) {
	w := newWorld(t, withoutKeys, withoutVersion, func(_ *edge.Config, d *edge.Deps, _ *setup) { d.Store = dead(d.Store) })
	r := w.do("GET", "/api/v1/calendar")
	must.Hold(t, r.StatusCode == http.StatusServiceUnavailable && bytes.Contains(r.body, []byte("starting")), "got %d %s, want 503", r.StatusCode, r.body)
}
