package edge_test

import (
	"net"
	"sync"
)

// handedListener accepts the connections that a test hands it, which are no sockets.
type handedListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newHandedListener() *handedListener {
	return &handedListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *handedListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *handedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (*handedListener) Addr() net.Addr { return here }

// dial returns the other end of a connection.
func (l *handedListener) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	return client
}
