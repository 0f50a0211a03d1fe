//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"gridcast/snapshots"
)

// weights says how many bytes whole responses of gridcast are, with their headers. What is
// made per request, or has no body, is fairly held against a static response of its weight.
type weights struct {
	static      map[*snapshots.Body]int
	nextRace    int
	notModified int
}

// nearest returns the variant whose response weighs nearest to so much.
func (w *weights) nearest(weight int) *snapshots.Body {
	var best *snapshots.Body
	for body, n := range w.static {
		closer := best == nil || distance(n, weight) < distance(w.static[best], weight)
		if closer || distance(n, weight) == distance(w.static[best], weight) && body.Entry.Path < best.Entry.Path {
			best = body
		}
	}
	return best
}

// String says what is compared with what.
func (w *weights) String() string {
	like := func(name string, weight int) string {
		body := w.nearest(weight)
		return fmt.Sprintf("A response of %s is %d bytes, that of %s, which it is held against, %d.\n", name, weight, target(body), w.static[body])
	}
	return like(nextRaceCase, w.nextRace) + like(notModifiedCase, w.notModified)
}

// weigh asks gridcast for everything there is.
func (f *fixture) weigh(ctx context.Context) error {
	s := f.gridcast(gridcastName, benchCase{})
	p, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer p.stop()
	c, err := dial(p.address)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	reader := bufio.NewReader(c)
	weight := func(target string, header ...string) int {
		n := 0
		if err == nil {
			n, err = exchange(c, reader, f.request(target, header))
		}
		return n
	}
	f.weights.static = map[*snapshots.Body]int{}
	for _, body := range f.version.All() {
		if body.Entry.ETag != "" {
			f.weights.static[body] = weight(target(body))
		}
	}
	small := f.nearest(2 << 10)
	f.weights.nextRace = weight(nextRaceTarget)
	f.weights.notModified = weight(target(small), matches(small))
	return err
}

// request returns the bytes of a request with the first key.
func (f *fixture) request(target string, header []string) []byte {
	return []byte("GET " + target + " HTTP/1.1\r\nHost: api.example.org\r\nX-API-Key: " + f.keys[0] + "\r\n" +
		strings.Join(append(header, ""), "\r\n") + "\r\n")
}

// dial opens a connection that leaves nothing behind when it is closed.
func dial(address string) (net.Conn, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // else the port stays taken for a minute
	}
	return c, nil
}

// exchange sends a request and reads the response, which must be a success. It returns how
// many bytes that was.
func exchange(c net.Conn, reader *bufio.Reader, request []byte) (int, error) {
	if _, err := c.Write(request); err != nil {
		return 0, fmt.Errorf("send: %w", err)
	}
	var counted counter
	reader.Reset(io.TeeReader(c, &counted))
	if err := receive(reader); err != nil {
		return 0, err
	}
	return int(counted) - reader.Buffered(), nil
}

// receive reads a response, which must be a success.
func receive(reader *bufio.Reader) error {
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("status %s", response.Status)
	}
	return nil
}

// counter counts bytes.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
