package edgetest

import (
	"net"
	"sync"
)

// Listener accepts the connections that a test hands it, which are no sockets.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewListener returns a listener at no address that anybody could dial.
func NewListener() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Hand waits until the connection is accepted.
func (l *Listener) Hand(c net.Conn) { l.conns <- c }

// Dial hands over one end of a pipe, and returns the other.
func (l *Listener) Dial() net.Conn {
	client, server := net.Pipe()
	l.Hand(server)
	return client
}

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements [net.Listener].
func (*Listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
