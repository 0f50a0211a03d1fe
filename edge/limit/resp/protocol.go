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

// writeCommand writes a command as an array of bulk strings.
func writeCommand(w *bufio.Writer, args []string) error {
	var number [24]byte
	head := func(kind byte, n int) {
		line := append(number[:0], kind)
		line = strconv.AppendInt(line, int64(n), 10)
		_, _ = w.Write(append(line, '\r', '\n')) // a bufio.Writer keeps its error
	}
	head('*', len(args))
	for _, arg := range args {
		head('$', len(arg))
		_, _ = w.WriteString(arg)
		_, _ = w.WriteString("\r\n")
	}
	_, err := w.Write(nil)
	return err
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
	kind, rest := line[0], string(line[1:len(line)-2])
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return Error(rest), nil
	}
	n, err := strconv.ParseInt(rest, 10, 64)
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
