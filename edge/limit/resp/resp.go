// Package resp is a client of Redis for the path of a request: it runs commands and scripts,
// and sends those of many goroutines together over one connection (RESP2, pipelined).
//
// It knows no more of Redis than counting needs. A general client library does, and weighs a
// third of the whole program.
package resp

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options says where a Redis is and who asks.
type Options struct {
	Address        string // host:port
	User, Password string // empty: no AUTH
	Database       string // empty: 0
	TLS            *tls.Config
}

// ParseURL reads redis://user:password@host:port/database, or rediss:// for TLS. Its errors do
// not show the password.
func ParseURL(text string) (Options, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "redis" && u.Scheme != "rediss" {
		return Options{}, errors.New("want a URL such as redis://host:6379")
	}
	port := u.Port()
	if port == "" {
		port = "6379"
	}
	o := Options{Address: net.JoinHostPort(u.Hostname(), port), Database: strings.Trim(u.Path, "/")}
	if u.User != nil {
		o.User = u.User.Username()
		o.Password, _ = u.User.Password()
	}
	if o.Database != "" {
		if n, err := strconv.Atoi(o.Database); err != nil || n < 0 {
			return Options{}, fmt.Errorf("database %q: want a number", o.Database)
		}
	}
	if u.Scheme == "rediss" {
		o.TLS = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	}
	return o, nil
}

// ErrClosed says that the connection is gone: Dial again.
var ErrClosed = errors.New("connection to Redis is closed")

// Client is one connection. It is safe for concurrent use.
type Client struct {
	conn    net.Conn
	writers atomic.Int32 // that hold or wait for mu: the last of them flushes
	reader  sync.WaitGroup

	mu      sync.Mutex // guards what follows
	w       *bufio.Writer
	begin   Words           // of the command that is being sent
	waiting []chan<- answer // in the order of their commands
	broken  error
}

type answer struct {
	value any // int64, string, nil, []any or Error
	err   error
}

// writeWithin bounds how long commands may take to leave.
const writeWithin = time.Second

// Dial connects, and presents user and database if there are any.
func Dial(ctx context.Context, o Options) (*Client, error) {
	var conn net.Conn
	var err error
	if o.TLS != nil {
		conn, err = (&tls.Dialer{Config: o.TLS}).DialContext(ctx, "tcp", o.Address)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", o.Address)
	}
	if err != nil {
		return nil, fmt.Errorf("reach Redis: %w", err)
	}
	c := newClient(conn)
	if err := c.present(ctx, o); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func newClient(conn net.Conn) *Client {
	c := &Client{conn: conn, w: bufio.NewWriter(conn)}
	c.reader.Go(c.read)
	return c
}

// present signs in and chooses the database.
func (c *Client) present(ctx context.Context, o Options) error {
	if o.Password != "" {
		auth := []string{"AUTH", o.Password}
		if o.User != "" {
			auth = []string{"AUTH", o.User, o.Password}
		}
		if _, err := c.Do(ctx, auth...); err != nil {
			return err
		}
	}
	if o.Database != "" {
		if _, err := c.Do(ctx, "SELECT", o.Database); err != nil {
			return err
		}
	}
	return nil
}

// Err returns why the connection is of no more use, or nil.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// Close ends the connection; whoever waits gets ErrClosed.
func (c *Client) Close() {
	c.fail(ErrClosed)
	c.reader.Wait()
}

// Do runs a command and returns its reply: int64, string, nil, or a slice of those. An error
// of Redis is an Error. If ctx ends first, the command may or may not have run; the connection
// goes on.
func (c *Client) Do(ctx context.Context, command ...string) (any, error) {
	return c.do(ctx, &Words{}, command...)
}

// do runs a command that begins with these words and goes on with those of the tail.
func (c *Client) do(ctx context.Context, tail *Words, begin ...string) (any, error) {
	done := make(chan answer, 1)
	if err := c.send(done, begin, tail); err != nil {
		return nil, err
	}
	select {
	case a := <-done:
		if refused, ok := a.value.(Error); ok {
			return nil, refused
		}
		return a.value, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (c *Client) send(done chan<- answer, begin []string, tail *Words) error {
	c.writers.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.writers.Add(-1) == 0
	if c.broken != nil {
		return c.broken
	}
	c.waiting = append(c.waiting, done)
	err := c.conn.SetWriteDeadline(time.Now().Add(writeWithin))
	if err == nil {
		c.begin.Reset()
		for _, word := range begin {
			c.begin.Add(word)
		}
		_, _ = c.w.Write(appendHead(c.w.AvailableBuffer(), '*', c.begin.n+tail.n)) // a bufio.Writer keeps its error
		_, _ = c.w.Write(c.begin.wire)
		_, err = c.w.Write(tail.wire)
	}
	if err == nil && last {
		err = c.w.Flush()
	}
	if err != nil {
		c.breakOff(fmt.Errorf("send to Redis: %w", err))
		return c.broken
	}
	return nil
}

// read hands each reply to whoever waits for it, until the connection ends.
func (c *Client) read() {
	r := bufio.NewReader(c.conn)
	for {
		value, err := readReply(r, 0)
		if err != nil {
			c.fail(fmt.Errorf("read from Redis: %w", err))
			return
		}
		c.mu.Lock()
		if len(c.waiting) == 0 {
			c.breakOff(errors.New("read from Redis: a reply that nobody asked for"))
			c.mu.Unlock()
			return
		}
		done := c.waiting[0]
		c.waiting = c.waiting[1:]
		c.mu.Unlock()
		done <- answer{value: value}
	}
}

func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breakOff(err)
}

// breakOff ends the connection for everybody. The caller holds mu. The first reason stays.
func (c *Client) breakOff(err error) {
	if c.broken != nil {
		return
	}
	c.broken = err
	_ = c.conn.Close() // the reader sees it
	for _, done := range c.waiting {
		done <- answer{err: err}
	}
	c.waiting = nil
}
