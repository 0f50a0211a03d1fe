package redislimit

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"gridcast/snapshots/blob"
)

// client asks Redis, over one connection for each server. It connects when it is asked, and again after the
// end of a connection. A cluster is recognised by its answers: the server that lacks a key names the right one.
type client struct {
	servers
	patience time.Duration   // with an answer
	ctx      context.Context // ends with close
	stop     context.CancelFunc
	running  sync.WaitGroup // a goroutine for each connection

	mu    sync.Mutex // guards what follows
	conns map[string]*conn
	slots map[string]string // address of the server that has a slot of the cluster, as far as known
	homes int               // connections to home so far
}

// home is the address of any server that answers or, with sentinels, of the master.
const home = ""

// reconnect is the pause before a server is dialled again, after an attempt without an answer.
var reconnect = blob.Backoff{First: 50 * time.Millisecond, Longest: beatInterval}

// maxHops is how often a question may be sent on to another server of a cluster.
const maxHops = 3

func newClient(s servers, patience time.Duration) *client {
	c := &client{servers: s, patience: patience, conns: map[string]*conn{}, slots: map[string]string{}}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// close ends all connections. The client must not be asked during the call or later.
func (c *client) close() {
	c.stop()
	c.mu.Lock()
	for _, conn := range c.conns {
		conn.fail(net.ErrClosed)
	}
	c.mu.Unlock()
	c.running.Wait()
}

// do sends a command about key, and returns the answer. If Redis refuses it, the error is a refusal.
func (c *client) do(ctx context.Context, key string, words []string, numbers ...int64) ([]value, error) {
	conn, asking := c.holder(key), false
	for hops := 0; ; hops++ {
		reply, err := conn.do(ctx, asking, words, numbers)
		refused, ok := errors.AsType[refusal](err)
		if !ok {
			return reply, err
		}
		kind, where, _ := strings.Cut(string(refused), " ")
		_, address, ok := strings.Cut(where, " ")
		switch {
		case kind == "READONLY": // a failover made the server a replica
			conn.fail(err)
			return nil, err
		case kind != "MOVED" && kind != "ASK" || !ok || hops == maxHops:
			return nil, err
		}
		if strings.HasPrefix(address, ":") { // another port of the same host
			host, _, _ := net.SplitHostPort(conn.server)
			address = net.JoinHostPort(host, address[1:])
		}
		c.mu.Lock()
		if asking = kind == "ASK"; !asking { // ASK is for this question alone
			c.slots[slot(key)] = address
		}
		conn = c.to(address)
		c.mu.Unlock()
	}
}

// holder returns the connection to the server that should have a key.
func (c *client) holder(key string) *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.slots) == 0 {
		return c.to(home)
	}
	n := slot(key)
	if conn := c.conns[c.slots[n]]; conn != nil && !conn.failed() {
		return conn
	}
	delete(c.slots, n) // another server may have taken over
	return c.to(home)
}

// to returns the connection to a server, and makes it if necessary. The caller holds mu.
func (c *client) to(address string) *conn {
	last := c.conns[address]
	if last != nil && (!last.failed() || time.Now().Before(last.retry)) {
		return last
	}
	next := &conn{patience: c.patience, wake: make(chan struct{}, 1), gone: make(chan struct{})}
	if last != nil {
		next.failures = last.failures
	}
	addresses := []string{address}
	if address == home {
		n := c.homes % len(c.addresses) // after a failure the next one is asked first
		addresses = append(append(addresses[:0], c.addresses[n:]...), c.addresses[:n]...)
		c.homes++
	}
	maps.DeleteFunc(c.conns, func(_ string, old *conn) bool { return old.failed() && time.Since(old.retry) > time.Minute })
	c.conns[address] = next
	c.running.Go(func() {
		w, err := c.reach(c.ctx, addresses)
		if err != nil {
			next.fail(err)
			return
		}
		next.run(w)
	})
	return next
}

// conn is a connection to a server, which concurrent callers share. Their commands travel together, and the
// answers come in the same order. Commands wait until the connection is made.
type conn struct {
	patience time.Duration // with an answer
	wake     chan struct{} // there is something to send
	gone     chan struct{} // closed by fail
	server   string        // its address; to be read after an answer

	mu    sync.Mutex // guards what follows
	wire  net.Conn   // nil until the connection is made
	out   []byte
	asked []*question // without an answer, the oldest first
	err   error
	// To be read when gone is closed: the attempts to connect since the last success, and the time before which
	// there is no new one.
	failures int
	retry    time.Time
}

// question is a command of a caller.
type question struct {
	at     time.Time
	asking bool // the answer to ASKING is still to come
	reply  []value
	err    error
	done   chan struct{}
}

