//go:build linux

// Package loadgen is a load generator that spends little CPU time on a request, so that the server under
// load reaches its limit first.
//
// It is one loop over the system calls. It parses only the status and the length of a response. A connection carries one
// request at a time. In a closed loop each connection sends its next request when the response has arrived. In an open
// loop each request has an instant at which it is due, whether earlier ones are answered or not. If no connection is free
// then, the request waits in the generator. Its latency counts from the instant at which it was due, so a stall of the
// server delays every request that falls into the stall (no coordinated omission).
package loadgen

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Config describes a load. Servers, Connections, Requests and Steps are required.
type Config struct {
	Servers     []netip.AddrPort
	Connections int      // open at the same time, to the servers in turn
	Requests    [][]byte // whole requests, sent in turn
	Steps       []Step   // one after the other
	TLS         bool     // TLS 1.3; the certificate is not checked
	// Balance makes the generator a balancer: it counts refusals and errors, connects again, and repeats a request whose
	// connection ended without an answer, at another server if it can. Otherwise each of these ends the run.
	Balance bool
	// Used returns the CPU time that the servers have used. Run calls it when the connections are open and after the last
	// response. Nil: the report has none.
	Used func() (time.Duration, error) `json:"-"`
}

// Step is a part of a load.
type Step struct {
	Length    time.Duration // of the sending
	PerSecond float64       // requests due at even intervals; 0: a closed loop, which has one step
}

// patience is the longest wait of a balanced request for a free connection, and timeout that of an open loop for the
// last responses.
const (
	patience = time.Second
	timeout  = 5 * time.Second
)

// mostTries is the number of times that a balancer sends a request.
const mostTries = 3

// generator is a run. Its times count from the start of the run.
type generator struct {
	cfg       Config
	length    time.Duration // of all steps
	total     int           // requests of all steps; 0 in a closed loop
	epoll     int
	events    []unix.EpollEvent
	byFD      []*conn // by file descriptor; nil: not of this run
	free      []*conn // without a request, the longest free first; some may have ended
	ended     []*conn // of a balancer, to open again
	reopen    time.Duration
	again     []request // whose connection ended
	next      int       // number of the next request
	in        int       // requests without a response
	buffer    []byte
	now       func() time.Duration // nil until the run starts, unless a test sets it
	sleeps    bool                 // now is the wall clock
	collected collector
}

// request is a request under way.
type request struct {
	number, tries int
	server        netip.AddrPort // of the last try
	due, sent     time.Duration
}

// conn is a connection.
type conn struct {
	fd   int
	to   netip.AddrPort
	tls  *tls.Conn // nil: the connection is plain
	busy bool      // request has no response yet
	over bool      // the server has closed it
	request
	response
}

// Run sends requests over Connections connections for the length of all steps. Without Balance it fails if a response
// is no success, or if a connection ends.
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
	for i := range g.cfg.Connections {
		if err := g.connect(g.cfg.Servers[i%len(g.cfg.Servers)]); err != nil {
			return Report{}, err
		}
	}
	runtime.LockOSThread() // the kernel would add up to 50 µs to each wait of another thread
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	if g.now == nil {
		started := time.Now()
		g.now, g.sleeps = func() time.Duration { return time.Since(started) }, true
	}
	return measured(g.cfg.Used, func() (Report, error) {
		took, err := g.loop()
		return g.collected.report(took), err
	})
}

func newGenerator(cfg Config) (*generator, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("load: epoll: %w", err)
	}
	return &generator{
		cfg: cfg, epoll: epoll, events: make([]unix.EpollEvent, cfg.Connections), buffer: make([]byte, 256<<10),
		length: cfg.length(), total: cfg.total(), collected: collector{length: cfg.length()},
	}, nil
}

func (c *Config) validate() error {
	for _, s := range c.Servers {
		if !s.Addr().Is4() {
			return fmt.Errorf("load: server %s, want an IPv4 address with a port", s)
		}
	}
	for _, s := range c.Steps {
		switch {
		case s.PerSecond < 0 || s.PerSecond == 0 && len(c.Steps) > 1:
			return fmt.Errorf("load: %v requests a second, want some, or 0 for a closed loop of one step", s.PerSecond)
		case s.Length <= 0:
			return fmt.Errorf("load: a step of %s, want more than 0", s.Length)
		}
	}
	if c.Connections < 1 || len(c.Servers) == 0 || len(c.Requests) == 0 || len(c.Steps) == 0 {
		return fmt.Errorf("load: %d connections, servers %d, requests %d, steps %d: want at least 1 of each",
			c.Connections, len(c.Servers), len(c.Requests), len(c.Steps))
	}
	return nil
}

