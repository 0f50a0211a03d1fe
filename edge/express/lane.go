package express

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// Lane is an express lane for the connections of one server. For the server it is a
// [net.Listener] of the connections that the lane hands off.
type Lane struct {
	cfg      Config
	dates    dates
	workers  sync.Pool
	loops    []*loop // empty: every connection has a goroutine
	socket   int     // the socket of the loops, if there are any
	answered atomic.Uint64

	busyElsewhere atomic.Int32 // connections in use by a goroutine other than their loop

	inner      net.Listener
	slots      chan struct{}   // one for each allowed connection; full while all are open
	full       atomic.Bool     // loops have stopped accepting for lack of a slot or another resource
	handedOff  chan *handedOff // to the server; a send never blocks
	fault      chan error      // the end of inner
	acceptors  sync.WaitGroup  // loops that accept
	acceptDone chan struct{}   // closed when the lane accepts no more connections

	closing  sync.Once
	closed   chan struct{}
	draining atomic.Bool
	conns    atomic.Int32 // open connections

	mu   sync.Mutex         // guards open
	open map[*conn]struct{} // connections without a loop
}

// New returns a lane that does nothing before Listen.
func New(cfg Config) *Lane {
	l := &Lane{
		cfg:        cfg,
		slots:      make(chan struct{}, cfg.MaxConnections),
		handedOff:  make(chan *handedOff, cfg.MaxConnections),
		fault:      make(chan error, 1),
		acceptDone: make(chan struct{}),
		closed:     make(chan struct{}),
		open:       map[*conn]struct{}{},
	}
	l.workers.New = func() any { return l.newWorker() }
	return l
}

// Listen puts the connections of a listener on the lane and returns the listener for the
// server. The server's hook must be [Lane.ConnState]. Call Listen once. If the listener is a
// socket, the loops accept from it themselves.
func (l *Lane) Listen(inner net.Listener) (net.Listener, error) {
	l.inner = inner
	if socket, ok := inner.(syscall.Conn); ok {
		if err := l.startLoops(socket); err != nil {
			return nil, fmt.Errorf("express lane: %w", err)
		}
	}
	if len(l.loops) == 0 {
		if l.cfg.TLS != nil {
			l.inner = tls.NewListener(inner, l.cfg.TLS)
		}
		go l.accept()
	}
	go l.watch()
	return l, nil
}

// accept accepts connections from the listener until it is closed.
func (l *Lane) accept() {
	defer close(l.acceptDone)
	for {
		select {
		case l.slots <- struct{}{}:
		case <-l.closed:
			return
		}
		c, err := l.inner.Accept()
		if err != nil {
			if !l.draining.Load() {
				l.fault <- err
			}
			return
		}
		l.add(c)
	}
}

// add starts a connection without a loop.
func (l *Lane) add(inner net.Conn) {
	c := &conn{lane: l, net: inner}
	c.state.Store(busy)
	if tcp, ok := inner.RemoteAddr().(*net.TCPAddr); ok {
		c.peer = tcp.AddrPort().Addr().Unmap()
	}
	c.extend(time.Now(), l.cfg.ReadTimeout)
	l.conns.Add(1)
	l.mu.Lock()
	l.open[c] = struct{}{}
	l.mu.Unlock()
	c.wait()
}

// reserve takes a slot for a connection. If there is none, release tells the loops when one is free.
func (l *Lane) reserve() bool {
	select {
	case l.slots <- struct{}{}:
		return true
	default:
	}
	l.full.Store(true)
	select {
	case l.slots <- struct{}{}: // a slot became free before its release could see that a loop wants it
		return true
	default:
		return false
	}
}

// release returns the slot of a closed connection.
func (l *Lane) release() {
	<-l.slots
	if l.full.Load() {
		l.acceptAgain()
	}
}

// order is a command of other goroutines to a loop.
type order byte

const (
	acceptOn order = 1 + iota
	acceptOff
)

// acceptAgain lets stopped loops accept again.
func (l *Lane) acceptAgain() {
	if l.full.Swap(false) {
		for _, p := range l.loops {
			p.tell(acceptOn)
		}
	}
}

// Accept returns the next connection with a request for the server.
func (l *Lane) Accept() (net.Conn, error) {
	select {
	case c := <-l.handedOff:
		return c, nil
	case err := <-l.fault:
		return nil, err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Addr returns the address of the listener.
func (l *Lane) Addr() net.Addr { return l.inner.Addr() }

// ConnState is the hook of fasthttp.Server from which the lane learns the end of a request.
func (l *Lane) ConnState(c net.Conn, state fasthttp.ConnState) {
	if c, ok := c.(*handedOff); ok {
		c.between = state == fasthttp.StateIdle
	}
}

// Open returns the number of open connections, with the lane or with the server.
func (l *Lane) Open() int { return int(l.conns.Load()) }

// Answered returns the number of requests that the lane has answered.
func (l *Lane) Answered() uint64 { return l.answered.Load() }

// handOff queues a connection for the server.
func (l *Lane) handOff(c *handedOff) {
	l.busyElsewhere.Add(1)
	l.handedOff <- c
	select {
	case <-l.closed:
		l.closeQueued()
	default:
	}
}

// closeQueued closes the queued connections, because nobody will serve them any more.
func (l *Lane) closeQueued() {
	for {
		select {
		case c := <-l.handedOff:
			_ = c.Close()
		default:
			return
		}
	}
}

// watch ends connections past their deadline.
func (l *Lane) watch() {
	every := min(time.Second, l.cfg.ReadTimeout/4, l.cfg.IdleTimeout/4)
	tick := time.NewTicker(max(every, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			l.acceptAgain() // there may be descriptors again
			l.endWaiting(func(c *conn) bool { return c.due.Load() < now.UnixNano() })
		case <-l.closed:
			return
		}
	}
}

// endWaiting ends the waiting connections that are due.
func (l *Lane) endWaiting(to func(*conn) bool) {
	var ended []*conn
	l.mu.Lock()
	for c := range l.open {
		if to(c) && c.acquire() {
			ended = append(ended, c)
		}
	}
	l.mu.Unlock()
	for _, p := range l.loops {
		ended = p.acquire(ended, to)
	}
	for _, c := range ended {
		c.end()
	}
}

// grace is the time at a shutdown in which connections may still arrive and deliver a request.
const grace = 100 * time.Millisecond

// Drain ends the lane: after a moment it accepts no more connections and closes the waiting
// ones; it closes any other when the running request is answered. From now
// on the server answers everything, and can mark the last response. Drain returns when
// no connection is open, or with the error of ctx. Call it before the server's Shutdown.
func (l *Lane) Drain(ctx context.Context) error {
	l.draining.Store(true)
	tick := time.NewTicker(grace)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			tick.Reset(grace / 10)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for _, p := range l.loops {
			p.tell(acceptOff)
		}
		if len(l.loops) == 0 {
			_ = l.inner.Close() // it may be closed already
		}
		l.endWaiting(func(*conn) bool { return true })
		select {
		case <-l.acceptDone:
			_ = l.inner.Close() // it may be closed already
			if l.Open() == 0 {
				return nil
			}
		default:
		}
	}
}

// Close closes the listener and all waiting connections.
func (l *Lane) Close() (err error) {
	l.closing.Do(func() {
		err = l.inner.Close()
		if l.draining.Swap(true) {
			err = nil // it is closed already
		}
		close(l.closed)
		l.closeQueued()
		l.endLoops()
		l.endWaiting(func(*conn) bool { return true })
	})
	return err
}

func (l *Lane) endLoops() {
	for _, loop := range l.loops {
		loop.end()
	}
}
