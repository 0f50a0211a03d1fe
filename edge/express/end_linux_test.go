package express

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestEndWhileALoopYields ends a loop that is about to yield. The system frees its
// epoll instance only when the loop no longer uses it, so the caller of end must not hold the lock then.
func TestEndWhileALoopYields(t *testing.T) {
	p := aloneLoop(t, Config{ReadBufferSize: 4 << 10, MaxConnections: 1})
	inside, yields, ran, ended := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ran)
		_ = p.poll.Read(func(uintptr) bool {
			close(inside)
			<-yields
			p.yield()
			return false
		})
	}()
	<-inside
	go func() {
		defer close(ended)
		p.end()
	}()
	for free := true; free; { // until end holds the lock, or has held it
		if free = p.mu.TryLock(); free {
			free = !p.ended
			p.mu.Unlock()
		}
	}
	close(yields)
	<-ran
	<-ended
}

// TestConnectionBeginsWithAnOwner looks for connections to end during the set-up of one.
func TestConnectionBeginsWithAnOwner(t *testing.T) {
	p := &loop{}
	p.put(&conn{loop: p}, 3)
	if ended := p.acquire(nil, func(*conn) bool { return true }); len(ended) > 0 {
		t.Error("it is ended before it is set up")
	}
}

// TestHandshakesBeginOneAtATime lets a loop accept while several clients wait to shake hands.
// The loop accepts all, so that it knows their addresses, and then begins one handshake in each turn.
func TestHandshakesBeginOneAtATime(t *testing.T) {
	p := aloneLoop(t, Config{ReadBufferSize: 4 << 10, MaxConnections: 10, ReadTimeout: time.Minute, TLS: &tls.Config{}})
	l := p.worker.lane
	const clients = 3
	for range clients {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	for l.Open() < clients {
		await(t, l.socket)
		p.accept()
	}
	for want := range clients {
		begun := 0
		for _, c := range p.conns {
			if c != nil && c.shaking != nil {
				begun++
			}
		}
		if begun != want || len(p.hellos.waiting) != clients-want {
			t.Fatalf("after %d turns %d handshakes have begun, and %d wait", want, begun, len(p.hellos.waiting))
		}
		p.greet()
	}
	for _, c := range p.acquire(nil, func(*conn) bool { return true }) {
		c.close()
	}
	p.end()
	p.retire()
}

// TestRequestsBeforeHandshakes lets three clients begin a handshake, and then one with a finished
// handshake send a request, while the loop is busy: the loop answers the request first.
func TestRequestsBeforeHandshakes(t *testing.T) {
	const clients = 3
	server := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(server.Close)
	events := make(chan string, 1+clients)
	p := aloneLoop(t, Config{
		ReadBufferSize: 4 << 10, MaxConnections: 1 + clients, ReadTimeout: time.Minute, IdleTimeout: time.Minute,
		Handler: telling(events), TLS: &tls.Config{Certificates: server.TLS.Certificates},
	})
	l := p.worker.lane
	var shakes sync.WaitGroup
	t.Cleanup(shakes.Wait) // after their connections are closed
	dial := func() (*tls.Conn, *conn) {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		await(t, l.socket)
		p.accept()
		p.greet() // nothing has arrived yet
		client := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
		shakes.Go(func() { _ = client.Handshake() }) // fails if the loop ends first
		accepted := p.acquire(nil, func(*conn) bool { return true })[0]
		await(t, accepted.fd)
		return client, accepted
	}
	client, first := dial()
	for p.serve(first, false); first.shaking != nil; p.serve(first, false) {
		await(t, first.fd)
	}
	first.state.Store(busy)
	var fresh []*conn
	for range clients {
		_, c := dial()
		fresh = append(fresh, c)
	}
	if err := client.Handshake(); err != nil { // the handshake has ended
		t.Fatal(err)
	}
	if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	await(t, first.fd)
	for _, c := range append(fresh, first) {
		c.state.Store(waiting)
	}
	certificate := l.cfg.TLS.Certificates[0]
	l.cfg.TLS.Certificates = nil
	l.cfg.TLS.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		events <- "handshake"
		return &certificate, nil
	}
	go p.run()
	for i, want := range []string{"request", "handshake", "handshake", "handshake"} {
		if got := <-events; got != want {
			t.Errorf("%d: the loop answers a %s, want a %s", i, got, want)
		}
	}
	p.end()
	l.acceptors.Wait()
	for _, c := range p.acquire(nil, func(*conn) bool { return true }) {
		c.close()
	}
}

// telling is a handler that reports each request.
type telling chan<- string

func (telling) Knows(*Request) bool { return true }

func (t telling) Append(dst []byte, _ *Request, _ bool) (head, body []byte, ok bool) {
	t <- "request"
	return append(dst, "HTTP/1.1 204 No Content\r\n\r\n"...), nil, true
}

func (telling) Ask(*Request, func(any)) { panic("a request without a decision") }

// await waits until there is data to read, or a connection to accept.
func await(t *testing.T, fd int) {
	t.Helper()
	for ready := false; !ready; { // a signal may interrupt the wait
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
		ready = n > 0
	}
}

// aloneLoop returns the only loop of a lane, which does not run.
func aloneLoop(t *testing.T, cfg Config) *loop {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inner.Close() })
	l := New(cfg)
	l.inner = inner
	l.acceptors.Add(1)
	raw, err := inner.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { l.socket = int(fd) }); err != nil {
		t.Fatal(err)
	}
	p, err := newLoop(l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