func (c *Config) length() (all time.Duration) {
	for _, s := range c.Steps {
		all += s.Length
	}
	return all
}

func (c *Config) total() (all int) {
	for _, s := range c.Steps {
		all += s.requests()
	}
	return all
}

// requests returns the number of requests that are due in a step.
func (s Step) requests() int {
	const rounding = 1e-6
	return int(math.Ceil(s.PerSecond*s.Length.Seconds() - rounding))
}

// due returns the instant at which a request is due, and false after the last one. In a closed loop it is due now.
func (c *Config) due(number int, now time.Duration) (at time.Duration, more bool) {
	if c.Steps[0].PerSecond == 0 {
		return now, now < c.Steps[0].Length
	}
	var start time.Duration
	for _, s := range c.Steps {
		if number < s.requests() {
			return start + time.Duration(float64(number)/s.PerSecond*float64(time.Second)), true
		}
		number -= s.requests()
		start += s.Length
	}
	return start, false
}

// connect opens a connection to a server.
func (g *generator) connect(server netip.AddrPort) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("load: socket: %w", err)
	}
	for len(g.byFD) <= fd {
		g.byFD = append(g.byFD, nil)
	}
	c := &conn{fd: fd, to: server, response: response{anyStatus: g.cfg.Balance}}
	err = errors.Join(
		unix.Connect(fd, &unix.SockaddrInet4{Port: int(server.Port()), Addr: server.Addr().As4()}),
		c.handshake(g.cfg),
		unix.SetNonblock(fd, true),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		// Without it the port would stay in use for a minute.
		unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}),
		unix.EpollCtl(g.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}),
	)
	if err != nil {
		_ = unix.Close(fd)
		return fmt.Errorf("load: connect to %s: %w", server, err)
	}
	g.byFD[fd] = c
	g.free = append(g.free, c)
	return nil
}

// loop exchanges requests and responses until all have been answered or the time is over, and returns the length of the
// sending.
func (g *generator) loop() (time.Duration, error) {
	closed := g.cfg.Steps[0].PerSecond == 0
	for {
		now := g.now()
		g.reconnect(now)
		if err := g.sendDue(now); err != nil {
			return now, err
		}
		at, more := g.cfg.due(g.next, now)
		waiting := g.in + len(g.again) + g.total - g.next
		switch {
		case closed && !more:
			return now, nil
		case !closed && waiting == 0:
			return g.length, nil
		case now < g.length+timeout:
		case g.cfg.Balance:
			g.giveUp()
			return g.length, nil
		default:
			return now, fmt.Errorf("load: %d requests have no response after %s", waiting, timeout)
		}
		ready, err := g.wait(g.longestWait(now, at, more && !closed))
		if err != nil {
			return now, err
		}
		for _, event := range ready {
			if err := g.read(g.byFD[event.Fd]); err != nil {
				return now, err
			}
		}
	}
}

// longestWait returns the time until the loop must send or connect again, if no response comes earlier.
func (g *generator) longestWait(now, due time.Duration, scheduled bool) time.Duration {
	if !g.sleeps {
		return 0
	}
	wait := 100 * time.Millisecond
	if scheduled && len(g.free) > 0 {
		wait = min(wait, due-now)
	}
	if len(g.ended) > 0 {
		wait = min(wait, g.reopen-now)
	}
	return max(wait, 0)
}

// sendDue sends the requests that are due, while a connection is free.
func (g *generator) sendDue(now time.Duration) error {
	g.free = slices.DeleteFunc(g.free, func(c *conn) bool { return c.over })
	for len(g.free) > 0 {
		c, r, ok := g.repeat()
		if !ok {
			if r, ok = g.take(now); !ok {
				return nil
			}
			c = g.free[0]
		}
		g.free = slices.DeleteFunc(g.free, func(other *conn) bool { return other == c || other.over })
		if err := g.send(c, r, now); err != nil {
			return err
		}
	}
	return nil
}

// repeat returns the first request to repeat, and a free connection to another server than that of its last try: a server
// that stops ends all its connections. With one server, any connection does.
func (g *generator) repeat() (*conn, request, bool) {
	for i, r := range g.again {
		for _, c := range g.free {
			if c.to != r.server || len(g.cfg.Servers) == 1 {
				g.again = slices.Delete(g.again, i, i+1)
				return c, r, true
			}
		}
	}
	return nil, request{}, false
}

