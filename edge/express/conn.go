package express

import (
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// conn is a connection on the lane. Except where noted, its fields belong to the goroutine of
// the server that serves the connection.
type conn struct {
	net.Conn
	lane *Lane

	mu     sync.Mutex // guards place, which the goroutine that shuts down looks at
	place  place
	ending atomic.Bool // set by that goroutine

	begun   bool // the server has read before
	between bool // the server waits for a request, its buffer being empty

	answered        bool      // the lane has answered since the server last saw a byte
	readBy, writeBy time.Time // deadlines set by the lane since then
	request         Request
}

// place is where a connection is.
type place int

const (
	inServer  place = iota // the server reads, answers or closes
	inLane                 // the lane waits or answers
	delivered              // the lane has returned the beginning of a request, which the server has not noticed
	closed
)

// grace is how long a connection that is to end may still deliver a request that was on its way.
const grace = 100 * time.Millisecond

// waitEvery says how often a connection waits in the network poller. The other times it lets
// the others go first: under load the next request is there by then, and reading it costs
// neither a call in vain nor a wait. But the runtime polls only when no goroutine can run, so
// that the connections that do wait would starve if none ever joined them.
const waitEvery = 4

// slack is how much longer than configured a deadline may be, so that it need not be moved
// for every request.
const slack = time.Second

// state follows the server. It calls a connection active when it has the first byte of a
// request, or at once for the first one, and idle when it has answered.
func (c *conn) state(s fasthttp.ConnState) {
	switch s {
	case fasthttp.StateActive:
		c.between = false
		c.move(delivered, inServer)
	case fasthttp.StateIdle:
		c.between = true
	}
}

// Read is called by the server. Where a request begins, the lane reads instead, into the
// buffer that the server offers: all of its own, so that what does not fit is too large.
func (c *conn) Read(p []byte) (int, error) {
	first := !c.begun
	c.begun = true
	if !first && !c.between {
		return c.Conn.Read(p)
	}
	if !c.move(inServer, inLane) {
		return 0, io.EOF
	}
	c.answered, c.readBy, c.writeBy = false, time.Time{}, time.Time{}
	n, err := c.serve(p)
	if n == 0 {
		c.move(inLane, inServer)
		if c.answered || c.ending.Load() {
			// The server must not take the end of a used connection for a request that
			// never came.
			return 0, io.EOF
		}
		return 0, err
	}
	if !first {
		c.move(inLane, delivered)
		return n, nil
	}
	c.move(inLane, inServer)
	if c.answered || c.ending.Load() {
		// For its first request the server has set the deadline before the lane moved it.
		err = c.Conn.SetReadDeadline(time.Now().Add(c.lane.cfg.ReadTimeout))
	}
	return n, err
}

// move changes the place, unless the connection has left the old one.
func (c *conn) move(from, to place) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.place != from {
		return false
	}
	c.place = to
	return true
}

// serve answers as long as it reads nothing but recognised requests, and returns how much of
// something else is in p. It never answers a part of what it has read: the server, which
// sends the answers to pipelined requests together, drops them if it then fails on one.
func (c *conn) serve(p []byte) (int, error) {
	for turn := 1; ; turn++ {
		if c.ending.Load() {
			if err := c.Conn.SetReadDeadline(time.Now().Add(grace)); err != nil {
				return 0, err
			}
		}
		n, err := c.Conn.Read(p)
		if n == 0 {
			return 0, err
		}
		// The last response must say that it is the last, which is the server's to know.
		if c.ending.Load() {
			return n, nil
		}
		requests := c.recognise(p[:n])
		if requests == 0 {
			return n, nil
		}
		if err := c.answer(p[:n], requests); err != nil {
			return 0, err
		}
		if turn%waitEvery != 0 {
			runtime.Gosched()
		}
	}
}

// recognise returns how many whole requests for the lane b is, 0 if there is anything else in
// it.
func (c *conn) recognise(b []byte) (requests int) {
	for len(b) > 0 {
		n := c.request.parse(b)
		if n == 0 || !c.lane.cfg.Handler.Knows(&c.request) {
			return 0
		}
		b = b[n:]
		requests++
	}
	return requests
}

// answer answers the requests in p, in as few writes as can be. A single one has been read by
// recognise already.
func (c *conn) answer(p []byte, requests int) (err error) {
	buffer := buffers.Get().(*[]byte)
	out := (*buffer)[:0]
	now := time.Now()
	c.request.Date = c.lane.dates.at(now)
	c.answered = true
	c.lane.answered.Add(uint64(requests))
	several := requests > 1
	for ; requests > 0 && err == nil; requests-- {
		if several {
			p = p[c.request.parse(p):]
			c.lane.cfg.Handler.Knows(&c.request)
		}
		out = c.lane.cfg.Handler.Append(out, &c.request)
		if len(out) >= flushAt || requests == 1 {
			err = c.write(out, now)
			out = out[:0]
		}
	}
	if cap(out) <= keepUpTo {
		*buffer = out
	}
	buffers.Put(buffer)
	return err
}

// write sends responses and gives time for the next request.
func (c *conn) write(out []byte, now time.Time) error {
	cfg := &c.lane.cfg
	if c.writeBy.Sub(now) < cfg.WriteTimeout {
		c.writeBy = now.Add(cfg.WriteTimeout + slack)
		if err := c.Conn.SetWriteDeadline(c.writeBy); err != nil {
			return err
		}
	}
	if _, err := c.Conn.Write(out); err != nil {
		return err
	}
	if c.readBy.Sub(now) < cfg.IdleTimeout {
		c.readBy = now.Add(cfg.IdleTimeout + slack)
		return c.Conn.SetReadDeadline(c.readBy)
	}
	return nil
}

// Close closes the connection, unless the lane has it: then it is the server shutting down,
// and what has begun is answered first. The server's own goroutine closes again.
func (c *conn) Close() error {
	if c.move(inServer, closed) {
		c.lane.forget(c)
		return c.Conn.Close()
	}
	c.end()
	return nil
}

// end makes the lane give the connection back. It may be called by any goroutine.
func (c *conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending.Store(true)
	if c.place == inLane {
		// An error means that the connection is broken, as the lane will find. Should the lane
		// move the deadline just now, it looks at ending before it reads.
		_ = c.Conn.SetReadDeadline(time.Now().Add(grace))
	}
}

// The sizes of output buffers: pipelined responses are sent when there are so many bytes, and
// a buffer that has grown further is not kept.
const (
	flushAt  = 64 << 10
	keepUpTo = 2 * flushAt
)

var buffers = sync.Pool{New: func() any {
	buffer := make([]byte, 0, 16<<10)
	return &buffer
}}
