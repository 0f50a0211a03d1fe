package express

import (
	"crypto/tls"
	"net"
	"os"
	"time"
)

// transport is the connection below a tls.Conn. A loop reads and writes on it without waiting, and
// others by the runtime's poller, as the owner of the connection says.
type transport struct {
	net.Conn

	conn    *conn
	waits   bool   // reads and writes wait
	drained bool   // what has arrived is read: the next byte will be an event
	toEnd   bool   // the other side may have hung up, of which there will be no other event
	unsent  []byte // what the socket has not taken
}

// Read implements [net.Conn]. What it returns instead of waiting is a temporary error, after which
// a tls.Conn goes on where it was.
func (t *transport) Read(p []byte) (int, error) {
	if t.waits {
		return t.Conn.Read(p)
	}
	if t.drained {
		return 0, os.ErrDeadlineExceeded
	}
	n, ready, err := receive(t.conn.fd, p)
	if !ready {
		err = os.ErrDeadlineExceeded
	}
	t.drained = n < len(p) && !t.toEnd
	return n, err
}

// Write implements [net.Conn]. Without waiting, it keeps what the socket does not take.
func (t *transport) Write(p []byte) (int, error) {
	if t.waits {
		return t.Conn.Write(p)
	}
	n := 0
	if len(t.unsent) == 0 {
		var err error
		if n, err = sendOnce(t.conn.fd, p); err != nil {
			return 0, err
		}
	}
	t.unsent = append(t.unsent, p[n:]...)
	return len(p), nil
}

// SetWriteDeadline implements [net.Conn]. What does not wait needs none.
func (t *transport) SetWriteDeadline(at time.Time) error {
	if !t.waits {
		return nil
	}
	return t.Conn.SetWriteDeadline(at)
}

// handshake begins with a connection that speaks TLS. It waits for the client, and costs far more
// than a goroutine.
func (c *conn) handshake() {
	defer c.lane.busyElsewhere.Add(-1)
	if c.toNet() != nil {
		c.close()
		return
	}
	c.transport = &transport{Conn: c.net, conn: c, waits: true}
	c.tls = tls.Server(c.transport, c.lane.cfg.TLS)
	if c.net.SetDeadline(time.Now().Add(c.lane.cfg.ReadTimeout)) != nil || c.tls.Handshake() != nil {
		c.close()
		return
	}
	_ = c.net.SetDeadline(time.Time{}) // it fails where reading will, too
	c.extend(time.Now(), c.lane.cfg.ReadTimeout)
	c.wait()
}

// stream is what requests are read from and responses written to where the runtime's poller is
// used.
func (c *conn) stream() net.Conn {
	if c.tls == nil {
		return c.net
	}
	c.transport.waits = true
	return c.tls
}

// flush waits until what the socket has not taken is written.
func (t *transport) flush() error {
	unsent := t.unsent
	t.unsent = nil
	_, err := t.Conn.Write(unsent)
	return err
}
