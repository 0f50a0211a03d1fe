package resp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Error is what Redis says when it refuses a command, such as "NOSCRIPT No matching script".
type Error string

func (e Error) Error() string { return "redis: " + string(e) }

// The most that a reply may be: far more than counting needs, and no way to fill the memory.
const (
	maxBulk  = 1 << 20
	maxItems = 1 << 12
	maxDepth = 4
)

var errProtocol = errors.New("not the Redis protocol")

// Words are the end of a command, as they are sent. To use them again, Reset them. They are not
// safe for concurrent use.
type Words struct {
	n    int
	wire []byte
}

// Reset makes them none.
func (w *Words) Reset() { w.n, w.wire = 0, w.wire[:0] }

// Add adds a word.
func (w *Words) Add(word string) {
	w.n++
	w.wire = appendHead(w.wire, '$', len(word))
	w.wire = append(append(w.wire, word...), '\r', '\n')
}

// AddInt adds a number.
func (w *Words) AddInt(n int64) {
	var digits [20]byte
	number := strconv.AppendInt(digits[:0], n, 10)
	w.n++
	w.wire = appendHead(w.wire, '$', len(number))
	w.wire = append(append(w.wire, number...), '\r', '\n')
}

func appendHead(wire []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(wire, kind), int64(n), 10), '\r', '\n')
}

// readReply reads one reply of RESP2.
func readReply(r *bufio.Reader, depth int) (any, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, fmt.Errorf("%w: line %q", errProtocol, line)
	}
	kind, rest := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return string(rest), nil
	case '-':
		return Error(rest), nil
	}
	n, err := strconv.ParseInt(string(rest), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: line %q", errProtocol, line)
	}
	switch {
	case kind == ':':
		return n, nil
	case (kind == '$' || kind == '*') && n == -1:
		return nil, nil //nolint:nilnil // the null of the protocol
	case kind == '$' && n >= 0 && n <= maxBulk:
		bulk := make([]byte, n+2)
		if _, err := io.ReadFull(r, bulk); err != nil {
			return nil, err
		}
		return string(bulk[:n]), nil
	case kind == '*' && n >= 0 && n <= maxItems && depth < maxDepth:
		items := make([]any, n)
		for i := range items {
			if items[i], err = readReply(r, depth+1); err != nil {
				return nil, err
			}
		}
		return items, nil
	}
	return nil, fmt.Errorf("%w: line %q", errProtocol, line)
}
