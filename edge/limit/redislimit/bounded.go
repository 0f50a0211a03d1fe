package redislimit

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// bounded is a connection to Redis that ends at an answer of unlikely size. The client library trusts every
// length: it allocates as much, and a goroutine of its own panics at an impossible one. Answers to an
// edge have less than 1 KB.
type bounded struct {
	net.Conn
	replies replies
}

// dial opens a connection for the client library, which uses this function instead of its own.
func dial(ctx context.Context, address string, dialer *net.Dialer, cfg *tls.Config) (net.Conn, error) {
	network := interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	}(dialer)
	if cfg != nil {
		network = &tls.Dialer{NetDialer: dialer, Config: cfg}
	}
	conn, err := network.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &bounded{Conn: conn}, nil
}

// Read implements [net.Conn]. It never returns bytes that begin an answer beyond the bounds.
func (c *bounded) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if scanErr := c.replies.scan(p[:n]); scanErr != nil {
		return 0, errors.Join(scanErr, c.Close())
	}
	return n, err
}

const (
	// maxReply is the largest answer: its bytes, and elementSize for each element that it announces. The answers
	// about a cluster are the largest, with some KB for each server.
	maxReply    = 1 << 20
	elementSize = 64
	// maxLength is the number of digits in a length.
	maxLength = 7
)

// replies follows a stream of answers, in RESP2 or RESP3, through pieces of any size. It is strict where the
// client library is not, so that both find the same lengths.
type replies struct {
	line  []byte // the bytes of a line up to its end, if the line has a length or a fixed form
	kind  byte   // of the line; 0: the next byte is a kind
	open  int    // elements that are still to come in the answer
	skip  int    // bytes of a string that are still to come
	total int    // size of the answer so far
}

var errReply = errors.New("redis sent an answer that no edge asks for")

// scan reports an error at the first byte that takes an answer beyond the bounds or is no valid RESP.
func (r *replies) scan(p []byte) error {
	for len(p) > 0 {
		n := 1
		switch {
		case r.skip > 0:
			n = min(r.skip, len(p))
			r.skip -= n
		case r.kind == 0:
			if r.open == 0 {
				r.open, r.total = 1, 0
			}
			r.kind, r.total = p[0], r.total+1
		default:
			end := bytes.IndexByte(p, '\n')
			if n = end + 1; end < 0 {
				n = len(p)
			}
			if err := r.read(p[:n], end >= 0); err != nil {
				return err
			}
		}
		p = p[n:]
	}
	return nil
}

// read takes a part of a line, which ends with the part if ended is true.
func (r *replies) read(part []byte, ended bool) error {
	if r.total += len(part); r.total > maxReply {
		return fmt.Errorf("%w: it has more than %d bytes", errReply, maxReply)
	}
	text := bytes.IndexByte([]byte("+-:,("), r.kind) >= 0
	if !text {
		if r.line = append(r.line, part...); len(r.line) > maxLength+len("\r\n") {
			return fmt.Errorf("%w: the length after %q is too long", errReply, r.kind)
		}
	}
	if !ended {
		return nil
	}
	kind, line := r.kind, bytes.TrimSuffix(r.line, []byte("\r\n"))
	valid := text || len(line) == len(r.line)-2
	r.kind, r.line, r.open = 0, r.line[:0], r.open-1
	switch {
	case text || valid && (kind == '_' && len(line) == 0 || kind == '#' && len(line) == 1):
		return nil
	case valid && (kind == '$' || kind == '*') && string(line) == "-1":
		return nil
	}
	length, err := strconv.ParseUint(string(line), 10, 31)
	if err != nil || !valid {
		return fmt.Errorf("%w: %q after %q", errReply, line, kind)
	}
	elements := 0
	switch kind {
	case '$', '!', '=':
		r.skip = int(length) + len("\r\n")
		r.total += r.skip
	case '*', '~', '>':
		elements = int(length)
	case '%':
		elements = 2 * int(length)
	case '|': // the element that it describes follows
		elements = 2*int(length) + 1
	default:
		return fmt.Errorf("%w: it begins with %q", errReply, kind)
	}
	r.open += elements
	if r.total += elementSize * elements; r.total > maxReply {
		return fmt.Errorf("%w: it announces more than %d bytes", errReply, maxReply)
	}
	return nil
}
