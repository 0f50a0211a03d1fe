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

// conn is a connection on the lane. Its owner alone uses it, except for the atomic fields.
type conn struct {
	lane *Lane
	net  net.Conn // nil as long as only the loop has used the socket
	peer netip.Addr
	kept any   // the handler's value
	loop *loop // the loop that waits for it; nil: a goroutine waits
	fd   int   // the descriptor, if there is a loop

	tls       *tls.Conn  // over transport; nil: the connection is plain, or has no loop
	transport *transport // over the socket, or over net
	shaking   *handshake // nil: no handshake is running

	pending []byte // requests, while the first of them is being decided
	rearm   bool   // an event has come meanwhile; the loop's field, for every owner
	watched bool   // epoll reports arriving data to the loop
	shared  bool   // an owner other than its loop has used it
	last    bool   // the request being answered is the last
	broken  bool   // a write has failed
	round   uint64 // in which its ClientHello is answered; the loop's field

	state   atomic.Int32 // a connState
	due     atomic.Int64 // the end of the allowed wait, in Unix nanoseconds
	started bool         // data have arrived on it
}

// connState is the ownership of a connection. A waiting connection has no owner. A goroutine acquires it, and owns it
// until it lets the connection wait again or closes it. A new connection has an owner from the start, because other
// goroutines can find it before it is set up.
type connState = int32

const (
	busy    connState = iota // with a request: owned by the lane, or by the server after a hand-off
	waiting                  // for a request: without an owner
	closed
)

// acquire makes the caller the owner, unless the connection has an owner.
func (c *conn) acquire() bool { return c.state.CompareAndSwap(waiting, busy) }

// slack is the excess by which a connection may outlast its configured wait, so that the lane
// need not move the deadline for every request.
const slack = time.Second

// extend sets the deadline for the next request.
func (c *conn) extend(now time.Time, d time.Duration) {
	least := now.UnixNano() + int64(d)
	if due := c.due.Load(); due < least || due > least+int64(slack) {
		c.due.Store(least + int64(min(slack, d/4)))
	}
}

// wait lets the connection wait for a request, after an owner other than its loop or its reading
// goroutine has used it.
func (c *conn) wait() {
	switch {
	case c.tls != nil:
		c.loop.read(c) // the tls.Conn may hold data that no event reports
		return
	case c.loop != nil:
		c.loop.watch(c)
		return
	}
	_ = c.net.SetReadDeadline(time.Time{}) // removes the server's deadline; reading tells if the connection is broken
	c.state.Store(waiting)
	go c.serve()
}

// serve reads and answers requests until it no longer owns the connection.
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

// write writes as much as the connection accepts at once if it has a loop, and all otherwise. With
// TLS it writes one record, if everything fits there; sent is false if the socket has
// not accepted the whole record. If ends, the caller closes the connection next, which flushes a socket
// that only the loop has used.
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

// finish writes the rest, answers the requests in p, which may wait for a decision, and then lets
// the connection wait. The server answers them if the handler no longer knows one of them.
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

// handOff makes the server the owner. The server reads head first, and then err if there is one.
func (c *conn) handOff(head []byte, err error) {
	c.shared = true
	if c.toNet() != nil {
		c.close() // the process has no free descriptor
		return
	}
	c.lane.handOff(&handedOff{Conn: c.stream(), conn: c, head: head, err: err})
}

// toNet makes a net.Conn of the socket, for everything outside the loop. The caller is the owner.
func (c *conn) toNet() error {
	if c.net != nil {
		return nil
	}
	c.loop.forget(c)
	file := os.NewFile(uintptr(c.fd), "connection")
	inner, err := net.FileConn(file) // with a second descriptor
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

// end ends a connection after its deadline, unless data have arrived on it.
func (c *conn) end() {
	c.shared = true
	switch {
	case c.loop != nil && arrived(c.fd):
		c.wait() // the loop will find the data
	case c.started || c.shaking != nil || c.lane.draining.Load():
		c.close()
	default:
		c.handOff(nil, os.ErrDeadlineExceeded) // the server may answer the timeout
	}
}

// close ends the connection. Only its owner may call it, once.
func (c *conn) close() {
	l, inner, fd := c.lane, c.net, c.fd
	if c.shaking != nil {
		c.shaking.stop() // before another connection gets its descriptor
		c.shaking = nil
	}
	c.state.Store(closed)
	if c.loop == nil {
		l.mu.Lock()
		delete(l.open, c)
		l.mu.Unlock()
	} else {
		c.loop.forget(c) // before another connection gets its descriptor
	}
	switch {
	case c.tls != nil && !c.broken:
		c.transport.ends = inner == nil
		_ = c.tls.Close() // sends close_notify, and closes inner
	case inner != nil:
		_ = inner.Close() // all data are sent
	case fd >= 0:
		closeSocket(fd, c.last)
	}
	c.tls, c.transport = nil, nil
	l.conns.Add(-1)
	l.release()
}

// handedOff is the server's view of a connection: from a request that the lane has not recognised
// to the start of the next one.
type handedOff struct {
	net.Conn
	conn *conn

	head    []byte // the bytes that the lane has read
	err     error  // the error that ended the lane's reads; nil: reads continue
	between bool   // the server has answered and waits for a request

	returned atomic.Bool // to the lane
	ended    atomic.Bool
}

// Read returns the lane's bytes first, and then reads from the connection. At the start of
// another request it tells the server that there is none.
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

// Close returns the connection to the lane if the server waits for another request,
// and closes it otherwise. The server may close it more than once, from several goroutines.
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
