package express

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loop waits for many connections at once, by epoll, and answers on each as it becomes ready.
//
// The poller of the Go runtime in turn watches the loop's epoll instance, so that a loop without
// work blocks no thread. Both know the sockets: the runtime's poller serves the connections that
// are handed off or slow to accept a response.
type loop struct {
	worker *worker
	epoll  *os.File
	poll   syscall.RawConn
	waker  int // an eventfd in the epoll instance

	accepts  accepting    // the loop's own
	accepted []*conn      // accepted and not yet read from; the loop's own
	hellos   hellos       // the loop's own
	yielded  time.Time    // the last turn of other goroutines; the loop's own
	turns    int          // connections served since then; the loop's own
	idle     []*handshake // finished, for reuse; the loop's own

	mu      sync.Mutex // guards what follows
	conns   []*conn    // by file descriptor
	free    []*conn    // for reuse
	decided []decision // of pending connections
	readers []*conn    // to be read even without an event
	order   order      // the latest order, until it is obeyed
	fd      int        // of the epoll instance
	ended   bool       // both descriptors are closed

	events  []unix.EpollEvent
	ready   []*conn    // of events; nil: the connection is closed
	resumed []decision // taken from decided
	reading []*conn    // taken from readers
}

// accepting is the state of a loop's watch for connections to accept.
type accepting byte

const (
	accepts accepting = iota
	paused            // for lack of a resource
	done              // for ever
)

// decision is the decision about a pending request.
type decision struct {
	conn    *conn
	decided any
}

const (
	// eventsAtOnce is the number of ready connections in one read of the kernel.
	eventsAtOnce = 128
	// turnsInARow is the number of connections, and shortWaitsInARow the number of short waits,
	// before other goroutines have a turn while some of them work for the lane.
	turnsInARow      = 256
	turnsOfHandshake = 16 // a handshake takes the time of so many turns
	shortWaitsInARow = 32
	// yieldEvery is the interval of their turns otherwise. Each turn costs as much as some requests.
	yieldEvery = 5 * time.Millisecond
	// acceptsInARow is the number of accepted connections before existing ones have their turn.
	acceptsInARow = 16
	// readsInARow is the number of reads from a connection that fills the buffer, before the
	// others have their turn.
	readsInARow = 8
)

// startLoops starts a loop for each processor, all of which accept from one socket. They share it,
// so that no connection waits behind a busy loop, and nobody
// can listen on the same address unnoticed.
func (l *Lane) startLoops(socket syscall.Conn) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return fmt.Errorf("look at the listener: %w", err)
	}
	if controlErr := raw.Control(func(fd uintptr) {
		// The lane's own descriptor lives as long as loops accept.
		l.socket, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
		if _, tcp := l.inner.Addr().(*net.TCPAddr); tcp && err == nil {
			err = inherit(l.socket)
		}
	}); controlErr != nil {
		err = controlErr
	}
	if err != nil {
		return fmt.Errorf("prepare the listener: %w", err)
	}
	for range runtime.GOMAXPROCS(0) {
		p, err := newLoop(l)
		if err != nil {
			l.endLoops()
			_ = unix.Close(l.socket)
			l.loops = nil
			return err
		}
		l.loops = append(l.loops, p)
	}
	l.acceptors.Add(len(l.loops))
	for _, p := range l.loops {
		go p.run()
	}
	go func() {
		l.acceptors.Wait()
		// An early close leaves fewer connections that nobody accepts.
		_ = unix.Close(l.socket)
		_ = l.inner.Close() // it may be closed already
		close(l.acceptDone)
	}()
	return nil
}

// newLoop returns a loop that has no connections yet.
func newLoop(l *Lane) (*loop, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create an epoll instance: %w", err)
	}
	// The runtime watches only non-blocking descriptors.
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
	if err := p.listen(); err != nil {
		p.end()
		return nil, err
	}
	return p, nil
}

// listen watches the listener. Of several waiting loops the kernel wakes one.
func (p *loop) listen() error {
	return p.control(unix.EPOLL_CTL_ADD, p.worker.lane.socket, unix.EPOLLIN|unix.EPOLLEXCLUSIVE)
}

