package edge

import (
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"gridcast/snapshots"
)

// Accept swaps a version in, as following the store does.
func (e *Edge) Accept(version *snapshots.Version) error { return e.accept(version) }

// Handle is the handler of the server.
func (e *Edge) Handle(ctx *fasthttp.RequestCtx) { e.gateway.handle(ctx) }

// ConnServer returns what serves a connection to its end, as the edge's server does without a lane.
func (e *Edge) ConnServer() func(net.Conn) error {
	server := e.httpServer()
	return func(c net.Conn) error { return server.ServeConn(&recorded{Conn: c}) }
}

// SayAfter sets how long the edge waits before it says what for.
func (e *Edge) SayAfter(d time.Duration) { e.sayAfter = d }

// MaxConnections is how many connections the edge allows.
func (e *Edge) MaxConnections() int { return e.cfg.MaxConnections }

// ConnectionBound is how many connections may be open.
var ConnectionBound = connectionBound

// Client is the address that limits are counted for.
var Client = client

// CompressDocuments makes the pages that never change, which is done once in the life of the process.
func CompressDocuments() error {
	_, err := documents()
	return err
}

// SetDownloads says how many downloads are sent at once, and how slow a client may be, in bytes a
// second. It comes before the first.
func (e *Edge) SetDownloads(most, slowest int64) {
	e.downloads.most, e.downloads.slowest = most, slowest
}

// Downloading returns how many downloads are being sent.
func (e *Edge) Downloading() int64 { return e.downloads.sending.Load() }

// DownloadFolder is where the downloads lie.
func (e *Edge) DownloadFolder() string {
	dir, err := e.downloads.place()
	if err != nil {
		panic(err)
	}
	return dir
}
