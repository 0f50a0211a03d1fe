package edge

import (
	"time"

	"gridcast/edge/express"
	"gridcast/edge/limit"
	"gridcast/edge/resident"
)

// newLane returns an express lane that answers as the gateway does.
func (e *Edge) newLane() *express.Lane {
	return express.New(express.Config{
		Handler:        laneHandler{e.gateway},
		ReadTimeout:    e.cfg.ReadTimeout,
		WriteTimeout:   e.cfg.WriteTimeout,
		IdleTimeout:    e.cfg.IdleTimeout,
		ReadBufferSize: e.cfg.MaxHeaderBytes,
		MaxConnections: e.cfg.MaxConnections,
	})
}

// laneHandler puts the targets that are found by one look-up on the lane.
type laneHandler struct{ gateway *gateway }

var _ express.Handler = laneHandler{}

// Knows implements [express.Handler].
func (h laneHandler) Knows(q *express.Request) bool {
	set := h.gateway.versions.current()
	if set == nil {
		return false
	}
	page := set.Find(q.Target)
	q.Found = page
	return page != nil
}

// Append implements [express.Handler].
func (h laneHandler) Append(dst []byte, q *express.Request, mayWait bool) (head, body []byte, ok bool) {
	g := h.gateway
	var r request
	r.readLane(q)
	if !mayWait {
		r.take = tryTake
	}
	defer func() {
		if p := recover(); p != nil {
			g.reportBug(p)
			a := g.refuse(&r, panicked, unrouted)
			head, body, ok = a.appendHead(dst, q.Date), a.response.Body, true
		}
	}()
	a := g.serveBase(&r, g.now(q.Now))
	if a.response == nil {
		return dst, nil, false
	}
	g.metrics.count(&a)
	return a.appendHead(dst, q.Date), a.response.Body, true
}

// Ask implements [express.Handler]: who counts the request is another process.
func (h laneHandler) Ask(q *express.Request, then func(decided any)) {
	var r request
	r.readLane(q)
	now := h.gateway.now(q.Now)
	table := h.gateway.keys.Table()
	key, _ := r.credential()
	entry := r.authenticate(table, key, now)
	if entry == nil {
		then(nil) // the key has just been revoked: Append will say so
		return
	}
	decide := func(d limit.Decision) { then(&d) }
	if async, ok := entry.Counter.(limit.AsyncCounter); ok {
		async.TakeAsync(now, entry.PerMinute, decide)
		return
	}
	go func() { decide(entry.Counter.Take(now, entry.PerMinute)) }()
}

// tryTake counts a request if that takes no waiting. Nothing is known of a counter that is not
// an AsyncCounter: it may wait.
func tryTake(c limit.Counter, now time.Time, perMinute int) (limit.Decision, bool) {
	async, ok := c.(limit.AsyncCounter)
	if !ok {
		return limit.Decision{}, false
	}
	return async.TryTake(now, perMinute)
}

// readLane is read for a request on the lane.
func (r *request) readLane(q *express.Request) {
	r.target = q.Target
	r.authorization, r.apiKey = once(q.Authorization), once(q.APIKey)
	r.origin = q.Origin
	r.acceptEncoding, r.ifNoneMatch = q.AcceptEncoding, q.IfNoneMatch
	r.forwardedFor, r.peer = q.ForwardedFor, q.Peer
	r.page, _ = q.Found.(*resident.Page)
	r.decided, _ = q.Decided.(*limit.Decision)
	var known bool
	if r.memory, known = (*q.Kept).(*memory); !known {
		r.memory = &memory{}
		*q.Kept = r.memory
	}
}

// once is a field that was sent once, or not at all.
func once(value []byte) field {
	if value == nil {
		return field{}
	}
	return field{value: value, count: 1}
}