// pause ends the watch. The loop continues on an order.
func (p *loop) pause() {
	_ = p.control(unix.EPOLL_CTL_DEL, p.worker.lane.socket, 0) // fails if the loop has ended
	p.accepts = paused
}

func (p *loop) tell(o order) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.order < o && !p.ended {
		p.order = o
		p.wake()
	}
}

func (p *loop) obey(o order) {
	switch {
	case p.accepts == done:
	case o == acceptOn && p.accepts == paused:
		if p.listen() == nil {
			p.accepts = accepts
		}
	case o == acceptOff:
		if p.accepts == accepts {
			for p.accept() { // all waiting connections
			}
		}
		p.pause()
		p.accepts = done
		p.worker.lane.acceptors.Done()
	}
}

// accept accepts connections from the listener and serves their first requests. It reports
// whether there may be more. It accepts several before it reads from the first: meanwhile more of
// them have sent a request, and need no watch. With TLS the loop reads from none of them yet, because a
// ClientHello may be there: see turn.
func (p *loop) accept() (more bool) {
	l := p.worker.lane
	more = true
	for range acceptsInARow {
		if !l.reserve() {
			p.pause()
			more = false
			break
		}
		fd, peer, err := acceptSocket(l.socket)
		if err == nil {
			p.accepted = append(p.accepted, p.admit(fd, peer))
			continue
		}
		l.release()
		if errors.Is(err, unix.ECONNABORTED) || errors.Is(err, unix.EINTR) {
			continue
		}
		more = false
		if !errors.Is(err, unix.EAGAIN) { // otherwise another loop was faster
			p.pause()
			l.full.Store(true) // so that the lane tries again
			if l.cfg.NotAccepted != nil && !l.draining.Load() {
				l.cfg.NotAccepted(err)
			}
		}
		break
	}
	for _, c := range p.accepted {
		p.first(c)
	}
	clear(p.accepted)
	p.accepted = p.accepted[:0]
	return more
}

// admit starts a connection, whose owner is the loop.
func (p *loop) admit(fd int, peer netip.Addr) *conn {
	w := p.worker
	var c *conn
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		c, p.free = p.free[n-1], p.free[:n-1]
	} else {
		c = &conn{lane: w.lane, loop: p}
	}
	p.put(c, fd)
	p.mu.Unlock()
	c.peer, c.started, c.watched, c.last = peer, false, false, false
	c.due.Store(0)
	c.state.Store(busy)
	c.extend(w.now, w.lane.cfg.ReadTimeout)
	w.lane.conns.Add(1)
	return c
}

// first serves the first data of a connection.
func (p *loop) first(c *conn) {
	if c.lane.cfg.TLS != nil {
		p.postpone(c)
		return
	}
	n, ready, err := receive(c.fd, p.worker.in)
	if !ready || p.worker.take(c, n, err) {
		c.wait()
	}
}

// idleHandshakes is the number of coroutines that a loop keeps for new handshakes.
const idleHandshakes = 64

// coroutine returns an idle or a new handshake.
func (p *loop) coroutine() *handshake {
	n := len(p.idle)
	if n == 0 {
		return newHandshake()
	}
	h := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	return h
}

// put makes c the connection of a descriptor. The caller holds the lock.
func (p *loop) put(c *conn, fd int) {
	for len(p.conns) <= fd {
		p.conns = append(p.conns, nil)
	}
	p.conns[fd], c.fd = c, fd
}

// acquire appends the waiting connections that are due, and makes the caller their owner.
func (p *loop) acquire(conns []*conn, to func(*conn) bool) []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		if c != nil && to(c) && c.acquire() {
			conns = append(conns, c)
		}
	}
	return conns
}

