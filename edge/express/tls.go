package express

import (
	"crypto/tls"
	"io"
	"iter"
	"net"
	"os"
	"time"
)

// transport is the connection below a tls.Conn. A loop reads and writes on it without waiting, and
// other owners through the runtime's poller.
type transport struct {
	net.Conn // nil as long as only the loop has used the socket

	conn     *conn
	pause    func() bool // lets the loop continue until more data arrive; it reports false if no more will. Nil after the handshake.
	answered bool        // a write has happened: the rest of the handshake takes no time
	waits    bool        // reads and writes wait
	drained  bool        // all data are read: the next byte causes an event
	toEnd    bool        // the other side may have hung up, and no other event will report it
	ends     bool        // the connection is closed after this write
	unsent   []byte      // bytes that the socket has not accepted
}

// Read implements [net.Conn]. Instead of waiting it returns a temporary error, after which
// a tls.Conn can be read again.
func (t *transport) Read(p []byte) (int, error) {
	if t.waits {
		return t.Conn.Read(p)
	}
	for {
		if !t.drained {
			n, ready, err := receive(t.conn.fd, p)
			t.drained = n < len(p) && !t.toEnd
			if ready {
				return n, err
			}
		}
		if t.pause == nil {
			return 0, os.ErrDeadlineExceeded
		}
		if !t.pause() {
			return 0, net.ErrClosed
		}
	}
}

// applicationData is the first byte of an encrypted record in TLS 1.3.
const applicationData = 23

// Write implements [net.Conn]. Without waiting, it keeps the bytes that the socket does not accept.
func (t *transport) Write(p []byte) (int, error) {
	if t.waits {
		return t.Conn.Write(p)
	}
	t.answered = true
	n := 0
	if len(t.unsent) == 0 {
		// From its first encrypted byte on, a handshake sends only a session ticket. No client
		// waits for it, so the kernel keeps it for the response, or for 200 ms.
		ticket := t.pause != nil && len(p) > 0 && p[0] == applicationData
		var v vector
		var err error
		if n, err = v.send(t.conn.fd, output{buffer: p}, t.ends || ticket); err != nil {
			return 0, err
		}
	}
	if t.pause != nil && n < len(p) {
		return n, io.ErrShortWrite // a new socket accepts more than any handshake sends
	}
	t.unsent = append(t.unsent, p[n:]...)
	return len(p), nil
}

// SetWriteDeadline implements [net.Conn]. A write that does not wait needs no deadline.
func (t *transport) SetWriteDeadline(at time.Time) error {
	if !t.waits {
		return nil
	}
	return t.Conn.SetWriteDeadline(at)
}

// Close implements [net.Conn].
func (t *transport) Close() error {
	if t.Conn == nil {
		closeSocket(t.conn.fd, t.ends)
		return nil
	}
	return t.Conn.Close()
}

// handshake is a handshake that the loop continues whenever data arrive. It is a coroutine, because
// crypto/tls waits in the middle of it. With a goroutine for each handshake the Go scheduler would decide
// when the loop has its turn again, and the runtime's poller would know of every connection. After its
// end the loop reuses the coroutine, whose stack has grown already.
type handshake struct {
	conn *conn
	next func() (ended, running bool) // continues until the handshake has ended, or waits
	stop func()
	err  error // its outcome
}

func newHandshake() *handshake {
	h := &handshake{}
	h.next, h.stop = iter.Pull(func(yield func(ended bool) bool) {
		pause := func() bool { return yield(false) }
		for more := true; more; more = yield(true) {
			h.conn.transport.pause = pause
			h.err = h.conn.tls.Handshake()
			h.conn.transport.pause = nil
		}
	})
	return h
}

// handshake starts a connection with TLS.
func (c *conn) handshake(h *handshake) {
	c.transport = &transport{conn: c}
	c.tls = tls.Server(c.transport, c.lane.cfg.TLS)
	c.shaking, h.conn, h.err = h, c, nil
}

// stream is the side from which requests are read and to which responses are written, where the runtime's
// poller is used.
func (c *conn) stream() net.Conn {
	if c.tls == nil {
		return c.net
	}
	c.transport.waits = true
	return c.tls
}

// flush waits until the socket has accepted the rest.
func (t *transport) flush() error {
	unsent := t.unsent
	t.unsent = nil
	_, err := t.Conn.Write(unsent)
	return err
}
