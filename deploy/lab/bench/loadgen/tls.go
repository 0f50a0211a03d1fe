//go:build linux

package loadgen

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clientConfig gives every server the same work: a key exchange that all of them know.
var clientConfig = &tls.Config{
	InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519}, DynamicRecordSizingDisabled: true,
}

// wire is the socket below a tls.Conn. It blocks during a handshake and never afterwards.
type wire struct {
	net.Conn // nil: a client uses no other method

	fd    int
	waits bool
}

// Read implements [net.Conn]. Instead of blocking it returns an error after which a tls.Conn can be read again.
func (w *wire) Read(p []byte) (int, error) {
	for {
		n, err := receive(w.fd, p)
		switch {
		case errors.Is(err, unix.EAGAIN) && w.waits:
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}, -1); err != nil && !errors.Is(err, unix.EINTR) {
				return 0, fmt.Errorf("poll: %w", err)
			}
			continue
		case errors.Is(err, unix.EAGAIN):
			return 0, os.ErrDeadlineExceeded
		case err == nil && n == 0:
			return 0, io.EOF
		}
		return n, err
	}
}

// Write implements [net.Conn]. A request is short, so a partial write is a fault.
func (w *wire) Write(p []byte) (int, error) {
	n, err := send(w.fd, p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

// SetWriteDeadline implements [net.Conn].
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// handshake shakes hands if the load uses TLS.
func (c *conn) handshake(cfg Config) error {
	if !cfg.TLS {
		return nil
	}
	w := &wire{fd: c.fd, waits: true}
	c.tls = tls.Client(w, clientConfig)
	err := c.tls.Handshake()
	w.waits = false
	return err
}

func (c *conn) receive(p []byte) (int, error) {
	if c.tls != nil {
		return c.tls.Read(p)
	}
	return receive(c.fd, p)
}

func (c *conn) send(p []byte) (int, error) {
	if c.tls != nil {
		return c.tls.Write(p)
	}
	return send(c.fd, p)
}

// RunShort sends each request on a new connection, over Connections workers. With tickets each worker resumes its
// previous TLS session. A latency includes the connection and its handshake.
func RunShort(cfg Config, tickets bool) (Report, error) {
	if err := cfg.validate(); err != nil {
		return Report{}, err
	}
	var (
		group     sync.WaitGroup
		mu        sync.Mutex // guards the fields below
		next      int
		collected = collector{length: cfg.length()}
		failed    error
	)
	started := time.Now()
	take := func(first bool) (r request, more bool) {
		mu.Lock()
		defer mu.Unlock()
		r.number = next
		r.due, more = cfg.due(next, time.Since(started))
		next++
		return r, more || first && cfg.Steps[0].PerSecond == 0
	}
	worker := func() {
		var config *tls.Config
		if cfg.TLS {
			config = clientConfig.Clone()
			if tickets {
				config.ServerName, config.ClientSessionCache = "bench", tls.NewLRUClientSessionCache(1)
			}
		}
		for first := true; ; first = false {
			r, more := take(first)
			if !more {
				return
			}
			pause(r.due - time.Since(started))
			err := exchangeOnce(cfg, r, config)
			mu.Lock()
			collected.answer(r, http.StatusOK, time.Since(started))
			failed = errors.Join(failed, err)
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}
	return measured(cfg.Used, func() (Report, error) {
		for range cfg.Connections {
			group.Go(worker)
		}
		group.Wait()
		return collected.report(time.Since(started)), failed
	})
}

// pause sleeps more exactly than [time.Sleep], which may wake up a millisecond too late.
func pause(d time.Duration) {
	if d > 0 {
		rest := unix.NsecToTimespec(d.Nanoseconds())
		_ = unix.Nanosleep(&rest, nil) // a signal makes the request early by a part of one interval
	}
}

// exchangeOnce connects, sends the request and reads the response. The request must end the connection.
func exchangeOnce(cfg Config, r request, config *tls.Config) error {
	c, err := net.Dial("tcp", cfg.Servers[r.number%len(cfg.Servers)].String())
	if err != nil {
		return fmt.Errorf("load: connect: %w", err)
	}
	defer func() { _ = c.Close() }()
	if config != nil {
		c = tls.Client(c, config)
	}
	if _, err := c.Write(cfg.Requests[r.number%len(cfg.Requests)]); err != nil {
		return fmt.Errorf("load: send: %w", err)
	}
	whole, err := io.ReadAll(c)
	if err != nil {
		return fmt.Errorf("load: receive: %w", err)
	}
	var answer response
	switch rest, complete, err := answer.parse(bytes.Clone(whole)); {
	case err != nil:
		return err
	case !complete || len(rest) > 0:
		return fmt.Errorf("load: %d bytes, want one whole response", len(whole))
	}
	return nil
}