// run serves until end.
func (p *loop) run() {
	var n, shortWaits int
	wait := func(fd uintptr) bool {
		othersWork := p.worker.lane.busyElsewhere.Load() > 0
		if othersWork && (p.turns >= turnsInARow || shortWaits >= shortWaitsInARow) || p.worker.now.Sub(p.yielded) > yieldEvery {
			// The Go scheduler looks for other connections only when no goroutine can run, so
			// this goroutine waits for an event that it makes itself.
			p.turns, shortWaits, p.yielded = 0, 0, p.worker.now
			p.yield()
			return false
		}
		if n = p.take(int(fd)); n > 0 || len(p.hellos.waiting) > 0 {
			return true
		}
		shortWaits = 0
		return false
	}
	defer p.retire()
	for p.poll.Read(wait) == nil {
		p.turns += n
		shortWaits++
		p.worker.now = time.Now()
		o := p.find(n)
		p.obey(o)
		for _, d := range p.resumed {
			p.resume(d.conn, d.decided)
		}
		for _, c := range p.reading {
			p.serve(c, true)
		}
		more := false
		for i, c := range p.ready[:n] {
			switch {
			case c != nil:
				p.turn(c, p.events[i].Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0)
			case int(p.events[i].Fd) == p.worker.lane.socket:
				more = true
			}
		}
		if more && p.accepts == accepts {
			p.accept()
		}
		p.greet()
	}
}

// retire records that the loop accepts no more, and ends its kept and postponed connections.
func (p *loop) retire() {
	if p.accepts != done {
		p.accepts = done
		p.worker.lane.acceptors.Done()
	}
	for _, c := range p.hellos.waiting {
		c.close()
	}
	for _, h := range p.idle {
		h.stop()
	}
}

// shortWait is the time, in milliseconds, that an idle loop sleeps in the kernel before it leaves its
// wake-up to the Go scheduler. Under load the next request comes sooner, and costs less: a sleep and
// wake-up by the scheduler costs about as much as a request, and more for the runtime's own watch. For so
// long the loop also keeps a processor from goroutines that do not work for the lane. The garbage
// collector does not wait, because the signal with which the runtime stops a goroutine ends the sleep.
// shortWait is longer than a tick of the kernel: for a shorter one the processor would set and reset a
// timer at each sleep, which costs a virtual machine half as much as sleep and wake-up.
const shortWait = 5

// take reads events from the kernel and returns their number, 0 if it was interrupted. While other
// goroutines work on connections of the lane it does not wait, because they need the processor.
func (p *loop) take(fd int) int {
	wait := shortWait
	if p.worker.lane.busyElsewhere.Load() > 0 || len(p.hellos.waiting) > 0 {
		wait = 0
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(fd), uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(wait), 0, 0) //nolint:gosec // it outlives the call
	if errno != 0 {
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

// find collects the decisions, and looks up the connections of the first n events.
// The connection of an event may be closed meanwhile, or its descriptor may belong to another one by
// now, which then has nothing to read.
func (p *loop) find(n int) order {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.resumed)
	p.resumed, p.decided = p.decided, p.resumed[:0]
	clear(p.reading)
	p.reading, p.readers = p.readers, p.reading[:0]
	for i, event := range p.events[:n] {
		p.ready[i] = nil
		if fd := int(event.Fd); fd < len(p.conns) {
			p.ready[i] = p.conns[fd]
		}
	}
	o := p.order
	p.order = 0
	return o
}

// turn answers the data on a connection, whose other side may have hung up. The answer to a
// ClientHello takes as long as many requests, so it comes after them.
func (p *loop) turn(c *conn, hungUp bool) {
	switch {
	case !c.acquire():
		c.rearm = true // for the loop itself; any other owner watches the connection again
	case c.shaking != nil && !c.transport.answered:
		p.postpone(c)
	default:
		p.serve(c, hungUp)
	}
}

// postpone lets a connection wait for the answer to its ClientHello. It closes the connection if too many of
// its address wait.
func (p *loop) postpone(c *conn) {
	if !p.hellos.add(c) {
		c.close()
	}
}

// greet continues the next handshake, if one waits.
func (p *loop) greet() {
	c := p.hellos.next()
	if c == nil {
		return
	}
	if c.tls == nil {
		c.handshake(p.coroutine())
	}
	p.serve(c, true)
}

// serve is turn for the owner of the connection.
func (p *loop) serve(c *conn, hungUp bool) {
	if c.tls != nil {
		p.serveTLS(c, hungUp)
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
			c.state.Store(waiting) // the next byte causes an event
			return
		}
	}
	c.wait()
}

