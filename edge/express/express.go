// Package express answers the plain form of a request below the HTTP server, straight from
// prebuilt bytes.
//
// A [Lane] stands between a listener and the server. It accepts the connections, answers
// every request that it strictly recognises, and hands a connection to the server when
// anything else arrives, together with the bytes that it has read. When the server has
// answered and waits for the next request, the lane takes the connection back. So the server
// parses, refuses and times out everything unusual, incomplete, too large or wrong.
//
// The lane recognises a GET of HTTP/1.1 without a body, with plain fields, each relevant
// field at most once, and a target that the [Handler] knows. For these requests the bytes
// sent, and the point at which the connection ends, equal those of the server without a lane.
// The lane answers data that arrive together only if it recognises all of them;
// otherwise the server does. So the lane suits clients that wait for an answer or send a few requests ahead.
//
// If the system has epoll and the listener is a socket, one loop for each processor accepts, waits
// for all connections, answers and closes, with the fewest possible system calls. A
// connection costs some hundred bytes while it is idle, and the Go runtime learns of it only
// when the server has to answer on it. Elsewhere each connection has a goroutine. A connection has at most one
// owner, and no other goroutine reads, writes or closes it: see [connState].
package express

import (
	"crypto/tls"
	"net/netip"
	"time"
)

// Handler answers requests. It must be safe for concurrent use, and must not keep a request.
type Handler interface {
	// Knows reports whether the lane should answer the target of the request. It may
	// set Found, and has no other effect.
	Knows(r *Request) bool
	// Append appends the head of the response to a request after Knows has accepted it, and
	// returns the body, which must never change. Without permission to wait it reports false, without
	// any effect, if it needs a decision first.
	Append(dst []byte, r *Request, mayWait bool) (head, body []byte, ok bool)
	// Ask asks for the decision that Append needs first. It does not wait. It passes the decision to
	// then, once, from any goroutine. The lane calls Append again, with Decided set.
	Ask(r *Request, then func(decided any))
}

// Config configures a lane. Every field but TLS and NotAccepted is required.
type Config struct {
	Handler Handler
	// ReadTimeout, WriteTimeout and IdleTimeout are the server's. The lane looks for connections
	// past their deadline once a second, or four times in the shortest of these.
	ReadTimeout, WriteTimeout, IdleTimeout time.Duration
	// ReadBufferSize is the server's, in bytes: longer requests are too large.
	ReadBufferSize int
	// MaxConnections is the number of connections open at once; more wait in the kernel.
	MaxConnections int
	// TLS encrypts the connections; nil: they are plain.
	TLS *tls.Config
	// NotAccepted gets the reason when the system gives the lane no connection. The lane tries again after
	// a while.
	NotAccepted func(error)
}

// Request is a recognised request. Its bytes are valid until it is answered. A nil field
// was not sent.
type Request struct {
	Target         []byte
	Authorization  []byte
	APIKey         []byte
	Origin         []byte
	AcceptEncoding []byte
	IfNoneMatch    []byte
	ForwardedFor   []byte

	Peer netip.Addr // the client's address
	Now  time.Time  // the arrival of the request
	Date []byte     // the HTTP date of the response

	Last bool // the client asks to close the connection: the response must say so too

	Kept    *any // the handler's value; empty at first, or the value of an earlier connection
	Found   any  // set by the handler's Knows, for Append
	Decided any  // the decision of the handler's Ask; nil: not asked

	at int // its offset in the bytes read together
}
