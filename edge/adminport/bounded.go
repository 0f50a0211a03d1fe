package adminport

import (
	"cmp"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// bounded is a listener with a bound on its open connections, of all clients and of one address. At a bound
// a new connection takes the place of the one that has been silent for longest. So a client that never
// finishes its requests keeps nobody waiting. The new connection is closed if no other is silent.
type bounded struct {
	net.Listener
	silence time.Duration

	mu   sync.Mutex // guards open
	open []*tracked
}

// tracked is an open connection of a bounded listener.
type tracked struct {
	net.Conn
	listener *bounded
	address  string
	active   atomic.Int64 // time of the latest byte, Unix nanoseconds
}

// Accept implements [net.Listener].
func (l *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &tracked{Conn: conn, listener: l}
		c.address, _, _ = net.SplitHostPort(conn.RemoteAddr().String())
		c.active.Store(time.Now().UnixNano())
		if l.admit(c) {
			return c, nil
		}
		_ = conn.Close()
	}
}

// admit makes room for a connection, and reports false if there is none.
func (l *bounded) admit(c *tracked) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	rivals := slices.DeleteFunc(slices.Clone(l.open), func(other *tracked) bool { return other.address != c.address })
	switch {
	case len(rivals) >= maxOfAddress:
	case len(l.open) >= maxConnections:
		rivals = l.open
	default:
		l.open = append(l.open, c)
		return true
	}
	silent := slices.MinFunc(rivals, func(a, b *tracked) int { return cmp.Compare(a.active.Load(), b.active.Load()) })
	if c.active.Load()-silent.active.Load() < int64(l.silence) {
		return false
	}
	_ = silent.Conn.Close()
	l.open[slices.Index(l.open, silent)] = c
	return true
}

// Read implements [net.Conn].
func (c *tracked) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.active.Store(time.Now().UnixNano())
	return n, err
}

// Write implements [net.Conn].
func (c *tracked) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.active.Store(time.Now().UnixNano())
	return n, err
}

// Close implements [net.Conn].
func (c *tracked) Close() error {
	c.listener.mu.Lock()
	c.listener.open = slices.DeleteFunc(c.listener.open, func(other *tracked) bool { return other == c })
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
