package adminport

import (
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
	var ofAddress int
	var silent, silentOfAddress int // the index of the connection that is silent for longest, plus one
	for i, other := range l.open {
		longer := func(than int) bool { return than == 0 || other.active.Load() < l.open[than-1].active.Load() }
		if longer(silent) {
			silent = i + 1
		}
		if other.address == c.address {
			if ofAddress++; longer(silentOfAddress) {
				silentOfAddress = i + 1
			}
		}
	}
	victim := 0
	switch {
	case ofAddress >= maxOfAddress:
		victim = silentOfAddress
	case len(l.open) >= maxConnections:
		victim = silent
	}
	if victim > 0 {
		other := l.open[victim-1]
		if c.active.Load()-other.active.Load() < int64(l.silence) {
			return false
		}
		_ = other.Conn.Close()
		l.open[victim-1] = c
		return true
	}
	l.open = append(l.open, c)
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
