package express

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"
)

// conn is a connection on the lane. Except for what is atomic, it belongs to its owner.
type conn struct {
	lane *Lane
	net  net.Conn // nil as long as only the loop has had to do with the socket
	peer netip.Addr
	kept any   // the handler's
	loop *loop // that waits for it; nil: a goroutine does
	fd   int   // where there is a loop

	tls       *tls.Conn  // over transport; nil: the connection is plain, or has no loop
	transport *transport // over the socket, or over net
	shaking   *handshake // nil: it has ended, or there is none

	pending []byte // requests of which the first is being decided
	rearm   bool   // something has happened on it meanwhile; the loop's, whoever the owner is
	watched bool   // the loop is told of what arrives
	shared  bool   // it has had another owner than its loop
	last    bool   // the request being answered is the last
	broken  bool   // nothing can be written to it any more

	state atomic.Int32 // a connState
	due   atomic.Int64 // when waiting takes too long, in Unix nanoseconds
	begun bool         // something has arrived on it
}

// connState says who owns a connection: nobody while it waits, and then whoever acquires it, until they
// let it wait again or close it. It begins with an owner, who sets it up while others can already find it.
type connState = int32

const (
	busy    connState = iota // with a request: the lane's, or the server's to which it is handed off
	waiting                  // for one: nobody's
	closed
)

// acquire makes the caller the owner, unless the connection has one.
func (c *conn) acquire() bool { return c.state.CompareAndSwap(waiting, busy) }

// slack is how much longer than configured a connection may wait, so that the end of its time
// need not be moved for every request.
const slack = time.Second

// extend gives the connection so much time for its next request.
func (c *conn) extend(now time.Time, d time.Duration) {
	least := now.UnixNano() + int64(d)
	if due := c.due.Load(); due < least || due > least+int64(slack) {
		c.due.Store(least + int64(min(slack, d/4)))
	}
}

// wait lets the connection wait for a request, after its owner was another goroutine than the one
// that waits for it.
func (c *conn) wait() {
	switch {
	case c.tls != nil:
		c.loop.read(c) // there may be something in the tls.Conn of which no event tells
		return
	case c.loop != nil:
		c.loop.watch(c)
		return
	}
	_ = c.net.SetReadDeadline(time.Time{}) // the server's; reading tells if the connection is broken
	c.state.Store(waiting)
	go c.serve()
}

// serve reads and answers requests until somebody else owns the connection.
func (c *conn) serve() {
	w, _ := c.lane.workers.Get().(*worker)
	defer c.lane.workers.Put(w)
	for {
		n, err := c.net.Read(w.in)
		w.now = time.Now()
		if !c.acquire() || !w.take(c, n, err) {
			return
		}
		c.state.Store(waiting)
	}
}

// write writes as much as the connection takes at once, if it has a loop, and all otherwise. With
// TLS everything is written into one record, if it fits there, and sent is false if the socket has
// not taken all of that. If ends, the caller closes the connection then, which sends what a socket
// that is the loop's alone has kept.
func (c *conn) write(w *worker, out output, ends bool) (n int, sent bool, err error) {
	ends = ends && c.net == nil
	switch {
	case c.tls != nil:
		c.transport.ends = ends
		p := out.whole()
		if cap(p) <= keepUpTo {
			w.out = p[:0]
		}
		_, err = c.tls.Write(p)
		return len(p), len(c.transport.unsent) == 0, err
	case c.loop != nil:
		n, err = w.vector.send(c.fd, out, ends)
		return n, n == out.len(), err
	}
	return out.len(), true, c.writeAll(out.whole())
}

// writeAll waits until everything is written.
func (c *conn) writeAll(out []byte) error {
	stream := c.stream()
	if err := stream.SetWriteDeadline(time.Now().Add(c.lane.cfg.WriteTimeout)); err != nil {
		return err
	}
	if c.tls != nil {
		if err := c.transport.flush(); err != nil {
			return err
		}
	}
	_, err := stream.Write(out)
	return err
}