// do sends a command, after ASKING if asking is true, and returns the answer.
func (c *conn) do(ctx context.Context, asking bool, words []string, numbers []int64) ([]value, error) {
	q := &question{at: time.Now(), asking: asking, done: make(chan struct{})}
	c.mu.Lock()
	err := c.err
	silent := len(c.asked) > 0 && q.at.Sub(c.asked[0].at) > silentCalls*c.patience
	if err == nil {
		if asking {
			c.out = encode(c.out, []string{"ASKING"})
		}
		c.out, c.asked = encode(c.out, words, numbers...), append(c.asked, q)
	}
	c.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case silent:
		c.fail(fmt.Errorf("the server did not answer for %v", silentCalls*c.patience))
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
	select {
	case <-q.done:
		return q.reply, q.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run sends commands and reads answers until the connection fails.
func (c *conn) run(w *wire) {
	defer func() { _ = w.Close() }()
	c.mu.Lock()
	c.wire, c.server, c.failures = w.Conn, w.server, 0
	c.mu.Unlock()
	var writer sync.WaitGroup
	writer.Go(func() { c.send(w) })
	defer writer.Wait()
	for !c.failed() {
		reply, err := read(w.Reader)
		if _, refused := errors.AsType[refusal](err); err != nil && !refused {
			c.fail(err)
			return
		}
		c.mu.Lock()
		if len(c.asked) == 0 { // to nothing, or after fail
			c.mu.Unlock()
			c.fail(errReply)
			return
		}
		q := c.asked[0]
		if q.asking {
			q.asking = false
		} else {
			c.asked = c.asked[1:]
			q.reply, q.err = reply, err
			close(q.done)
		}
		c.mu.Unlock()
	}
}

// send writes the commands that came since its last write.
func (c *conn) send(w *wire) {
	var out []byte
	for {
		select {
		case <-c.wake:
		case <-c.gone:
			return
		}
		c.mu.Lock()
		out, c.out = c.out, out[:0]
		c.mu.Unlock()
		if _, err := w.Write(out); err != nil {
			c.fail(err)
			return
		}
	}
}

// fail ends the connection and all questions that wait. The first call decides the error.
func (c *conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	if c.wire != nil {
		_ = c.wire.Close()
	} else {
		c.failures++
		c.retry = time.Now().Add(reconnect.Jittered(c.failures))
	}
	for _, q := range c.asked {
		q.err = err
		close(q.done)
	}
	c.asked, c.out = nil, nil
	close(c.gone)
}

// failed reports whether the connection has ended.
func (c *conn) failed() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// servers holds the addresses of Redis and the way to sign in.
type servers struct {
	addresses      []string // of servers of which one is enough, or of sentinels
	masterSet      string   // the master that sentinels know; empty: there are none
	user, password string
	db             int
	tls            *tls.Config // nil: without
}

// parse reads the URL of a configuration. Its errors do not show the password.
func parse(text string, roots *x509.CertPool) (servers, error) {
	want := errors.New("limits in Redis: want a URL such as redis://host:6379")
	u, err := url.Parse(text)
	if err != nil {
		return servers{}, want
	}
	q := u.Query()
	s := servers{masterSet: q.Get("master_set"), user: u.User.Username()}
	s.password, _ = u.User.Password()
	for _, host := range append([]string{u.Host}, q["addr"]...) {
		address := url.URL{Host: host}
		s.addresses = append(s.addresses, net.JoinHostPort(cmp.Or(address.Hostname(), "localhost"), cmp.Or(address.Port(), "6379")))
	}
	switch u.Scheme {
	case "redis", "valkey":
	case "rediss", "valkeys":
		s.tls = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: cmp.Or(u.Hostname(), "localhost")}
	default:
		return servers{}, want
	}
	if s.db, err = strconv.Atoi(cmp.Or(q.Get("db"), strings.Trim(u.Path, "/"), "0")); err != nil {
		return servers{}, want
	}
	return s, nil
}

// wire is a connection on which the edge has signed in.
type wire struct {
	net.Conn
	*bufio.Reader
	server string // its address
}

// reach connects to the first server that answers or, with sentinels, to their master.
func (s *servers) reach(ctx context.Context, addresses []string) (*wire, error) {
	var sign [][]string
	switch {
	case s.password != "" && s.user != "":
		sign = [][]string{{"AUTH", s.user, s.password}}
	case s.password != "":
		sign = [][]string{{"AUTH", s.password}}
	}
	var faults []error
	for _, address := range addresses {
		if s.masterSet != "" {
			w, master, err := s.dial(ctx, address, append(sign, []string{"SENTINEL", "get-master-addr-by-name", s.masterSet}))
			if err == nil {
				_ = w.Close()
				if len(master) != 2 {
					err = errors.New("the sentinel does not know this master")
				}
			}
			if err != nil {
				faults = append(faults, err)
				continue
			}
			address = net.JoinHostPort(master[0].text, master[1].text)
		}
		commands := sign
		if s.db != 0 {
			commands = append(commands, []string{"SELECT", strconv.Itoa(s.db)})
		}
		w, _, err := s.dial(ctx, address, commands)
		if err == nil {
			return w, nil
		}
		faults = append(faults, err)
	}
	return nil, errors.Join(faults...)
}

// dial connects to a server, and returns its answer to the last of the commands.
func (s *servers) dial(ctx context.Context, address string, commands [][]string) (_ *wire, last []value, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var dialer interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	} = &net.Dialer{}
	if s.tls != nil {
		dialer = &tls.Dialer{Config: s.tls}
	}
	wired, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, nil, err
	}
	w := &wire{Conn: wired, Reader: bufio.NewReaderSize(wired, maxReply), server: address}
	deadline, _ := ctx.Deadline()
	err = w.SetDeadline(deadline)
	for _, command := range commands {
		if err == nil {
			_, err = w.Write(encode(nil, command))
		}
		if err == nil {
			last, err = read(w.Reader)
		}
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s %s: %w", command[0], address, err), w.Close())
		}
	}
	return w, last, w.SetDeadline(time.Time{})
}
