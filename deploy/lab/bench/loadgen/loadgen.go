//go:build linux

// Package loadgen is a load generator that spends little CPU time on a request, so that the server under
// load reaches its limit first.
//
// It is one loop over the system calls. It parses only the status and the length of a response. In a closed
// loop each connection sends its next request when the response has arrived. In an open loop the generator
// sends each request when it is due, whether earlier ones are answered or not, so that a stall of the server
// delays every request that falls into it.
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
	"unsafe"

	"golang.org/x/sys/unix"
)

// Config describes a load. Every field but TLS and PerSecond is required.
type Config struct {
	Server      netip.AddrPort
	Connections int           // open at the same time
	Length      time.Duration // of the sending
	Request     []byte        // a whole request
	TLS         bool          // TLS 1.3; the certificate is not checked
	PerSecond   float64       // requests due at even intervals, on one connection after the other; 0: a closed loop
}

// Report is the outcome of a load.
type Report struct {
	Requests int           // answered
	Length   time.Duration // of the sending
	P50, P99 time.Duration // from the instant a request was sent, or was due, to its whole response
}

// generator is a run. Its times count from the start of the run.
type generator struct {
	cfg       Config
	epoll     int
	events    []unix.EpollEvent
	conns     []*conn
	byFD      []*conn // by file descriptor; nil: not of this run
	sent      int     // requests
	buffer    []byte
	now       func() time.Duration // nil until the run starts, unless a test sets it
	latencies []time.Duration
}

// conn is a connection. The server answers its requests in order.
type conn struct {
	fd      int
	tls     *tls.Conn       // nil: the connection is plain
	waiting []time.Duration // the start of each request without a response
	response
}

// Run sends requests over Connections connections for Length. It fails if a response is no success, or if a
// connection ends.
func Run(cfg Config) (Report, error) {
	g, err := newGenerator(cfg)
	if err != nil {
		return Report{}, err
	}
	return g.run()
}

// run connects, sends the requests, and closes the connections.
func (g *generator) run() (Report, error) {
	defer g.close()
	if err := g.connect(); err != nil {
		return Report{}, err
	}
	if g.now == nil {
		started := time.Now()
		g.now = func() time.Duration { return time.Since(started) }
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
	case cfg.Connections < 1 || cfg.Length <= 0 || len(cfg.Request) == 0:
		return nil, fmt.Errorf("load: %d connections, %s, a request of %d bytes: want more than 0 of each", cfg.Connections, cfg.Length, len(cfg.Request))
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
			// Without it the port would stay in use for a minute.
			unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}),
			unix.EpollCtl(g.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}),
		)
		if err != nil {
			return fmt.Errorf("load: connect to %s: %w", g.cfg.Server, err)
		}
	}
	return nil
}

// closedLoop exchanges requests and responses until the time is over, and returns the time it took.
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

// timeout is the longest wait of an open loop for the last responses.
const timeout = 5 * time.Second

// openLoop sends each request when it is due until the time is over, and waits for the responses. It never
// sleeps, because a late wake-up would count as a delay of the server.
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
			return now, fmt.Errorf("load: %d requests have no response after %s", waiting, timeout)
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

// dueAt returns the instant at which the next request of an open loop is due.
func (g *generator) dueAt() time.Duration {
	return time.Duration(float64(g.sent) / g.cfg.PerSecond * float64(time.Second))
}

// wait returns the connections on which data have arrived. It waits atMost for the first.
func (g *generator) wait(atMost time.Duration) ([]unix.EpollEvent, error) {
	n, err := unix.EpollWait(g.epoll, g.events, int(atMost.Milliseconds()))
	if err != nil && !errors.Is(err, unix.EINTR) {
		return nil, fmt.Errorf("load: wait: %w", err)
	}
	return g.events[:max(n, 0)], nil
}

// read parses the data that have arrived on a connection, and returns the instant of the last read.
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
			return now, errors.New("load: the server closed a connection")
		}
		if err := g.parse(c, g.buffer[:n], now); err != nil || c.tls == nil {
			return now, err
		}
	}
}

// parse parses responses, or parts of them.
func (g *generator) parse(c *conn, rest []byte, now time.Duration) error {
	for len(rest) > 0 {
		if len(c.waiting) == 0 {
			return fmt.Errorf("load: %d bytes without a request", len(rest))
		}
		var (
			complete bool
			err      error
		)
		if rest, complete, err = c.response.parse(rest); err != nil {
			return err
		}
		if complete {
			g.latencies = append(g.latencies, now-c.waiting[0])
			c.waiting = append(c.waiting[:0], c.waiting[1:]...)
		}
	}
	return nil
}

// send sends the next request. Its latency counts from since.
func (g *generator) send(c *conn, since time.Duration) error {
	request := g.cfg.Request
	g.sent++
	c.waiting = append(c.waiting, since)
	n, err := c.send(request)
	if err == nil && n < len(request) {
		err = io.ErrShortWrite
	}
	if err != nil {
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

// The system calls of a request never block, so the Go runtime need not know of them.

func receive(fd int, p []byte) (int, error) { return call(unix.SYS_RECVFROM, fd, p) }

func send(fd int, p []byte) (int, error) { return call(unix.SYS_SENDTO, fd, p) }

func call(trap uintptr, fd int, p []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(trap, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
