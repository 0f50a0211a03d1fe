package express

import (
	"bytes"
	"time"
)

// worker answers what has been read, for one connection at a time.
type worker struct {
	lane    *Lane
	in, out []byte
	request Request
}

// The sizes of output buffers: pipelined responses are sent when there are so many bytes, and
// a buffer that has grown further is not kept.
const (
	flushAt  = 64 << 10
	keepUpTo = 2 * flushAt
)

func (l *Lane) newWorker() *worker {
	return &worker{lane: l, in: make([]byte, l.cfg.ReadBufferSize), out: make([]byte, 0, 16<<10)}
}

// take deals with n bytes that its owner has read from a connection into w.in, or with the
// error that came instead. It reports whether the connection still is the caller's.
//
// It never answers a part of what arrived together: the server, which sends the answers to
// pipelined requests together, drops them if it then fails on one.
func (w *worker) take(c *conn, n int, err error) bool {
	switch {
	case n == 0 && c.begun:
		c.close()
		return false
	case n == 0:
		c.lend(nil, err) // the server may have something to say to who never asks
		return false
	}
	c.begun = true
	if !w.lane.draining.Load() {
		if requests := w.recognise(w.in[:n]); requests > 0 {
			return w.answer(c, w.in[:n], requests)
		}
	}
	c.lend(bytes.Clone(w.in[:n]), nil)
	return false
}

// recognise returns how many whole requests for the lane p is, 0 if there is anything else in
// it.
func (w *worker) recognise(p []byte) (requests int) {
	for len(p) > 0 {
		n := w.request.parse(p)
		if n == 0 || !w.lane.cfg.Handler.Knows(&w.request) {
			return 0
		}
		p = p[n:]
		requests++
	}
	return requests
}

// answer answers the requests that p is, in as few writes as can be, and reports whether the
// connection still is the caller's.
func (w *worker) answer(c *conn, p []byte, requests int) bool {
	for requests > 0 {
		var out []byte
		before := requests
		out, p, requests = w.render(c, p, requests, false)
		n, err := c.write(out)
		switch {
		case err != nil:
			c.close()
			return false
		case n < len(out), requests == before:
			go c.finish(bytes.Clone(out[n:]), bytes.Clone(p), requests)
			return false
		}
	}
	return true
}

// render returns responses to the requests that p is: to all, or as many as are sent together,
// or unless it may wait, to those before the first that has to. It returns the others too. The
// last request that was parsed is in w.request.
func (w *worker) render(c *conn, p []byte, requests int, mayWait bool) (out, rest []byte, left int) {
	now := time.Now()
	c.extend(now, w.lane.cfg.IdleTimeout)
	out = w.out[:0]
	for requests > 0 && len(out) < flushAt {
		n := w.request.parse(p)
		w.lane.cfg.Handler.Knows(&w.request)
		w.request.Peer, w.request.Date = c.peer, w.lane.dates.at(now)
		next, ok := w.lane.cfg.Handler.Append(out, &w.request, mayWait)
		if !ok {
			break
		}
		out, p = next, p[n:]
		requests--
		w.lane.answered.Add(1)
	}
	if cap(out) <= keepUpTo {
		w.out = out
	}
	return out, p, requests
}
