package express

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loop waits for many connections at once, by epoll, and answers on each as it becomes ready.
//
// Its epoll instance is watched by the poller of the Go runtime in turn, so that a loop without
// work blocks no thread. The sockets are known to both: the runtime's poller serves those that
// are handed off or take a response slowly.
type loop struct {
	worker *worker
	epoll  *os.File
	poll   syscall.RawConn
	waker  int // an eventfd in the epoll instance

	mu      sync.Mutex // guards what follows
	conns   []*conn    // by file descriptor
	decided []decision // of pending connections
	fd      int        // of the epoll instance
	ended   bool       // both descriptors are closed

	noShortWait bool // the kernel cannot wait for less than a millisecond

	events  []unix.EpollEvent
	ready   []*conn    // of events; nil: it has been closed
	resumed []decision // taken from decided
}

// decision is what a pending connection waits for.
type decision struct {
	conn    *conn
	decided any
}

const (
	// eventsAtOnce is how many ready connections are taken from the kernel at a time.
	eventsAtOnce = 128
	// turnsInARow is how many of them are served before other goroutines have their turn.
	turnsInARow = 256
	// shortWaitsInARow is how often a loop waits for a moment before other goroutines have their
	// turn.
	shortWaitsInARow = 32
	// readsInARow is how often a connection that fills the buffer is read from before the
	// others have their turn.
	readsInARow = 8
)

// newLoop returns a loop that has no connections yet.
func newLoop(l *Lane) (*loop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create an epoll instance: %w", err)
	}
	// Only what does not block is watched by the runtime.
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("prepare an epoll instance: %w", err)
	}
	p := &loop{
		worker: l.newWorker(),
		epoll:  os.NewFile(uintptr(fd), "epoll"),
		fd:     fd,
		events: make([]unix.EpollEvent, eventsAtOnce),
		ready:  make([]*conn, eventsAtOnce),
	}
	if p.poll, err = p.epoll.SyscallConn(); err != nil {
		_ = p.epoll.Close()
		return nil, fmt.Errorf("watch an epoll instance: %w", err)
	}
	if p.waker, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		_ = p.epoll.Close()
		return nil, fmt.Errorf("create an eventfd: %w", err)
	}
	if err := p.control(unix.EPOLL_CTL_ADD, p.waker, unix.EPOLLIN|unix.EPOLLET); err != nil {
		p.end()
		return nil, err
	}
	return p, nil
}

// run serves until end.
func (p *loop) run() {
	var n, turns, shortWaits int
	wait := func(fd uintptr) bool {
		if turns >= turnsInARow || shortWaits >= shortWaitsInARow {
			// The scheduler looks for other connections only when no goroutine can run: so
			// this one waits, for an event that it makes itself.
			turns, shortWaits = 0, 0
			p.yield()
			return false
		}
		if n = p.take(int(fd)); n > 0 {
			return true
		}
		shortWaits = 0
		return false
	}
	for p.poll.Read(wait) == nil {
		turns += n
		shortWaits++
		p.worker.now = time.Now()
		p.find(n)
		for _, d := range p.resumed {
			p.resume(d.conn, d.decided)
		}
		for i, c := range p.ready[:n] {
			if c != nil {
				p.turn(c, p.events[i].Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0)
			}
		}
	}
}

// shortWait is how long a loop sleeps in the kernel, where it has nothing to do, before it lets the
// scheduler wake it. Under load the next request comes sooner, and is had for less.
var shortWait = unix.Timespec{Nsec: int64(50 * time.Microsecond)}

// take takes events from the kernel and returns how many. While others work on connections of
// the lane it does not wait for any: they need the processor.
func (p *loop) take(fd int) int {
	if p.noShortWait || p.worker.lane.busyElsewhere.Load() > 0 {
		n, _ := unix.EpollWait(fd, p.events, 0)
		return n
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(fd), uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(unsafe.Pointer(&shortWait)), 0, 0) //nolint:gosec // both outlive the call
	if errno != 0 {
		p.noShortWait = errno != unix.EINTR // the kernel is older than 5.11, or does not let us
		return 0
	}
	return int(n)
}

