package express_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gridcast/edge/express"
)

// TestMoreAfterTheLastRequest sends more after a request that is marked as the last, before its
// answer. The answer arrives, although the connection is closed with unread data.
func TestMoreAfterTheLastRequest(t *testing.T) {
	handler := &answers{size: 10, slow: make(chan struct{})}
	s := start(t, handler, nil)
	c := s.dial()
	fmt.Fprint(c, "GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	s.await("the request waits", func() bool { return handler.waits.Load() == 1 })
	fmt.Fprint(c, get("/lane"))
	close(handler.slow)
	expect(t, bufio.NewReader(c), "lane", 10)
}

// TestShortConnections opens a connection for every request, of all kinds and ends, so that
// descriptors and connections are reused again and again.
func TestShortConnections(t *testing.T) {
	s := start(t, &answers{size: 10}, nil)
	var clients sync.WaitGroup
	for i := range 16 {
		clients.Go(func() {
			for n := range 60 {
				c, err := dial(s.address)
				if err != nil {
					t.Error(err)
					return
				}
				_ = c.SetDeadline(time.Now().Add(time.Minute))
				r := bufio.NewReader(c)
				switch (i + n) % 6 {
				case 0:
					fmt.Fprint(c, get("/lane"))
					expect(t, r, "lane", 10)
				case 1:
					fmt.Fprint(c, get("/server"))
					expect(t, r, "server", len("/server"))
				case 2:
					fmt.Fprint(c, get("/lane"))
					expect(t, r, "lane", 10)
					fmt.Fprint(c, get("/server"))
					expect(t, r, "server", len("/server"))
					fmt.Fprint(c, get("/lane"))
					expect(t, r, "lane", 10)
				case 3: // the client marks it as the last
					fmt.Fprint(c, "GET /lane HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
					expect(t, r, "lane", 10)
					if _, err := r.ReadByte(); err != io.EOF {
						t.Errorf("after the last response: got %v, want the end", err)
					}
				case 4: // the client leaves without a request
				case 5: // and with one
					fmt.Fprint(c, get("/lane"))
					if tcp, ok := c.(*net.TCPConn); ok {
						_ = tcp.SetLinger(0)
					}
				}
				c.Close()
			}
		})
	}
	clients.Wait()
	s.await("all are closed", func() bool { return s.lane.Open() == 0 })
}

// TestLastRequest asks for the end of the connection behind other requests, and before one: the server
// drops that one.
func TestLastRequest(t *testing.T) {
	s := start(t, &answers{size: 10}, nil)
	const last = "GET /lane HTTP/1.1\r\nHost: x\r\nConnection: Close\r\n\r\n"
	for _, tt := range []struct {
		sent string
		from []string
	}{
		{last, []string{"lane"}},
		{get("/lane") + get("/lane") + last, []string{"lane", "lane", "lane"}},
		{last[:20], nil},
	} {
		c := s.dialAnd(tt.sent)
		if tt.from == nil {
			c.Close()
			continue
		}
		r := bufio.NewReader(c)
		for _, from := range tt.from {
			expect(t, r, from, 10)
		}
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("%q: got %v, want the end", tt.sent, err)
		}
	}
	s.await("all are closed", func() bool { return s.lane.Open() == 0 })
}

// TestLastRequestOfASlowReader closes only after everything has been read.
func TestLastRequestOfASlowReader(t *testing.T) {
	s := start(t, &answers{size: 10}, nil)
	r := bufio.NewReader(s.dialAnd("GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
	s.await("the request is answered", func() bool { return s.lane.Answered() == 1 })
	expect(t, r, "lane", large)
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("got %v, want the end", err)
	}
}

// TestNoDescriptors uses up the process's descriptors. A connection that comes then is served as
// soon as there are descriptors again.
func TestNoDescriptors(t *testing.T) {
	var refused atomic.Int32
	s := start(t, &answers{size: 10}, func(c *express.Config) {
		c.IdleTimeout, c.ReadTimeout = 20*time.Second, 20*time.Second
		c.NotAccepted = func(err error) {
			if !errors.Is(err, syscall.EMFILE) {
				t.Errorf("got %v", err)
			}
			refused.Add(1)
		}
	})
	first := s.dialAnd(get("/lane"))
	expect(t, bufio.NewReader(first), "lane", 10)

	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = 128
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) })
	var used []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		used = append(used, f)
	}
	used[0].Close() // for our end of the connection
	c := s.dialAnd(get("/lane"))
	s.await("the connection is not accepted", func() bool { return refused.Load() > 0 })
	for _, f := range used[1:] {
		f.Close()
	}
	expect(t, bufio.NewReader(c), "lane", 10)
}
