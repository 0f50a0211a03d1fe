//go:build linux

// Package loadgen is a load generator that spends little on a request: against a fast server on
// one core, wrk on another one is what limits the requests of a second, and not the server.
//
// It is one loop over the system calls themselves, and reads of a response what it must to know
// where it ends and that it is a success. In a closed loop a connection's next request is sent
// when the one before it is answered; in an open loop requests are sent when they are due,
// whether others have been answered or not, so that a stall of the server is seen by all
// requests that fall into it.
package loadgen

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Config is what is to be sent. All is required but for PerSecond.
type Config struct {
	Server      netip.AddrPort
	Connections int
	Length      time.Duration // for how long requests are sent
	Requests    [][]byte      // in turn, over all connections; none may end its connection
	TLS         bool          // 1.3, whoever the server says it is
	PerSecond   float64       // requests due at even intervals, on one connection after the other; 0: a closed loop
}

// Report is what came of it.
type Report struct {
	Requests int           // that were answered
	Length   time.Duration // in which they were sent
	P50, P99 time.Duration // from when a request was sent, or was due, to when its answer was found
}

// generator is a run. Its times are since the beginning.
type generator struct {
	cfg       Config
	epoll     int
	events    []unix.EpollEvent
	conns     []*conn
	byFD      []*conn // nil: not ours
	sent      int     // requests
	buffer    []byte
	now       func() time.Duration // nil until the run begins, unless a test has a time of its own
	latencies []time.Duration
}

// conn is a connection. Its requests are answered in their order.
type conn struct {
	fd      int
	tls     *tls.Conn       // nil: the connection is plain
	waiting []time.Duration // since when each request waits for its answer
	response
}

// Run sends requests for as long as it is told to. It is an error if any of them is not
// answered with a success, or a connection ends.
func Run(cfg Config) (Report, error) {
	g, err := newGenerator(cfg)
	if err != nil {
		return Report{}, err
	}
	return g.run()
}

// run connects, sends what is to be sent, and closes the connections.
func (g *generator) run() (Report, error) {
	defer g.close()
	if err := g.connect(); err != nil {
		return Report{}, err
	}
	if g.now == nil {
		begun := time.Now()
		g.now = func() time.Duration { return time.Since(begun) }
	}
	run := g.closedLoop
	if g.cfg.PerSecond > 0 {
		run = g.openLoop
	}
	length, err := run()
	if err != nil {
		return Report{}, err
	}
	return g.report(length), nil
}

func newGenerator(cfg Config) (*generator, error) {
	switch {
	case !cfg.Server.Addr().Is4():
		return nil, fmt.Errorf("load: server %s, want an IPv4 address with a port", cfg.Server)
	case cfg.PerSecond < 0:
		return nil, fmt.Errorf("load: %v requests a second, want some, or 0 for a closed loop", cfg.PerSecond)
	case cfg.Connections < 1 || cfg.Length <= 0 || len(cfg.Requests) == 0:
		return nil, fmt.Errorf("load: %d connections, %s, %d requests: want at least some of each", cfg.Connections, cfg.Length, len(cfg.Requests))
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("load: epoll: %w", err)
	}
	return &generator{
		cfg: cfg, epoll: epoll, events: make([]unix.EpollEvent, cfg.Connections), buffer: make([]byte, 256<<10),
	}, nil
}

// connect opens the connections.
func (g *generator) connect() error {
	to := &unix.SockaddrInet4{Port: int(g.cfg.Server.Port()), Addr: g.cfg.Server.Addr().As4()}
	for range g.cfg.Connections {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("load: socket: %w", err)
		}
		for len(g.byFD) <= fd {
			g.byFD = append(g.byFD, nil)
		}
		g.byFD[fd] = &conn{fd: fd}
		g.conns = append(g.conns, g.byFD[fd])
		err = errors.Join(
			unix.Connect(fd, to),
			g.byFD[fd].handshake(g.cfg),
			unix.SetNonblock(fd, true),
			unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
			// Else the port stays taken for a minute.
			unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}),
			unix.EpollCtl(g.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}),
		)
		if err != nil {
			return fmt.Errorf("load: connect to %s: %w", g.cfg.Server, err)
		}
	}
	return nil
}

