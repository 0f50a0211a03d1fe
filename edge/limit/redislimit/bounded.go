package redislimit

import (
	"errors"
	"fmt"
	"net"
)

const (
	bufferSize = 4 << 10
	// maxReply is the largest answer in bytes, and maxValues has the most parts: a cluster lists its servers in one.
	// The other answers to an edge have a few numbers and texts.
	maxReply  = 1 << 20
	maxValues = 1 << 14
	// maxDigits is the length of a number's text, and maxLengthDigits that of a length.
	maxDigits, maxLengthDigits = 20, 7
)

var errReply = errors.New("redis sent an answer that no edge asks for")

// bounded is a connection that fails before an answer in RESP2 has a length or a form that no edge asks for. go-redis
// allocates each length that it reads, and one false length would end the process.
type bounded struct {
	net.Conn
	kind   byte   // of the present line; 0: at its beginning
	digits []byte // of the number in the line
	last   byte   // of the line
	text   int    // bytes to come of a text and its end
	values int    // parts to come of the answer; 0: between answers
	seen   int    // parts of the answer so far
	size   int    // bytes of the answer so far
}

// Read implements [net.Conn].
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	for _, c := range p[:n] {
		if fault := b.next(c); fault != nil {
			_ = b.Close()
			return 0, fault
		}
	}
	return n, err
}

// next looks at a byte.
func (b *bounded) next(c byte) error {
	if b.size++; b.size > maxReply {
		return fmt.Errorf("%w: it has more than %d bytes", errReply, maxReply)
	}
	switch {
	case b.text > 0:
		if b.text--; b.text == 1 && c != '\r' || b.text == 0 && c != '\n' {
			return fmt.Errorf("%w: a text of another length than announced", errReply)
		}
		if b.text == 0 {
			b.end()
		}
	case b.kind == 0:
		switch c {
		case '+', '-', ':', '$', '*':
		default:
			return fmt.Errorf("%w: it has a part that begins with %q", errReply, c)
		}
		if b.values == 0 {
			b.values = 1
		}
		b.kind, b.digits, b.last = c, b.digits[:0], 0
	case c == '\n':
		if b.last != '\r' {
			return fmt.Errorf("%w: a line without an end", errReply)
		}
		return b.line()
	default:
		if number := b.kind != '+' && b.kind != '-'; number && c != '\r' {
			if b.last == '\r' || len(b.digits) == maxDigits || (c < '0' || c > '9') && (c != '-' || len(b.digits) > 0) {
				return fmt.Errorf("%w: %q in the number %.9q", errReply, c, b.digits)
			}
			b.digits = append(b.digits, c)
		}
		b.last = c
	}
	return nil
}

// line looks at a whole line.
func (b *bounded) line() error {
	kind := b.kind
	b.kind = 0
	if kind == '$' || kind == '*' {
		limit := maxReply
		if kind == '*' {
			limit = maxValues
		}
		n := 0
		for _, c := range b.digits {
			n = n*10 + int(c-'0')
		}
		none := string(b.digits) == "-1"
		if !none && (len(b.digits) == 0 || len(b.digits) > maxLengthDigits || b.digits[0] == '-' || n > limit) {
			return fmt.Errorf("%w: %.9q things, want at most %d", errReply, b.digits, limit)
		}
		switch {
		case none:
		case kind == '*':
			b.values += n
		default:
			b.text = n + len("\r\n")
			return nil
		}
	}
	if b.values > maxValues || b.seen >= maxValues {
		return fmt.Errorf("%w: it has more than %d parts", errReply, maxValues)
	}
	b.end()
	return nil
}

// end counts a part whose end has come.
func (b *bounded) end() {
	b.seen++
	if b.values--; b.values == 0 {
		b.seen, b.size = 0, 0
	}
}
