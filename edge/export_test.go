package edge

import (
	"net"

	"github.com/valyala/fasthttp"

	"gridcast/snapshots"
)

// Accept swaps a version in, as following the store does.
func (e *Edge) Accept(version *snapshots.Version) error { return e.accept(version) }

// Handle is the handler of the server.
func (e *Edge) Handle(ctx *fasthttp.RequestCtx) { e.gateway.handle(ctx) }

// ConnServer returns a function that serves a connection to its end, as the edge's server
// does.
func (e *Edge) ConnServer() func(net.Conn) error {
	s := e.httpServer()
	if !e.cfg.ExpressLane {
		return s.ServeConn
	}
	s.ConnState = e.lane.ConnState
	return func(c net.Conn) error { return s.ServeConn(e.lane.Wrap(c)) }
}

// OnLane returns how many requests the express lane has answered.
func (e *Edge) OnLane() uint64 { return e.lane.Answered() }

// Client is the address that limits are counted for.
var Client = client