// closedLoop exchanges requests and responses until the time is over, and returns how long that
// took.
func (g *generator) closedLoop() (time.Duration, error) {
	for _, c := range g.conns {
		if err := g.send(c, g.now()); err != nil {
			return 0, err
		}
	}
	for {
		now := g.now()
		if now >= g.cfg.Length {
			return now, nil
		}
		ready, err := g.wait(100 * time.Millisecond)
		if err != nil {
			return now, err
		}
		for _, event := range ready {
			c := g.byFD[event.Fd]
			now, err := g.read(c)
			if err == nil && len(c.waiting) == 0 {
				err = g.send(c, now)
			}
			if err != nil {
				return now, err
			}
		}
	}
}

// timeout is how long an open loop waits for the last answers.
const timeout = 5 * time.Second

// openLoop sends the requests that are due until the time is over, and waits for the answers.
// It never sleeps: to be woken late would count as the server's.
func (g *generator) openLoop() (time.Duration, error) {
	for {
		now := g.now()
		for at := g.dueAt(); at <= now && at < g.cfg.Length; at = g.dueAt() {
			if err := g.send(g.conns[g.sent%len(g.conns)], at); err != nil {
				return now, err
			}
		}
		waiting := g.sent - len(g.latencies)
		switch {
		case now >= g.cfg.Length && waiting == 0:
			return g.cfg.Length, nil
		case now >= g.cfg.Length+timeout:
			return now, fmt.Errorf("load: %d requests have no answer after %s", waiting, timeout)
		}
		ready, err := g.wait(0)
		if err != nil {
			return now, err
		}
		for _, event := range ready {
			if now, err := g.read(g.byFD[event.Fd]); err != nil {
				return now, err
			}
		}
	}
}

// dueAt is when the next request of an open loop is due.
func (g *generator) dueAt() time.Duration {
	return time.Duration(float64(g.sent) / g.cfg.PerSecond * float64(time.Second))
}

// wait returns the events of connections on which something has arrived, at the latest after a
// time.
func (g *generator) wait(atMost time.Duration) ([]unix.EpollEvent, error) {
	n, err := unix.EpollWait(g.epoll, g.events, int(atMost.Milliseconds()))
	if err != nil && !errors.Is(err, unix.EINTR) {
		return nil, fmt.Errorf("load: wait: %w", err)
	}
	return g.events[:max(n, 0)], nil
}

// read takes what has arrived on a connection, and returns when that was.
func (g *generator) read(c *conn) (now time.Duration, err error) {
	for {
		n, err := c.receive(g.buffer)
		now = g.now()
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, os.ErrDeadlineExceeded):
			return now, nil
		case err != nil && !errors.Is(err, io.EOF):
			return now, fmt.Errorf("load: receive: %w", err)
		case n == 0:
			return now, errors.New("load: the server has closed a connection")
		}
		if err := g.take(c, g.buffer[:n], now); err != nil || c.tls == nil {
			return now, err
		}
	}
}

// take takes responses, or parts of them.
func (g *generator) take(c *conn, rest []byte, now time.Duration) error {
	for len(rest) > 0 {
		if len(c.waiting) == 0 {
			return fmt.Errorf("load: %d bytes that nobody has asked for", len(rest))
		}
		var (
			complete bool
			err      error
		)
		if rest, complete, err = c.take(rest); err != nil {
			return err
		}
		if complete {
			g.latencies = append(g.latencies, now-c.waiting[0])
			c.waiting = append(c.waiting[:0], c.waiting[1:]...)
		}
	}
	return nil
}

// send sends the next request, which waits for its answer since an instant.
func (g *generator) send(c *conn, since time.Duration) error {
	request := g.cfg.Requests[g.sent%len(g.cfg.Requests)]
	g.sent++
	c.waiting = append(c.waiting, since)
	n, err := c.send(request)
	if err != nil || n < len(request) {
		return fmt.Errorf("load: %d of %d bytes sent: %w", n, len(request), err)
	}
	return nil
}

func (g *generator) report(length time.Duration) Report {
	r := Report{Requests: len(g.latencies), Length: length}
	if r.Requests > 0 {
		slices.Sort(g.latencies)
		r.P50, r.P99 = g.latencies[r.Requests/2], g.latencies[r.Requests*99/100]
	}
	return r
}

func (g *generator) close() {
	for _, c := range g.conns {
		_ = unix.Close(c.fd)
	}
	_ = unix.Close(g.epoll)
}
