//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"gridcast/snapshots"
)

// responses are what gridcast answers, with the headers. What is made per request, or has no
// body, is fairly held against a static response of its size.
type responses struct {
	static      map[*snapshots.Body][]byte
	nextRace    []byte
	notModified []byte
}

// nearest returns the variant whose response is nearest to so many bytes.
func (r *responses) nearest(size int) *snapshots.Body {
	var best *snapshots.Body
	for body, response := range r.static {
		here, before := distance(len(response), size), distance(len(r.static[best]), size)
		if best == nil || here < before || here == before && body.Entry.Path < best.Entry.Path {
			best = body
		}
	}
	return best
}

// String says what is compared with what.
func (r *responses) String() string {
	like := func(name string, response []byte) string {
		body := r.nearest(len(response))
		return fmt.Sprintf("A response of %s is %d bytes, that of %s, which it is held against, %d.\n", name, len(response), target(body), len(r.static[body]))
	}
	return like(nextRaceCase, r.nextRace) + like(notModifiedCase, r.notModified)
}

// ask asks gridcast for everything there is.
func (f *fixture) ask(ctx context.Context) error {
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
	get := func(target string, header ...string) (response []byte) {
		if err == nil {
			response, err = exchange(c, reader, request(f.keys[0], target, header))
		}
		return response
	}
	f.responses.static = map[*snapshots.Body][]byte{}
	for body := range f.bodies() {
		f.responses.static[body] = get(target(body))
	}
	f.responses.nextRace = get(nextRaceTarget)
	small := f.nearest(2 << 10)
	f.responses.notModified = get(target(small), matches(small))
	return err
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

// exchange sends a request and reads the response, which must be a success. It returns the
// bytes of it.
func exchange(c net.Conn, reader *bufio.Reader, request []byte) ([]byte, error) {
	if _, err := c.Write(request); err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	var read bytes.Buffer
	reader.Reset(io.TeeReader(c, &read))
	if err := receive(reader); err != nil {
		return nil, err
	}
	return read.Bytes(), nil
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
