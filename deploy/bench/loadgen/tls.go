//go:build linux

package loadgen

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clientConfig is for the same work on every server: the key exchange that all of them know.
var clientConfig = &tls.Config{
	InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519}, DynamicRecordSizingDisabled: true,
}

// wire is the socket below a tls.Conn: it waits in a handshake, and never after it.
type wire struct {
	net.Conn // nil: a client asks for nothing else

	fd    int
	waits bool
}

// Read implements [net.Conn]. After what it returns instead of waiting a tls.Conn goes on.
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

// Write implements [net.Conn]. Requests are so short that a socket that does not take one is a
// fault.
func (w *wire) Write(p []byte) (int, error) {
	n, err := send(w.fd, p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

// SetWriteDeadline implements [net.Conn].
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// handshake begins with TLS if the load is to speak it.
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

// RunShort sends each request over TLS on a connection of its own, and in a session of its own: no
// ticket of an earlier one is used. It is a closed loop; a latency begins before the connection. Each of
// the connections at a time is made at least once.
func RunShort(cfg Config) (Report, error) {
	var (
		group     sync.WaitGroup
		mu        sync.Mutex // guards what follows
		latencies []time.Duration
		failed    error
	)
	begun := time.Now()
	for range cfg.Connections {
		group.Go(func() {
			for sent := 0; sent == 0 || time.Since(begun) < cfg.Length; sent++ {
				at := time.Now()
				err := exchangeOnce(cfg.Server.String(), cfg.Requests[sent%len(cfg.Requests)])
				mu.Lock()
				latencies = append(latencies, time.Since(at))
				failed = errors.Join(failed, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	group.Wait()
	g := generator{latencies: latencies}
	return g.report(time.Since(begun)), failed
}

// exchangeOnce connects, and exchanges a request and its response.
func exchangeOnce(server string, request []byte) error {
	socket, err := net.Dial("tcp", server)
	if err != nil {
		return fmt.Errorf("load: connect: %w", err)
	}
	defer func() { _ = socket.Close() }()
	c := tls.Client(socket, clientConfig)
	if _, err := c.Write(request); err != nil {
		return fmt.Errorf("load: send: %w", err)
	}
	all, err := io.ReadAll(c)
	if err != nil {
		return fmt.Errorf("load: receive: %w", err)
	}
	var r response
	switch rest, complete, err := r.take(bytes.Clone(all)); {
	case err != nil:
		return err
	case !complete || len(rest) > 0:
		return fmt.Errorf("load: %d bytes, want one whole response", len(all))
	}
	return nil
}
