package express

import (
	"bytes"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

// worker answers requests, for one connection at a time. Its user sets now.
type worker struct {
	lane     *Lane
	vector   vector
	now      time.Time // the time of the present answers
	in, out  []byte
	parsed   []Request // recognised requests
	requests []Request // the part of parsed without an answer
}

// The sizes of output buffers: the worker sends pipelined responses when they reach the first size, and
// drops a buffer that has grown beyond the second.
const (
	flushAt  = 64 << 10
	keepUpTo = 2 * flushAt
)

// sendInPlace is the size from which a body is sent from its own memory: below it a copy is
// cheaper than two places for the kernel.
const sendInPlace = 4 << 10

func (l *Lane) newWorker() *worker {
	return &worker{lane: l, in: make([]byte, l.cfg.ReadBufferSize), out: make([]byte, 0, 16<<10)}
}

// take handles n bytes that the owner has read from a connection into w.in, or the
// error of the read. It reports whether the caller still owns the connection.
//
// It never answers a part of the data that arrived together. The server, which sends the answers to
// pipelined requests together, drops them if a later one fails.
func (w *worker) take(c *conn, n int, err error) bool {
	switch {
	case n == 0 && c.started:
		c.close()
		return false
	case n == 0:
		c.handOff(nil, err) // the server may answer a client that never asks
		return false
	}
	c.started = true
	if !w.lane.draining.Load() && w.recognise(w.in[:n]) {
		return w.answer(c, w.in[:n])
	}
	c.handOff(bytes.Clone(w.in[:n]), nil)
	return false
}

// recognise reads the requests in p. It reports false, and keeps none, if p holds anything but
// whole requests for the lane.
func (w *worker) recognise(p []byte) bool {
	w.parsed, w.requests = w.parsed[:0], nil
	for at := 0; at < len(p); {
		w.parsed = append(w.parsed, Request{})
		r := &w.parsed[len(w.parsed)-1]
		n := r.parse(p[at:])
		if n == 0 || !w.lane.cfg.Handler.Knows(r) || r.Last && at+n < len(p) {
			return false
		}
		r.at = at
		at += n
	}
	w.requests = w.parsed
	return true
}

// answer answers the requests in p, in as few writes as possible, and reports whether the
// caller still owns the connection.
func (w *worker) answer(c *conn, p []byte) bool {
	c.last = w.requests[len(w.requests)-1].Last
	for len(w.requests) > 0 {
		out, decided := w.render(c, c.loop == nil)
		size := out.len()
		n, sent, err := c.write(w, out, c.last && decided && len(w.requests) == 0)
		if err != nil {
			c.close()
			return false
		}
		if sent && decided {
			continue
		}
		var rest []byte
		if len(w.requests) > 0 {
			rest = p[w.requests[0].at:]
		}
		c.shared = true
		if !sent {
			w.lane.busyElsewhere.Add(1)
			var unsent []byte
			if n < size {
				unsent = out.after(n)
			}
			go c.finish(unsent, bytes.Clone(rest))
		} else {
			c.loop.suspend(c, &w.requests[0], rest)
		}
		return false
	}
	if c.last {
		c.close()
	}
	return !c.last
}

// output holds responses: in a buffer, and the body of the last one in its own memory.
type output struct{ buffer, body []byte }

func (o output) len() int { return len(o.buffer) + len(o.body) }

// whole returns everything in one piece, in the buffer if there is room.
func (o output) whole() []byte { return append(o.buffer, o.body...) }

// after returns a copy of all but the first n bytes.
func (o output) after(n int) []byte {
	if n >= len(o.buffer) {
		return bytes.Clone(o.body[n-len(o.buffer):])
	}
	return slices.Concat(o.buffer[n:], o.body)
}

// render returns responses to the requests, which it removes. It stops at the number of responses that are sent
// together, or, without permission to wait, before the first request that needs a decision.
func (w *worker) render(c *conn, mayWait bool) (out output, decided bool) {
	c.extend(w.now, w.lane.cfg.IdleTimeout)
	date := w.lane.dates.at(w.now)
	out.buffer, decided = w.out[:0], true
	answered := uint64(0)
	for len(w.requests) > 0 && out.len() < flushAt {
		r := &w.requests[0]
		r.Peer, r.Kept, r.Now, r.Date = c.peer, &c.kept, w.now, date
		out.buffer = append(out.buffer, out.body...) // it is not the last
		out.buffer, out.body, decided = w.lane.cfg.Handler.Append(out.buffer, r, mayWait)
		if !decided {
			break
		}
		if len(out.body) < sendInPlace {
			out.buffer, out.body = append(out.buffer, out.body...), nil
		}
		w.requests = w.requests[1:]
		answered++
	}
	w.lane.answered.Add(answered)
	if cap(out.buffer) <= keepUpTo {
		w.out = out.buffer
	}
	return out, decided
}

// dates writes the HTTP date once a second for all connections.
type dates struct{ latest atomic.Pointer[date] }

type date struct {
	unix int64
	text []byte
}

func (d *dates) at(now time.Time) []byte {
	unix := now.Unix()
	if latest := d.latest.Load(); latest != nil && latest.unix == unix {
		return latest.text
	}
	next := &date{unix, now.UTC().AppendFormat(nil, http.TimeFormat)}
	d.latest.Store(next)
	return next.text
}