// serveTLS is serve for a connection with TLS. It reads to the end, because the
// tls.Conn may hold data that no event reports.
func (p *loop) serveTLS(c *conn, hungUp bool) {
	if !c.watched {
		c.watched = true
		if p.control(unix.EPOLL_CTL_ADD, c.fd, unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLET) != nil {
			c.close()
			return
		}
	}
	c.transport.waits, c.transport.drained, c.transport.toEnd = false, false, hungUp
	if h := c.shaking; h != nil {
		p.turns += turnsOfHandshake
		switch ended, _ := h.next(); {
		case !ended:
			c.state.Store(waiting)
			return
		case h.err != nil:
			c.close()
			return
		}
		c.shaking, h.conn = nil, nil
		if len(p.idle) < idleHandshakes {
			p.idle = append(p.idle, h)
		} else {
			h.stop()
		}
		c.extend(p.worker.now, c.lane.cfg.ReadTimeout)
	}
	for range readsInARow {
		n, err := c.tls.Read(p.worker.in)
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			c.state.Store(waiting)
			return
		}
		if !p.worker.take(c, n, err) {
			return
		}
	}
	c.wait()
}

// read makes the loop read from a connection without an event. The caller is the connection's
// owner.
func (p *loop) read(c *conn) {
	p.mu.Lock()
	ended := p.ended
	if !ended {
		p.readers = append(p.readers, c)
		p.wake()
	}
	p.mu.Unlock()
	if ended {
		c.close()
	}
}

// suspend asks for a decision about r, the first of the requests in rest, and continues with them
// afterwards.
func (p *loop) suspend(c *conn, r *Request, rest []byte) {
	c.rearm = false
	c.lane.busyElsewhere.Add(1)
	c.lane.cfg.Handler.Ask(r, func(decided any) { p.decide(c, decided) })
	c.pending = append(c.pending[:0], rest...) // r may point there, and is no longer needed
}

// decide may be called by any goroutine.
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

// resume continues with a pending connection.
func (p *loop) resume(c *conn, decided any) {
	c.lane.busyElsewhere.Add(-1)
	if !p.worker.recognise(c.pending) {
		c.handOff(bytes.Clone(c.pending), nil) // the handler no longer knows the target
		return
	}
	p.worker.requests[0].Decided = decided
	switch {
	case !p.worker.answer(c, c.pending):
	case !c.watched || c.tls != nil: // it was the first request, or there may be more
		c.wait()
	default:
		c.state.Store(waiting)
		if c.rearm {
			p.turn(c, true)
		}
	}
}

// adopt enters a connection that has become a net.Conn into the loop's table, under its new descriptor.
func (p *loop) adopt(c *conn) error {
	socket, ok := c.net.(syscall.Conn)
	if !ok {
		return errors.New("adopt a connection: it is no socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return fmt.Errorf("adopt a connection: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := raw.Control(func(fd uintptr) { p.put(c, int(fd)) }); err != nil {
		return fmt.Errorf("adopt a connection: %w", err)
	}
	return nil
}

// watch lets the connection wait: the kernel reports data, also data that are already there.
func (p *loop) watch(c *conn) {
	operation, fd := unix.EPOLL_CTL_ADD, c.fd
	if c.watched {
		operation = unix.EPOLL_CTL_MOD
	}
	c.watched = true
	c.state.Store(waiting) // before the event that another goroutine must not miss
	if p.control(operation, fd, unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLET) != nil && c.acquire() {
		c.close()
	}
}

// forget removes c from the loop's table. The loop reuses c after close if no other goroutine
// ever held it.
func (p *loop) forget(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.fd >= 0 {
		p.conns[c.fd] = nil
	}
	switch {
	case c.state.Load() != closed:
		if c.watched && !p.ended { // its descriptor is not the last one of the connection
			_ = unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, c.fd, nil)
		}
		c.watched = false
	case !c.shared && len(p.free) < freeConnections:
		p.free = append(p.free, c)
	}
}

// freeConnections is the number of closed connections that a loop keeps for reuse.
const freeConnections = 256

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
	_, _ = unix.Write(p.waker, one[:]) // fails at 2^64 events, which wake the loop as well
}

// end makes run return.
func (p *loop) end() {
	p.mu.Lock()
	ended := p.ended
	if !ended {
		p.ended = true // from now on only run uses the descriptors
		_ = unix.Close(p.waker)
	}
	p.mu.Unlock()
	if !ended {
		_ = p.epoll.Close() // waits until run no longer uses it; run may need the lock for that
	}
}
