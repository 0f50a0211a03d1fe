//go:build linux

package loadgen

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// response parses a response that arrives in parts.
type response struct {
	head      []byte // an incomplete header
	body      int    // missing bytes of the body, once the header is complete
	status    int
	anyStatus bool // accept a response that is no success
	last      bool // the server closes the connection after it
}

var (
	headEnd       = []byte("\r\n\r\n")
	contentLength = []byte("\r\nContent-Length: ")
	closes        = []byte("\r\nConnection: close")
)

// maxHead is the longest header in bytes.
const maxHead = 64 << 10

// parse consumes the bytes of p that belong to the response and returns the rest. When the response is
// complete, r is ready for the next one.
func (r *response) parse(p []byte) (rest []byte, complete bool, err error) {
	if r.body == 0 {
		if p, err = r.parseHead(p); err != nil || p == nil {
			return nil, false, err
		}
	}
	n := min(len(p), r.body)
	r.body -= n
	return p[n:], r.body == 0, nil
}

// parseHead returns the bytes of p after the header, nil while the header is incomplete.
func (r *response) parseHead(p []byte) (rest []byte, err error) {
	if len(r.head) > 0 {
		r.head = append(r.head, p...)
		p = r.head
	}
	end := bytes.Index(p, headEnd)
	switch {
	case end < 0 && len(p) > maxHead:
		return nil, fmt.Errorf("load: no end of a header in %d bytes", len(p))
	case end < 0:
		if len(r.head) == 0 {
			r.head = bytes.Clone(p)
		}
		return nil, nil
	}
	head, rest := p[:end], p[end+len(headEnd):]
	r.head = nil
	code, _ := bytes.CutPrefix(head[:min(len(head), len("HTTP/1.1 200"))], []byte("HTTP/1.1 "))
	r.status, err = strconv.Atoi(string(code))
	if success := r.status == http.StatusOK || r.status == http.StatusNotModified; err != nil || !success && !r.anyStatus {
		line, _, _ := bytes.Cut(head, []byte("\r\n"))
		return nil, fmt.Errorf("load: answered with %q", line)
	}
	r.last = bytes.Contains(head, closes)
	if r.status == http.StatusNotModified {
		return rest, nil
	}
	_, field, found := bytes.Cut(head, contentLength)
	if !found {
		return nil, errors.New("load: a response without Content-Length")
	}
	digits, _, _ := bytes.Cut(field, []byte("\r\n"))
	n, err := strconv.Atoi(string(digits))
	if err != nil || n < 0 {
		return nil, errors.Join(fmt.Errorf("load: Content-Length: %s", digits), err)
	}
	r.body = n
	return rest, nil
}
