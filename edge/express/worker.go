package express

import (
	"bytes"
	"time"
)

// worker answers what has been read, for one connection at a time. Whoever uses it sets now.
type worker struct {
	lane     *Lane
	now      time.Time // of what is being answered
	in, out  []byte
	parsed   []Request // of what has been recognised
	requests []Request // those of parsed that are to be answered yet
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
	if !w.lane.draining.Load() && w.recognise(w.in[:n]) {
		return w.answer(c, w.in[:n])
	}
	c.lend(bytes.Clone(w.in[:n]), nil)
	return false
}

// recognise reads the requests that p is. It reports false if there is anything else in p than
// whole requests for the lane; then there are none.
func (w *worker) recognise(p []byte) bool {
	w.parsed, w.requests = w.parsed[:0], nil
	for at := 0; at < len(p); {
		w.parsed = append(w.parsed, Request{})
		r := &w.parsed[len(w.parsed)-1]
		n := r.parse(p[at:])
		if n == 0 || !w.lane.cfg.Handler.Knows(r) {
			return false
		}
		r.at = at
		at += n
	}
	w.requests = w.parsed
	return true
}

// answer answers the requests that p is, in as few writes as can be, and reports whether the
// connection still is the caller's.
func (w *worker) answer(c *conn, p []byte) bool {
	for len(w.requests) > 0 {
		before := len(w.requests)
		out := w.render(c, c.loop == nil)
		n, err := c.write(out)
		if err != nil {
			c.close()
			return false
		}
		undecided := len(w.requests) == before || len(w.requests) > 0 && len(out) < flushAt
		if n == len(out) && !undecided {
			continue
		}
		var rest []byte
		if len(w.requests) > 0 {
			rest = p[w.requests[0].at:]
		}
		if n < len(out) {
			go c.finish(bytes.Clone(out[n:]), bytes.Clone(rest))
		} else {
			c.loop.park(c, &w.requests[0], rest)
		}
		return false
	}
	return true
}

// render returns responses to the requests, which it removes: to as many as are sent together,
// or unless it may wait, to those before the first that has to.
func (w *worker) render(c *conn, mayWait bool) (out []byte) {
	c.extend(w.now, w.lane.cfg.IdleTimeout)
	date := w.lane.dates.at(w.now)
	out = w.out[:0]
	before := len(w.requests)
	for len(w.requests) > 0 && len(out) < flushAt {
		r := &w.requests[0]
		r.Peer, r.Date = c.peer, date
		response, ok := w.lane.cfg.Handler.Append(out, r, mayWait)
		if !ok {
			break
		}
		out, w.requests = response, w.requests[1:]
	}
	if answered := before - len(w.requests); answered > 0 {
		w.lane.answered.Add(uint64(answered))
	}
	if cap(out) <= keepUpTo {
		w.out = out
	}
	return out
}
