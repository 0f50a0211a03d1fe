package adminport_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge/adminport"
	"gridcast/edge/edgetest"
)

// A private port does not wait for ever for a missing body, and does not accept endless headers.
func TestServerHasLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		listener := edgetest.NewListener()
		server := adminport.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				w.WriteHeader(http.StatusRequestTimeout)
			}
		}))
		go func() { _ = server.Serve(listener) }()
		client := listener.Dial()
		defer func() { _ = server.Close() }()
		go func() {
			_, _ = io.WriteString(client, "POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nname=")
		}()
		response, err := http.ReadResponse(bufio.NewReader(client), nil)
		must.Hold(t, err == nil && response.StatusCode == http.StatusRequestTimeout, "a body that does not come: got %+v, %v", response, err)
		waited := time.Since(began)
		must.Hold(t, waited <= 31*time.Second, "it was waited for %s", waited)
	})
	must.Hold(t, adminport.Server(nil).MaxHeaderBytes != 0 && adminport.Server(nil).WriteTimeout != 0, "headers or answers have no limit")
}

// TestServeFinishesRunningAnswers stops an admin port during a scrape, which it answers, and during a profile of a minute,
// which it cuts off.
func TestServeFinishesRunningAnswers(t *testing.T) {
	for _, tt := range []struct{ takes, ends time.Duration }{{time.Second, time.Second}, {time.Minute, 2 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			listener := edgetest.NewListener()
			ctx, stop := context.WithCancel(t.Context())
			answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				stop()
				time.Sleep(tt.takes)
				_, _ = io.WriteString(w, "all metrics")
			})
			began := time.Now()
			var body []byte
			go func() {
				client := listener.Dial()
				defer func() { _ = client.Close() }()
				_, _ = io.WriteString(client, plain)
				if response, err := http.ReadResponse(bufio.NewReader(client), nil); err == nil {
					body, _ = io.ReadAll(response.Body)
				}
			}()
			if err := adminport.Serve(ctx, listener, answer); err != nil {
				t.Error(err)
			}
			took := time.Since(began)
			must.Advance(tt.takes) // the handler also ends
			if answered := string(body) == "all metrics"; answered != (tt.takes == tt.ends) || took < tt.ends || took > tt.ends+time.Second {
				t.Errorf("an answer of %v: got %q, and the port stopped after %v; want %v", tt.takes, body, took, tt.ends)
			}
		})
	}
}

// dialFrom opens a connection from a loopback address and sends something on it.
func dialFrom(t *testing.T, host byte, to net.Listener, sent string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, host)}}
	conn := must.Get(dialer.Dial("tcp", to.Addr().String()))(t)
	t.Cleanup(func() { _ = conn.Close() })
	_, _ = io.WriteString(conn, sent) // the answer shows whether it arrived
	return conn
}

const plain = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

// answered reports whether the answer of a connection is a 200.
func answered(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	line, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && line == "HTTP/1.1 200 OK\r\n"
}

// listen serves a private port on which a connection loses its place after a silence.
func listen(t *testing.T, silence time.Duration) net.Listener {
	t.Helper()
	listener := must.Get(adminport.Listen(t.Context(), "127.0.0.1:0"))(t)
	adminport.SetSilence(listener, silence)
	server := adminport.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "ok")
	}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener
}

func TestListenBoundsConnections(t *testing.T) {
	for _, tt := range []struct{ addresses, want int }{{5, 256}, {1, 64}} {
		listener := listen(t, time.Hour)
		var open []net.Conn
		for i := range 300 {
			open = append(open, dialFrom(t, byte(2+i%tt.addresses), listener, plain))
		}
		got := 0
		for _, conn := range open {
			if answered(conn) {
				got++
			}
		}
		must.Hold(t, got == tt.want, "%d connections of %d addresses at a time are answered, want %d", got, tt.addresses, tt.want)
	}
}

// TestUnfinishedBodiesBlockNobody: clients that never finish their requests lose their places.
func TestUnfinishedBodiesBlockNobody(t *testing.T) {
	for _, addresses := range []int{5, 1} {
		const silence = 20 * time.Millisecond
		listener := listen(t, silence)
		for i := range 300 {
			dialFrom(t, byte(2+i%addresses), listener, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nname=")
		}
		for range 10 {
			must.Until(t, fmt.Sprintf("an answer beside 300 unfinished requests of %d addresses", addresses), func() bool {
				return answered(dialFrom(t, 2, listener, plain))
			})
		}
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
		at := must.Get(net.ResolveTCPAddr("tcp", tt.at))(t)
		answer, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = tt.host
		adminport.LocalHosts(at, ok).ServeHTTP(answer, r)
		must.Hold(t, answer.Code == tt.want, "port at %s asked as %q: got %d, want %d", tt.at, tt.host, answer.Code, tt.want)
	}
}
