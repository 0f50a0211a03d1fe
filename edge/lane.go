package edge

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/edge/express"
	"gridcast/edge/limit"
	"gridcast/edge/resident"
)

// The express lane is an optimisation that can be removed: without this file, its tests and
// the package express, the edge compiles, and the HTTP server answers everything.
func init() {
	newLane = func(e *Edge) lane {
		l := express.New(express.Config{
			Handler:        laneHandler{e.gateway},
			ReadTimeout:    e.cfg.ReadTimeout,
			WriteTimeout:   e.cfg.WriteTimeout,
			IdleTimeout:    e.cfg.IdleTimeout,
			ReadBufferSize: e.cfg.MaxHeaderBytes,
			MaxConnections: e.cfg.MaxConnections,
			TLS:            e.tls,
			NotAccepted:    func(err error) { e.log.Warn("connection not accepted, trying again", "err", err) },
		})
		e.deps.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "gridcast_edge_express_requests_total",
			Help: "Requests answered by the express lane; they are among all the others too.",
		}, func() float64 { return float64(l.Answered()) }), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gridcast_edge_express_connections",
			Help: "Open connections on the express lane.",
		}, func() float64 { return float64(l.Open()) }))
		if !e.cfg.ExpressLane {
			return nil
		}
		return l
	}
}

// laneHandler answers on the lane like the gateway: all targets that one look-up finds.
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
		r.take = limit.Counter.TryTake
	}
	defer func() {
		if p := recover(); p != nil {
			g.reportPanic(p)
			a := g.uncharged(&r, panicked, unrouted, g.anonymous.Peek, time.Now())
			g.metrics.count(&a)
			head, body, ok = appendHead(dst, &a, q), a.response.Body, true
		}
	}()
	a := g.serveBase(&r, g.now(q.Now))
	if a.response == nil {
		return dst, nil, false
	}
	g.metrics.count(&a)
	return appendHead(dst, &a, q), a.response.Body, true
}

// Ask implements [express.Handler]: another process counts the request.
func (h laneHandler) Ask(q *express.Request, then func(decided any)) {
	var r request
	r.readLane(q)
	now := h.gateway.now(q.Now)
	table := h.gateway.keys.Table()
	key, _ := r.credential()
	entry := r.authenticate(table, key, now)
	if entry == nil {
		then(nil) // the key was just revoked: Append answers that
		return
	}
	entry.Counter.TakeAsync(now, entry.PerMinute, func(d limit.Verdict) { then(&d) })
}

// readLane is read for a request on the lane.
func (r *request) readLane(q *express.Request) {
	r.target = q.Target
	r.authorization, r.apiKey = once(q.Authorization), once(q.APIKey)
	r.origin = q.Origin
	r.acceptEncoding, r.ifNoneMatch = q.AcceptEncoding, q.IfNoneMatch
	r.forwardedFor, r.peer = q.ForwardedFor, q.Peer
	r.page, _ = q.Found.(*resident.Page)
	r.decided, _ = q.Decided.(*limit.Verdict)
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

// appendHead appends the bytes that the server would send before the body. It allocates only
// for the first answer with a response, whose fixed part it keeps there.
func appendHead(dst []byte, a *answer, q *express.Request) []byte {
	fixed := a.response.Rendered.Load()
	if fixed == nil {
		fixed = renderHead(a.response)
		a.response.Rendered.Store(fixed)
	}
	at := len(dst) + fixed.DateAt
	dst = append(dst, fixed.Head...)
	copy(dst[at:at+len(blankDate)], q.Date)
	dst = strconv.AppendInt(dst, int64(a.rate.Limit), 10)
	dst = append(dst, beforeRemaining...)
	dst = strconv.AppendInt(dst, int64(a.rate.Remaining), 10)
	dst = append(dst, beforeReset...)
	dst = strconv.AppendInt(dst, a.rate.Reset, 10)
	if a.retryAfter > 0 {
		dst = append(dst, beforeRetryAfter...)
		dst = strconv.AppendInt(dst, int64(a.retryAfter), 10)
	}
	if q.Last {
		dst = append(dst, "\r\nConnection: close"...)
	}
	return append(dst, "\r\n\r\n"...)
}

// The constant parts of a head around the fields of a single request.
const (
	beforeDate       = "\r\nServer: gridcast\r\nDate: "
	blankDate        = "Thu, 01 Jan 1970 00:00:00 GMT"
	beforeLimit      = "X-RateLimit-Limit: "
	beforeRemaining  = "\r\nX-RateLimit-Remaining: "
	beforeReset      = "\r\nX-RateLimit-Reset: "
	beforeRetryAfter = "\r\nRetry-After: "
)

// renderHead returns the head up to the name of the first rate field, with a blank date. It
// orders the fields as fasthttp does, so that lane and server send the same bytes.
func renderHead(r *resident.Response) *resident.Rendered {
	head := strconv.AppendInt([]byte("HTTP/1.1 "), int64(r.Status), 10)
	head = append(append(head, ' '), http.StatusText(r.Status)...)
	head = append(head, beforeDate...)
	dateAt := len(head)
	head = append(append(head, blankDate...), "\r\n"...)
	add := func(name, value []byte) {
		head = append(append(head, name...), ": "...)
		head = append(append(head, value...), "\r\n"...)
	}
	for _, first := range []string{"Content-Type", "Content-Encoding"} {
		for _, f := range r.Fields {
			if string(f.Name) == first {
				add(f.Name, f.Value)
			}
		}
	}
	if r.Status != http.StatusNotModified && r.Status != http.StatusNoContent {
		add([]byte("Content-Length"), strconv.AppendInt(nil, int64(len(r.Body)), 10))
	}
	if r.ETag != nil {
		add(etag, r.ETag)
	}
	for _, f := range r.Fields {
		if name := string(f.Name); name != "Content-Type" && name != "Content-Encoding" {
			add(f.Name, f.Value)
		}
	}
	head = append(head, beforeLimit...)
	return &resident.Rendered{Head: head[:len(head):len(head)], DateAt: dateAt}
}