// finish writes what the connection has not taken, answers the requests that p is, which may
// wait for something, and then lets the connection wait. The server answers them if the handler
// knows one of them no longer.
func (c *conn) finish(unsent, p []byte) {
	w, _ := c.lane.workers.Get().(*worker)
	defer c.lane.workers.Put(w)
	if err := c.toNet(); err != nil {
		c.lane.busyElsewhere.Add(-1)
		c.close()
		return
	}
	recognised := w.recognise(p)
	defer c.lane.busyElsewhere.Add(-1)
	for {
		if err := c.writeAll(unsent); err != nil {
			c.broken = true
			c.close()
			return
		}
		if !recognised {
			c.handOff(p, nil)
			return
		}
		if len(w.requests) == 0 && c.last {
			c.close()
			return
		}
		if len(w.requests) == 0 {
			c.extend(time.Now(), c.lane.cfg.IdleTimeout)
			c.wait()
			return
		}
		w.now = time.Now()
		out, _ := w.render(c, true)
		unsent = out.whole()
	}
}

// handOff makes the server the owner. It reads head first, and then err if there is one.
func (c *conn) handOff(head []byte, err error) {
	c.shared = true
	if c.toNet() != nil {
		c.close() // the system has no descriptor for it
		return
	}
	c.lane.handOff(&handedOff{Conn: c.stream(), conn: c, head: head, err: err})
}

// toNet makes a net.Conn of the socket, for all that is not the loop's. The caller is the owner.
func (c *conn) toNet() error {
	if c.net != nil {
		return nil
	}
	c.loop.forget(c)
	file := os.NewFile(uintptr(c.fd), "connection")
	inner, err := net.FileConn(file) // of a second descriptor
	_ = file.Close()
	if err != nil {
		c.fd = -1
		return fmt.Errorf("hand a connection over: %w", err)
	}
	c.net = inner
	if c.transport != nil {
		c.transport.Conn = inner
	}
	return c.loop.adopt(c)
}

// end ends a connection that has waited long enough, unless something has arrived on it.
func (c *conn) end() {
	c.shared = true
	switch {
	case c.loop != nil && arrived(c.fd):
		c.wait() // and the loop will find it
	case c.begun || c.shaking != nil || c.lane.draining.Load():
		c.close()
	default:
		c.handOff(nil, os.ErrDeadlineExceeded) // the server may have something to say to that
	}
}

// close ends the connection. Only its owner may close it, once.
func (c *conn) close() {
	l, inner, fd := c.lane, c.net, c.fd
	if c.shaking != nil {
		c.shaking.stop() // before another connection has its descriptor
		c.shaking = nil
	}
	c.state.Store(closed)
	if c.loop == nil {
		l.mu.Lock()
		delete(l.open, c)
		l.mu.Unlock()
	} else {
		c.loop.forget(c) // before another connection has its descriptor
	}
	switch {
	case c.tls != nil && !c.broken:
		c.transport.ends = inner == nil
		_ = c.tls.Close() // says so to the other side, and closes inner
	case inner != nil:
		_ = inner.Close() // nothing is left to be sent
	case fd >= 0:
		closeSocket(fd, c.last)
	}
	c.tls, c.transport = nil, nil
	l.conns.Add(-1)
	l.release()
}

// handedOff is a connection as the server sees it: from a request that the lane has not recognised
// to where the next one would begin.
type handedOff struct {
	net.Conn
	conn *conn

	head    []byte // what the lane has read
	err     error  // what reading ended with after that, nil: it goes on
	between bool   // the server has answered and waits for a request

	returned atomic.Bool // to the lane
	ended    atomic.Bool
}

// Read reads what the lane has read, and then from the connection. Where another request would
// begin, it tells the server that there is none.
func (c *handedOff) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	if c.err != nil {
		return 0, c.err
	}
	if c.between {
		c.returned.Store(true)
		return 0, io.EOF
	}
	return c.Conn.Read(p)
}

// Close gives the connection back to the lane if that is why the server has no further use for
// it, and closes it otherwise. The server may close more than once, from several goroutines.
func (c *handedOff) Close() error {
	if !c.ended.CompareAndSwap(false, true) {
		return nil
	}
	c.conn.lane.busyElsewhere.Add(-1)
	if c.returned.Load() && !c.conn.lane.draining.Load() {
		c.conn.extend(time.Now(), c.conn.lane.cfg.IdleTimeout) // the server has answered on it
		c.conn.wait()
	} else {
		c.conn.close()
	}
	return nil
}
