// Package express answers the plain form of a request below the HTTP server, straight from
// prebuilt bytes. It sits between the server and its connections: when the server reads the
// beginning of a request, the lane reads in its place, answers by itself every request that it
// strictly recognises, and gives the server the first bytes that it does not. So a connection
// never leaves the server, which goes on to account for it, and everything unusual, half
// arrived, too large or wrong is the server's to parse, to refuse and to time out.
//
// Recognised is a GET of HTTP/1.1 without a body, whose header is made of plain fields, each of
// those that matter at most once, and whose target the [Handler] knows. For these the bytes
// sent, and the point at which the connection ends, are those of the server without a lane.
//
// The lane sets its own deadlines while it holds a connection, and ends idle ones when it is
// drained, which the server would take for busy ones.
//
// What arrives together is answered by the lane if all of it is recognised, and by the server
// otherwise: so the lane suits clients that wait for an answer or send a few requests ahead.
package express

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// Handler answers requests. It must be safe for concurrent use, and keep nothing of a request.
type Handler interface {
	// Knows reports whether the target of the request is one to answer on the lane. It may
	// set Found, and has no other effect.
	Knows(r *Request) bool
	// Append appends the whole response to a request after Knows has accepted it.
	Append(dst []byte, r *Request) []byte
}

// Config is what a lane is made of. All is required.
type Config struct {
	Handler Handler
	// ReadTimeout, WriteTimeout and IdleTimeout are those of the server. The lane moves a
	// deadline once a second and not for each request, so that it grants up to a second more.
	ReadTimeout, WriteTimeout, IdleTimeout time.Duration
}

// Lane is an express lane for the connections of one server.
type Lane struct {
	cfg      Config
	dates    dates
	answered atomic.Uint64

	mu       sync.Mutex // guards what follows
	open     map[*conn]struct{}
	draining bool
}

// New returns a lane.
func New(cfg Config) *Lane { return &Lane{cfg: cfg, open: map[*conn]struct{}{}} }

// Listen returns a listener whose connections are on the lane. The server that accepts from
// it must call [Lane.ConnState].
func (l *Lane) Listen(inner net.Listener) net.Listener { return &listener{inner, l} }

type listener struct {
	net.Listener
	lane *Lane
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.lane.Wrap(c), nil
}

// Wrap puts a connection on the lane.
func (l *Lane) Wrap(inner net.Conn) net.Conn {
	c := &conn{Conn: inner, lane: l}
	if tcp, ok := inner.RemoteAddr().(*net.TCPAddr); ok {
		c.request.Peer = tcp.AddrPort().Addr().Unmap()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c] = struct{}{}
	c.ending.Store(l.draining)
	return c
}

// ConnState is the hook of fasthttp.Server by which the lane learns where requests begin.
func (l *Lane) ConnState(c net.Conn, state fasthttp.ConnState) {
	if c, ok := c.(*conn); ok {
		c.state(state)
	}
}

// Open returns how many connections are on the lane.
func (l *Lane) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// Answered returns how many requests the lane has answered.
func (l *Lane) Answered() uint64 { return l.answered.Load() }

// Drain lets every connection end: one that waits for a request at once, any other when the
// server has answered what has begun. It does not wait. Call it before the server's Shutdown.
func (l *Lane) Drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	for c := range l.open {
		c.end()
	}
}

func (l *Lane) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}

// Request is what a recognised request says. Its bytes are valid until it is answered. Of the
// fields, nil means not sent.
type Request struct {
	Target         []byte
	Authorization  []byte
	APIKey         []byte
	Origin         []byte
	AcceptEncoding []byte
	IfNoneMatch    []byte
	ForwardedFor   []byte

	Peer netip.Addr // of the connection
	Date []byte     // the HTTP date of the response

	Found any // what the handler's Knows keeps for Append
}
