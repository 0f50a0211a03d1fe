package redislimit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// value is a part of an answer: a number or a text.
type value struct {
	number int64
	text   string
}

// refusal is an answer of Redis that is an error. It leaves the connection intact.
type refusal string

// Error implements error.
func (r refusal) Error() string { return string(r) }

const (
	// maxReply is the largest answer in bytes, and maxElements has the most parts. The answers to an edge have
	// three numbers, an address, or an error.
	maxReply    = 16 << 10
	maxElements = 1 << 10
	// maxLength is the number of digits in a length.
	maxLength = 7
)

var errReply = errors.New("redis sent an answer that no edge asks for")

// encode appends a command to b.
func encode(b []byte, words []string, numbers ...int64) []byte {
	b = append(strconv.AppendInt(append(b, '*'), int64(len(words)+len(numbers)), 10), "\r\n"...)
	for _, word := range words {
		b = append(strconv.AppendInt(append(b, '$'), int64(len(word)), 10), "\r\n"...)
		b = append(append(b, word...), "\r\n"...)
	}
	for _, n := range numbers {
		digits := strconv.AppendInt(make([]byte, 0, 20), n, 10)
		b = append(strconv.AppendInt(append(b, '$'), int64(len(digits)), 10), "\r\n"...)
		b = append(append(b, digits...), "\r\n"...)
	}
	return b
}

// read reads an answer in RESP2: an array of numbers and texts, or one of them alone. It returns an error that is no
// refusal if the answer is of unlikely size or form, and allocates little. r has a buffer of maxReply bytes.
func read(r *bufio.Reader) ([]value, error) {
	kind, line, err := readLine(r)
	if kind == '-' {
		return nil, refusal(line)
	}
	elements, size := 1, 0
	array := kind == '*'
	if array {
		elements, err = readLength(line, maxElements)
	}
	if err != nil {
		return nil, err
	}
	values := make([]value, max(0, elements))
	for i := range values {
		if array {
			kind, line, err = readLine(r)
		}
		v := &values[i]
		switch kind {
		case '+':
			v.text = string(line)
		case ':':
			v.number, err = strconv.ParseInt(string(line), 10, 64)
		case '$':
			v.text, err = readText(r, line)
		default:
			err = errors.Join(err, fmt.Errorf("%w: it has a part that begins with %q", errReply, kind))
		}
		if err != nil {
			return nil, err
		}
		if size += len(v.text); size > maxReply {
			return nil, fmt.Errorf("%w: it has more than %d bytes", errReply, maxReply)
		}
	}
	return values, nil
}

// readLine returns the first byte of a line, and the rest up to its end. The rest is valid until the next read.
func readLine(r *bufio.Reader) (kind byte, rest []byte, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, nil, err // a line longer than the buffer, or the end
	}
	line, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok || len(line) == 0 {
		return 0, nil, fmt.Errorf("%w: a line without an end", errReply)
	}
	return line[0], line[1:], nil
}

// readText returns the text after the line with its length. No text is an empty one.
func readText(r *bufio.Reader, line []byte) (string, error) {
	length, err := readLength(line, maxReply-len("\r\n"))
	if err != nil || length < 0 {
		return "", err
	}
	text, err := r.Peek(length + len("\r\n"))
	if err != nil {
		return "", err
	}
	if !bytes.HasSuffix(text, []byte("\r\n")) {
		return "", fmt.Errorf("%w: a text of another length than announced", errReply)
	}
	defer r.Discard(len(text)) //nolint:errcheck // Peek has read it
	return string(text[:length]), nil
}

// readLength reads a length of at most limit, or -1 for nothing.
func readLength(line []byte, limit int) (int, error) {
	n, err := strconv.Atoi(string(line))
	if err != nil || n < -1 || n > limit || len(line) > maxLength {
		return 0, fmt.Errorf("%w: %.9q things, want at most %d", errReply, line, limit)
	}
	return n, nil
}
