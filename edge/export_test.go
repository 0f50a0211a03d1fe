package edge

import (
	"github.com/valyala/fasthttp"

	"gridcast/snapshots"
)

// Accept swaps a version in, as following the store does.
func (e *Edge) Accept(version *snapshots.Version) error { return e.accept(version) }

// Handle is the handler of the server.
func (e *Edge) Handle(ctx *fasthttp.RequestCtx) { e.gateway.handle(ctx) }

// Client is the address that limits are counted for.
var Client = client
