package adminport_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/edge/adminport"
)

// A private port does not wait for ever for a missing body, and does not accept endless headers.
func TestServerHasLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		client, conn := net.Pipe()
		server := adminport.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				w.WriteHeader(http.StatusRequestTimeout)
			}
		}))
		go func() { _ = server.Serve(&oneConn{conn: conn, closed: make(chan struct{})}) }()
		defer func() { _ = server.Close() }()
		go func() {
			_, _ = io.WriteString(client, "POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nname=")
		}()
		response, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil || response.StatusCode != http.StatusRequestTimeout {
			t.Errorf("a body that does not come: got %+v, %v", response, err)
		}
		if waited := time.Since(began); waited > 31*time.Second {
			t.Errorf("it was waited for %s", waited)
		}
	})
	if adminport.Server(nil).MaxHeaderBytes == 0 || adminport.Server(nil).WriteTimeout == 0 {
		t.Error("headers or answers have no limit")
	}
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	close(l.closed)
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func TestListenBoundsConnections(t *testing.T) {
	listener, err := adminport.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := adminport.Server(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	var open []net.Conn
	answered := 0
	for range 300 {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		open = append(open, conn)
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	for i, conn := range open[:257] {
		wait := time.Minute
		if i == 256 {
			wait = 50 * time.Millisecond // it waits for the end of another one
		}
		_ = conn.SetReadDeadline(time.Now().Add(wait))
		if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil && strings.Contains(line, "200") {
			answered++
		}
	}
	if answered != 256 {
		t.Errorf("%d connections at a time are answered, want 256", answered)
	}
}

// A page that resolves its own name to this machine gets no answer from a private port.
func TestLocalHosts(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for _, tt := range []struct {
		at, host string
		want     int
	}{
		{"127.0.0.1:9090", "127.0.0.1:9090", http.StatusOK},
		{"127.0.0.1:9090", "localhost:9090", http.StatusOK},
		{"[::1]:9090", "[::1]:9090", http.StatusOK},
		{"127.0.0.1:9090", "evil.example:9090", http.StatusMisdirectedRequest},
		{"127.0.0.1:9090", "10.0.0.1:9090", http.StatusMisdirectedRequest},
		{"127.0.0.1:9090", "", http.StatusMisdirectedRequest},
		{"10.0.0.1:9090", "metrics.internal", http.StatusOK}, // a network that an operator chose
	} {
		at, err := net.ResolveTCPAddr("tcp", tt.at)
		if err != nil {
			t.Fatal(err)
		}
		answer, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = tt.host
		adminport.LocalHosts(at, ok).ServeHTTP(answer, r)
		if answer.Code != tt.want {
			t.Errorf("port at %s asked as %q: got %d, want %d", tt.at, tt.host, answer.Code, tt.want)
		}
	}
}
