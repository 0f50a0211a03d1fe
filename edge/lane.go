package edge

import (
	"gridcast/edge/express"
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
func (h laneHandler) Append(dst []byte, q *express.Request, mayWait bool) (response []byte, ok bool) {
	g := h.gateway
	r := request{
		target:         q.Target,
		authorization:  once(q.Authorization),
		apiKey:         once(q.APIKey),
		origin:         q.Origin,
		acceptEncoding: q.AcceptEncoding,
		ifNoneMatch:    q.IfNoneMatch,
		forwardedFor:   q.ForwardedFor,
		peer:           q.Peer,
		mustNotWait:    !mayWait,
	}
	r.page, _ = q.Found.(*resident.Page)
	defer func() {
		if p := recover(); p != nil {
			g.reportBug(p)
			a := g.refuse(&r, panicked, unrouted)
			response, ok = a.append(dst, q.Date), true
		}
	}()
	a := g.serveBase(&r, g.clock())
	if a.response == nil {
		return dst, false
	}
	g.metrics.count(&a)
	return a.append(dst, q.Date), true
}

// once is a field that was sent once, or not at all.
func once(value []byte) field {
	if value == nil {
		return field{}
	}
	return field{value: value, count: 1}
}
