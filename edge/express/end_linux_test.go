package express

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestEndWhileALoopYields ends a loop that is about to let others have their turn. The system frees its
// epoll instance only when the loop does not use it any more, for which nobody may hold the lock.
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

// TestHandshakesBeginOneAtATime has a loop accept while several clients wait that are to shake hands.
// It takes one: those whose handshake is under way have their turn before the others.
func TestHandshakesBeginOneAtATime(t *testing.T) {
	p := aloneLoop(t, Config{ReadBufferSize: 4 << 10, MaxConnections: 10, ReadTimeout: time.Minute, TLS: &tls.Config{}})
	l := p.worker.lane
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	for want := 1; want <= 3; want++ {
		for waiting := false; !waiting; { // a signal may end it before
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(l.socket), Events: unix.POLLIN}}, -1)
			if err != nil && !errors.Is(err, unix.EINTR) {
				t.Fatal(err)
			}
			waiting = n > 0
		}
		if more := p.accept(); !more || l.Open() != want {
			t.Fatalf("got %d connections, and more to come %v; want %d, true", l.Open(), more, want)
		}
	}
	for _, c := range p.acquire(nil, func(*conn) bool { return true }) {
		c.close()
	}
	p.end()
	p.retire()
}

// aloneLoop returns the loop of a lane that has no other, which does not run.
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
