package edge

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// acceptor is the listener of the server. It holds at most a number of open connections. When all places are taken,
// it closes the connections that have been idle for longest. If none is idle, new connections wait, most of them in the kernel.
type acceptor struct {
	net.Listener

	tls    *tls.Config // nil: without TLS
	places int
	slack  time.Duration // see deadline

	mu     sync.Mutex // guards open
	open   map[*connection]struct{}
	freed  chan struct{} // takes a value when a connection is closed
	closed chan struct{}
	once   sync.Once
}

func newAcceptor(listener net.Listener, tls *tls.Config, places int, slack time.Duration) *acceptor {
	return &acceptor{
		Listener: listener, tls: tls, places: places, slack: slack,
		open: map[*connection]struct{}{}, freed: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// Accept implements [net.Listener].
func (l *acceptor) Accept() (net.Conn, error) {
	socket, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if !l.makeRoom() {
		_ = socket.Close()
		return nil, net.ErrClosed
	}
	c := &connection{Conn: socket, socket: socket, acceptor: l}
	if l.tls != nil {
		c.Conn = tls.Server(socket, l.tls)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c] = struct{}{}
	return c, nil
}

// makeRoom waits until there is a place. It returns false when the listener is closed.
func (l *acceptor) makeRoom() bool {
	for {
		select {
		case <-l.freed: // by a connection that is not counted any more
		default:
		}
		if l.connections() < l.places {
			return true
		}
		var again <-chan time.Time
		if l.closeIdle() == 0 {
			again = time.After(50 * time.Millisecond) // a busy connection may be idle by then
		}
		select {
		case <-l.freed:
		case <-again:
		case <-l.closed:
			return false
		}
	}
}

// Close implements [net.Listener].
func (l *acceptor) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// connections returns the number of open connections.
func (l *acceptor) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// drained waits until all connections are closed, or ctx ends.
func (l *acceptor) drained(ctx context.Context) error {
	for l.connections() > 0 {
		select {
		case <-l.freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// closeIdle closes the connections that have been idle for longest: several, because looking at all takes time. It
// returns their number. The goroutines of these connections give the places back.
func (l *acceptor) closeIdle() (closed int) {
	type idle struct {
		c     *connection
		until int64
	}
	l.mu.Lock()
	var all []idle
	for c := range l.open {
		if until := c.idle.Load(); until != 0 {
			all = append(all, idle{c, until})
		}
	}
	l.mu.Unlock()
	slices.SortFunc(all, func(a, b idle) int { return cmp.Compare(a.until, b.until) })
	for _, i := range all[:min(len(all), max(1, l.places/64))] {
		if i.c.endIdle() {
			closed++
		}
	}
	return closed
}

func (l *acceptor) remove(c *connection) {
	l.mu.Lock()
	delete(l.open, c)
	l.mu.Unlock()
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// connection belongs to the goroutine in which the server reads and answers, but for idle.
//
// It keeps the bytes of each request, because fasthttp forgets the end of the request line and the empty line after a
// header without fields. While fasthttp waits for a request it has given its buffers back, and reads a single byte. The
// connection then reads all that has arrived into its own small buffer, so that most requests cost one read.
type connection struct {
	net.Conn // with TLS, if there is any

	socket   net.Conn
	acceptor *acceptor
	memory   memory

	read   []byte // from the start of a request
	served int    // length of the part of read that the server has
	used   int    // length of the request that head has returned

	reading, writing deadline

	lingers bool         // the client may still be sending at the end
	idle    atomic.Int64 // it waits for a request until then, Unix time in nanoseconds; 0: it does not wait
	ending  atomic.Bool  // the server stops: it waits for no further request

	first [1 << 10]byte
}

// deadline is a deadline that the server sets before each request. Setting it in the runtime costs more than the look-up
// of a response, so the connection sets a later one, and keeps it as long as it is not too late.
type deadline struct{ wanted, set time.Time }

// move reports whether the deadline in the runtime is too early, or later than the wanted one by more than slack. Then
// the caller sets d.set.
func (d *deadline) move(slack time.Duration) bool {
	if late := d.set.Sub(d.wanted); late >= 0 && late <= slack {
		return false
	}
	d.set = d.wanted
	if !d.wanted.IsZero() {
		d.set = d.wanted.Add(slack)
	}
	return true
}

// SetReadDeadline implements [net.Conn] for the next read.
func (c *connection) SetReadDeadline(t time.Time) error {
	c.reading.wanted = t
	return nil
}

// SetWriteDeadline implements [net.Conn] for the next write.
func (c *connection) SetWriteDeadline(t time.Time) error {
	c.writing.wanted = t
	return nil
}

// setWriteDeadline sets a deadline at once.
func (c *connection) setWriteDeadline(t time.Time) error {
	c.writing = deadline{wanted: t, set: t}
	return c.Conn.SetWriteDeadline(t)
}

// Read implements [net.Conn].
func (c *connection) Read(p []byte) (int, error) {
	if c.served < len(c.read) {
		n := copy(p, c.read[c.served:])
		c.served += n
		return n, nil
	}
	if c.reading.move(c.acceptor.slack) {
		if err := c.Conn.SetReadDeadline(c.reading.set); err != nil {
			return 0, err
		}
	}
	if len(p) == 1 && c.used == len(c.read) {
		return c.await(p)
	}
	n, err := c.Conn.Read(p)
	c.read = append(c.read, p[:n]...)
	c.served = len(c.read)
	return n, err
}

// await waits for a request and returns its first byte. A first byte that does not come in time ends the connection without
// an answer.
func (c *connection) await(p []byte) (int, error) {
	c.read, c.served, c.used = nil, 0, 0 // it waits without the bytes of the last request
	c.idle.Store(c.reading.wanted.UnixNano())
	if c.ending.Load() {
		c.endIdle()
	}
	n, err := c.Conn.Read(c.first[:])
	if c.idle.Swap(0) == 0 {
		return 0, net.ErrClosed // by the acceptor, which needed the place, or by the stopping server
	}
	c.read, c.used = c.first[:n], 0
	c.served = copy(p, c.read)
	if n > 0 {
		err = nil // the next read meets it again
	}
	return c.served, err
}

// Write implements [net.Conn].
func (c *connection) Write(p []byte) (int, error) {
	if c.writing.move(c.acceptor.slack) {
		if err := c.Conn.SetWriteDeadline(c.writing.set); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// head returns the head of the request that the server has read, from its first line to the empty
// one, until the next call. Call it once for each request. After a request that is not sound
// the result for the next one is undefined.
func (c *connection) head(h *fasthttp.RequestHeader) []byte {
	if c.used > 0 {
		c.read = append(c.read[:0], c.read[c.used:]...)
		c.served -= c.used
	}
	start := 0
	for bytes.HasPrefix(c.read[start:], []byte("\r\n")) { // the server skips these
		start += 2
	}
	end := start + bytes.IndexByte(c.read[start:], '\n') + 1
	if fields := h.RawHeaders(); len(fields) > 0 {
		end += len(fields)
	} else {
		end += bytes.IndexByte(c.read[end:], '\n') + 1
	}
	c.used = min(end+max(h.ContentLength(), 0), len(c.read))
	return c.read[start:end]
}

// unread reports whether the client has sent more than the request that head has returned.
func (c *connection) unread() bool { return c.used < len(c.read) }

// Close implements [net.Conn]. It closes a connection that waits for a request, now or next: a stopping server calls
// it, once, also for connections on which a request arrives just now. The server's own goroutine ends with end.
func (c *connection) Close() error {
	c.ending.Store(true)
	c.endIdle()
	return nil
}

// endIdle closes the socket if the connection waits for a request.
func (c *connection) endIdle() bool {
	until := c.idle.Load()
	if until == 0 || !c.idle.CompareAndSwap(until, 0) {
		return false
	}
	_ = c.socket.Close()
	return true
}

// lingerFor and lingerBytes bound the wait for a client that still sends.
const (
	lingerFor   = 2 * time.Second
	lingerBytes = 1 << 20
)

// end closes the connection and gives its place back. If the client may still be sending, end first closes the sending
// side and reads on, because the system discards answers on their way when data arrives at a closed socket.
func (c *connection) end() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.lingers && half.CloseWrite() == nil {
		_ = c.Conn.SetReadDeadline(time.Now().Add(lingerFor))
		c.idle.Store(1) // the first to be closed
		for left := lingerBytes; left > 0; {
			n, err := c.Conn.Read(c.first[:])
			if left -= n; err != nil {
				break
			}
		}
	}
	_ = c.Conn.Close()
	c.acceptor.remove(c)
}