// yield makes an event for the loop itself.
func (p *loop) yield() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.wake()
	}
}

// find takes the decisions that are there, and looks up the connections of the first n events.
// An event may be of one that has been closed meanwhile, or whose descriptor is another one's by
// now: which then has nothing to read.
func (p *loop) find(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.resumed)
	p.resumed, p.decided = p.decided, p.resumed[:0]
	for i, event := range p.events[:n] {
		p.ready[i] = nil
		if fd := int(event.Fd); fd < len(p.conns) {
			p.ready[i] = p.conns[fd]
		}
	}
}

// turn answers what has arrived on a connection, whose other side may have hung up.
func (p *loop) turn(c *conn, hungUp bool) {
	if !c.acquire() {
		c.rearm = true // for the loop itself; anybody else will have the connection watched again
		return
	}
	for range readsInARow {
		n, ready, err := receive(c.fd, p.worker.in)
		if !ready {
			c.state.Store(waiting)
			return
		}
		if !p.worker.take(c, n, err) {
			return
		}
		if n < len(p.worker.in) && !hungUp {
			c.state.Store(waiting) // the next byte will be an event
			return
		}
	}
	c.wait()
}

// suspend has r decided, which is the first of the requests that rest is, and goes on with them
// then.
func (p *loop) suspend(c *conn, r *Request, rest []byte) {
	c.rearm = false
	c.lane.busyElsewhere.Add(1)
	c.lane.cfg.Handler.Ask(r, func(decided any) { p.decide(c, decided) })
	c.pending = append(c.pending[:0], rest...) // r may lie there, and is of no more use
}

// decide is called by any goroutine.
func (p *loop) decide(c *conn, decided any) {
	p.mu.Lock()
	ended := p.ended
	p.decided = append(p.decided, decision{c, decided})
	if len(p.decided) == 1 && !ended {
		p.wake()
	}
	p.mu.Unlock()
	if ended {
		c.lane.busyElsewhere.Add(-1)
		c.close()
	}
}

// resume goes on with a pending connection.
func (p *loop) resume(c *conn, decided any) {
	c.lane.busyElsewhere.Add(-1)
	if !p.worker.recognise(c.pending) {
		c.handOff(bytes.Clone(c.pending), nil) // the handler has changed its mind
		return
	}
	p.worker.requests[0].Decided = decided
	if !p.worker.answer(c, c.pending) {
		return
	}
	c.state.Store(waiting)
	if c.rearm {
		p.turn(c, true)
	}
}

// adopt makes the loop that of a connection, if it is a socket. The connection is not watched
// yet.
func (p *loop) adopt(c *conn) {
	socket, ok := c.net.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	if err := raw.Control(func(fd uintptr) { c.fd = int(fd) }); err != nil {
		return
	}
	p.mu.Lock()
	for len(p.conns) <= c.fd {
		p.conns = append(p.conns, nil)
	}
	p.conns[c.fd] = c
	p.mu.Unlock()
	if err := p.control(unix.EPOLL_CTL_ADD, c.fd, unix.EPOLLET); err != nil {
		p.forget(c)
		return
	}
	c.loop = p
}

// watch has the loop told when there is something to read, also if there is already.
func (p *loop) watch(c *conn) {
	err := p.control(unix.EPOLL_CTL_MOD, c.fd, unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLET)
	if err != nil && c.acquire() {
		c.close()
	}
}

func (p *loop) forget(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c.fd] = nil
}

func (p *loop) control(operation, fd int, events uint32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return net.ErrClosed
	}
	if err := unix.EpollCtl(p.fd, operation, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("watch a connection: %w", err)
	}
	return nil
}

// wake makes an event. The caller holds the lock.
func (p *loop) wake() {
	one := [8]byte{1}
	_, _ = unix.Write(p.waker, one[:]) // it fails when there are 2^64 events, which are as good
}

// end makes run return.
func (p *loop) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.ended = true
		_ = p.epoll.Close()
		_ = unix.Close(p.waker)
	}
}
