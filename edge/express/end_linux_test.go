package express

import (
	"net"
	"testing"
)

// TestEndWhileALoopYields ends a loop that is about to let others have their turn. The system frees its
// epoll instance only when the loop does not use it any more, for which nobody may hold the lock.
func TestEndWhileALoopYields(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	l := New(Config{ReadBufferSize: 4 << 10, MaxConnections: 1})
	l.inner = inner
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