// take returns the next request of the schedule that is due.
func (g *generator) take(now time.Duration) (r request, ok bool) {
	for {
		at, more := g.cfg.due(g.next, now)
		if !more || at > now {
			return request{}, false
		}
		r = request{number: g.next, due: at}
		g.next++
		if !g.cfg.Balance || now-at <= patience {
			return r, true
		}
		g.collected.second(at).GivenUp++
	}
}

// giveUp counts the requests that have no answer at the end of a balancer's run.
func (g *generator) giveUp() {
	for _, c := range g.byFD {
		if c != nil && c.busy {
			g.again = append(g.again, c.request)
		}
	}
	for _, r := range g.again {
		g.collected.second(r.due).Errors++
	}
	for at, more := g.cfg.due(g.next, 0); more; at, more = g.cfg.due(g.next, 0) {
		g.collected.second(at).GivenUp++
		g.next++
	}
}

// wait returns the connections on which data have arrived. It waits atMost for the first.
func (g *generator) wait(atMost time.Duration) ([]unix.EpollEvent, error) {
	limit := unix.NsecToTimespec(atMost.Nanoseconds())
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(g.epoll), uintptr(unsafe.Pointer(unsafe.SliceData(g.events))), uintptr(len(g.events)),
		uintptr(unsafe.Pointer(&limit)), 0, 0)
	switch errno {
	case 0:
		return g.events[:n], nil
	case unix.EINTR:
		return nil, nil
	}
	return nil, fmt.Errorf("load: wait: %w", errno)
}

// read parses the data that have arrived on a connection.
func (g *generator) read(c *conn) error {
	for {
		n, err := c.receive(g.buffer)
		now := g.now()
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err == nil && n == 0 || errors.Is(err, io.EOF):
			return g.end(c, errors.New("load: the server closed a connection"))
		case err != nil:
			return g.end(c, fmt.Errorf("load: receive: %w", err))
		}
		if err := g.parse(c, g.buffer[:n], now); err != nil || c.tls == nil || c.over {
			return err
		}
	}
}

// parse parses a response, or a part of it.
func (g *generator) parse(c *conn, data []byte, now time.Duration) error {
	if !c.busy {
		return fmt.Errorf("load: %d bytes without a request", len(data))
	}
	rest, complete, err := c.response.parse(data)
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return fmt.Errorf("load: %d bytes without a request", len(rest))
	case complete:
		c.busy = false
		g.in--
		g.collected.answer(c.request, c.status, now)
		if c.last {
			return g.end(c, errors.New("load: the server announced the end of a connection"))
		}
		g.free = append(g.free, c)
	}
	return nil
}

// send sends a request on a free connection.
func (g *generator) send(c *conn, r request, now time.Duration) error {
	r.sent, r.server = now, c.to
	r.tries++
	c.request, c.busy = r, true
	g.in++
	whole := g.cfg.Requests[r.number%len(g.cfg.Requests)]
	n, err := c.send(whole)
	if err == nil && n < len(whole) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return g.end(c, fmt.Errorf("load: %d of %d bytes sent: %w", n, len(whole), err))
	}
	return nil
}

// end closes a connection that the server has ended for a reason. A balancer repeats its request; otherwise the reason ends the run.
func (g *generator) end(c *conn, reason error) error {
	if !g.cfg.Balance {
		return reason
	}
	if c.over { // a wait returned it twice
		return nil
	}
	_ = unix.Close(c.fd)
	g.byFD[c.fd] = nil
	c.over = true
	g.ended = append(g.ended, c)
	if !c.busy {
		return nil
	}
	g.in--
	if c.tries < mostTries {
		g.again = append(g.again, c.request)
		g.collected.second(c.due).Repeated++
	} else {
		g.collected.second(c.due).Errors++
	}
	return nil
}

// reconnect opens the ended connections of a balancer again. It waits after a server that accepts none.
func (g *generator) reconnect(now time.Duration) {
	if len(g.ended) == 0 || now < g.reopen {
		return
	}
	var refused []*conn
	for _, c := range g.ended {
		if g.connect(c.to) != nil {
			refused = append(refused, c)
		}
	}
	g.ended, g.reopen = refused, now+20*time.Millisecond
}

func (g *generator) close() {
	for _, c := range g.byFD {
		if c != nil {
			_ = unix.Close(c.fd)
		}
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
