package edge

import (
	"crypto/tls"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"gridcast/snapshots"
)

// Accept swaps a version in, like following the store.
func (e *Edge) Accept(version *snapshots.Version) error { return e.accept(e.real, version) }

// Handle is the handler of the server.
func (e *Edge) Handle(ctx *fasthttp.RequestCtx) { e.gateway.handle(ctx) }

// NewConnection returns the connection of a socket without an acceptor.
func NewConnection(socket net.Conn) net.Conn {
	return &connection{Conn: socket, socket: socket, acceptor: newAcceptor(nil, nil, 1, 0)}
}

// ConnServer returns the function that serves a connection to its end.
func (e *Edge) ConnServer() func(net.Conn) error {
	server := e.httpServer()
	listener := newAcceptor(nil, nil, 1, e.slack())
	return func(c net.Conn) error { return server.ServeConn(&connection{Conn: c, socket: c, acceptor: listener}) }
}

// WarnAfter sets the wait before the edge logs the reason for waiting.
func (e *Edge) WarnAfter(d time.Duration) { e.warnAfter = d }

// FirstLook sets the longest wait for the store before the edge serves. Call it before Run.
func (e *Edge) FirstLook(d time.Duration) { e.firstLook = d }

// MaxConnections returns the number of connections that the edge allows.
func (e *Edge) MaxConnections() int { return e.cfg.MaxConnections }

// ConnectionBound returns the possible number of open connections.
var ConnectionBound = connectionBound

// TicketKeys returns the keys of session tickets at an instant.
func TicketKeys(pair *tls.Certificate, at time.Time) ([][32]byte, error) {
	return ticketKeys(pair, at.Unix()/ticketPeriod)
}

// Client returns the address whose requests are counted.
var Client = client

// CompressDocuments makes the constant pages, once in the life of the process.
func CompressDocuments() {
	for _, made := range siteOf(snapshots.Operator{}).contract {
		made()
	}
}

// SetDownloads sets the number of simultaneous downloads, and the slowest rate of a client, in bytes a
// second. Call it before the first download.
func (e *Edge) SetDownloads(most int, slowest int64) {
	e.slots.most, e.slots.slowest = most, slowest
}

// MakeDownloadsAfter sets the time without another version before the edge makes downloads. Call it before Run.
func (e *Edge) MakeDownloadsAfter(quiet time.Duration) {
	e.real.downloads.quiet, e.sandbox.downloads.quiet = quiet, quiet
}

// Downloading returns the number of running downloads.
func (e *Edge) Downloading() int {
	s := e.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sending)
}

// DownloadsMade returns the served version if the edge has made all files of it, otherwise 0.
func (e *Edge) DownloadsMade() int64 {
	v := e.real.current().Version()
	sources, err := e.real.downloads.maker.Sources(v)
	if err != nil {
		return 0
	}
	for year, source := range sources {
		if made := e.real.downloads.of(year); made == nil || made.File.Source != source {
			return 0
		}
	}
	return v.Pointer.Version
}

// DownloadFolder returns the folder of the downloads.
func (e *Edge) DownloadFolder() string {
	dir, err := e.real.downloads.place()
	if err != nil {
		panic(err)
	}
	return dir
}
