//go:build linux

// Package light is a load generator that spends little on a request: against a fast server on
// one core, wrk on another one is what limits the requests of a second, and not the server.
//
// On each connection it sends a request when the one before it is answered, from one loop over
// the system calls themselves. It reads of a response what it must to know where it ends, and
// that it is a success.
package light

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Config is what is to be sent. All is required.
type Config struct {
	Server      netip.AddrPort
	Connections int
	Length      time.Duration // for how long requests are sent
	Requests    [][]byte      // in turn, over all connections; none may have to do with the connection
}

// Report is what came of it.
type Report struct {
	Requests int           // that were answered
	Length   time.Duration // in which they were
	P50, P99 time.Duration // from when a request was sent to when its answer was found
}

// generator is a run.
type generator struct {
	cfg       Config
	epoll     int
	conns     []*conn // by file descriptor; nil: not ours
	next      int     // in Requests
	buffer    []byte
	begun     time.Time
	latencies []time.Duration
}

// conn is a connection, on which always one request is waiting for its answer.
type conn struct {
	fd   int
	sent time.Duration // since the beginning
	response
}

// Run sends requests for as long as it is told to. It is an error if any of them is not
// answered with a success, or a connection ends.
func Run(cfg Config) (Report, error) {
	g, err := newGenerator(cfg)
	if err != nil {
		return Report{}, err
	}
	defer g.close()
	if err := g.connect(); err != nil {
		return Report{}, err
	}
	g.begun = time.Now()
	for _, c := range g.conns {
		if c != nil {
			if err := g.send(c, time.Since(g.begun)); err != nil {
				return Report{}, err
			}
		}
	}
	took, err := g.serve()
	if err != nil {
		return Report{}, err
	}
	return g.report(took), nil
}

func newGenerator(cfg Config) (*generator, error) {
	switch {
	case !cfg.Server.Addr().Is4():
		return nil, fmt.Errorf("load: server %s, want an IPv4 address with a port", cfg.Server)
	case cfg.Connections < 1 || cfg.Length <= 0 || len(cfg.Requests) == 0:
		return nil, fmt.Errorf("load: %d connections, %s, %d requests: want at least some of each", cfg.Connections, cfg.Length, len(cfg.Requests))
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("load: epoll: %w", err)
	}
	return &generator{cfg: cfg, epoll: epoll, buffer: make([]byte, 256<<10)}, nil
}

// connect opens the connections.
func (g *generator) connect() error {
	to := &unix.SockaddrInet4{Port: int(g.cfg.Server.Port()), Addr: g.cfg.Server.Addr().As4()}
	for range g.cfg.Connections {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("load: socket: %w", err)
		}
		for len(g.conns) <= fd {
			g.conns = append(g.conns, nil)
		}
		g.conns[fd] = &conn{fd: fd}
		err = errors.Join(
			unix.Connect(fd, to),
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

// serve exchanges requests and responses until the time is over, and returns how long that
// took.
func (g *generator) serve() (time.Duration, error) {
	events := make([]unix.EpollEvent, g.cfg.Connections)
	for now := time.Duration(0); ; now = time.Since(g.begun) {
		if now >= g.cfg.Length {
			return now, nil
		}
		n, err := unix.EpollWait(g.epoll, events, 100)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return now, fmt.Errorf("load: wait: %w", err)
		}
		for _, event := range events[:max(n, 0)] {
			if err := g.turn(g.conns[event.Fd]); err != nil {
				return now, err
			}
		}
	}
}

// turn reads what has arrived, and sends the next request when that completes a response.
func (g *generator) turn(c *conn) error {
	n, err := receive(c.fd, g.buffer)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return nil
	case err != nil:
		return fmt.Errorf("load: receive: %w", err)
	case n == 0:
		return errors.New("load: the server has closed a connection")
	}
	complete, err := c.take(g.buffer[:n])
	if err != nil || !complete {
		return err
	}
	now := time.Since(g.begun)
	g.latencies = append(g.latencies, now-c.sent)
	return g.send(c, now)
}

func (g *generator) send(c *conn, now time.Duration) error {
	request := g.cfg.Requests[g.next]
	if g.next++; g.next == len(g.cfg.Requests) {
		g.next = 0
	}
	c.sent = now
	n, err := send(c.fd, request)
	if err != nil || n < len(request) {
		return fmt.Errorf("load: %d of %d bytes sent: %w", n, len(request), err)
	}
	return nil
}

func (g *generator) report(took time.Duration) Report {
	r := Report{Requests: len(g.latencies), Length: took}
	if r.Requests > 0 {
		slices.Sort(g.latencies)
		r.P50, r.P99 = g.latencies[r.Requests/2], g.latencies[r.Requests*99/100]
	}
	return r
}

func (g *generator) close() {
	for _, c := range g.conns {
		if c != nil {
			_ = unix.Close(c.fd)
		}
	}
	_ = unix.Close(g.epoll)
}
