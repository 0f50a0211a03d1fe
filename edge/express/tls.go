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
// others by the runtime's poller, as the owner of the connection says.
type transport struct {
	net.Conn // nil as long as only the loop has had to do with the socket

	conn     *conn
	pause    func() bool // lets the loop go on until more has arrived; it reports false if nothing will. Nil after the handshake.
	answered bool        // something has been written: what is left of the handshake takes no time
	waits    bool        // reads and writes wait
	drained  bool        // what has arrived is read: the next byte will be an event
	toEnd    bool        // the other side may have hung up, of which there will be no other event
	ends     bool        // the connection is closed after what is written
	unsent   []byte      // what the socket has not taken
}

// Read implements [net.Conn]. What it returns instead of waiting is a temporary error, after which
// a tls.Conn goes on where it was.
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

// applicationData is the first byte of a record that is encrypted, in TLS 1.3.
const applicationData = 23

// Write implements [net.Conn]. Without waiting, it keeps what the socket does not take.
func (t *transport) Write(p []byte) (int, error) {
	if t.waits {
		return t.Conn.Write(p)
	}
	t.answered = true
	n := 0
	if len(t.unsent) == 0 {
		// A session ticket is all that a handshake sends from its first byte on encrypted. No client
		// waits for it: the kernel keeps it for the response, or for 200 ms.
		ticket := t.pause != nil && len(p) > 0 && p[0] == applicationData
		var err error
		if n, err = sendOnce(t.conn.fd, p, t.ends || ticket); err != nil {
			return 0, err
		}
	}
	if t.pause != nil && n < len(p) {
		return n, io.ErrShortWrite // a socket that is new takes more than any handshake says
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

// Close implements [net.Conn].
func (t *transport) Close() error {
	if t.Conn == nil {
		closeSocket(t.conn.fd, t.ends)
		return nil
	}
	return t.Conn.Close()
}

// handshake is a handshake that the loop goes on with whenever something arrives. It is a coroutine:
// crypto/tls waits in the middle of it, and a goroutine for each would have the scheduler decide
// when the loop has its turn again, and the runtime's poller know of every connection. When it has
// ended the coroutine is used for the next one, whose stack has grown already.
type handshake struct {
	conn *conn
	next func() (ended, running bool) // goes on until it has ended, or waits
	stop func()
	err  error // what it has ended with
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

// handshake begins with a connection that speaks TLS.
func (c *conn) handshake(h *handshake) {
	c.transport = &transport{conn: c}
	c.tls = tls.Server(c.transport, c.lane.cfg.TLS)
	c.shaking, h.conn, h.err = h, c, nil
}

// ended goes on with the handshake, and reports whether it has ended.
func (h *handshake) ended() bool {
	ended, _ := h.next()
	return ended
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
