// Package express answers the plain form of a request below the HTTP server, straight from
// prebuilt bytes.
//
// A [Lane] stands between a listener and the server: it accepts the connections, answers by
// itself every request that it strictly recognises, and hands a connection to the server when
// anything else arrives on it, beginning with the bytes that it has read. When the server has
// answered and waits for the next request, the lane has the connection back. So everything
// unusual, half arrived, too large or wrong is the server's to parse, to refuse and to time out.
//
// Recognised is a GET of HTTP/1.1 without a body, whose header is made of plain fields, each of
// those that matter at most once, and whose target the [Handler] knows. For these the bytes
// sent, and the point at which the connection ends, are those of the server without a lane.
// What arrives together is answered by the lane if all of it is recognised, and by the server
// otherwise: so the lane suits clients that wait for an answer or send a few requests ahead.
//
// Where the system has epoll and the listener is a socket, a loop for each processor accepts, waits
// for all connections, answers and closes, with no more than the system calls for it: a
// connection costs some hundred bytes while it is idle, and becomes one of the runtime's only
// when the server has to answer on it. Elsewhere each has a goroutine. A connection always has one
// owner, who alone reads, writes and closes: see [connState].
package express

import (
	"crypto/tls"
	"net/netip"
	"time"
)

// Handler answers requests. It must be safe for concurrent use, and keep nothing of a request.
type Handler interface {
	// Knows reports whether the target of the request is one to answer on the lane. It may
	// set Found, and has no other effect.
	Knows(r *Request) bool
	// Append appends the head of the response to a request after Knows has accepted it, and
	// returns the body, which must never change. Unless it may wait, it reports false, without
	// any effect, if it had to wait for a decision.
	Append(dst []byte, r *Request, mayWait bool) (head, body []byte, ok bool)
	// Ask is called then. It does not wait; when there is a decision it calls then with it,
	// once, from any goroutine. Append is called again, with Decided.
	Ask(r *Request, then func(decided any))
}

// Config is what a lane is made of. All is required but TLS and NotAccepted.
type Config struct {
	Handler Handler
	// ReadTimeout, WriteTimeout and IdleTimeout are those of the server. The lane looks for
	// connections that are over their time once a second, or four times in the shortest of
	// these.
	ReadTimeout, WriteTimeout, IdleTimeout time.Duration
	// ReadBufferSize is that of the server, in bytes: what does not fit is too large.
	ReadBufferSize int
	// MaxConnections is how many connections are open at once; more wait in the kernel.
	MaxConnections int
	// TLS is what connections are encrypted by; nil: they are plain.
	TLS *tls.Config
	// NotAccepted hears why the system has no connection for the lane, which tries again after
	// a while.
	NotAccepted func(error)
}

// Request is what a recognised request says. Its bytes are valid until it is answered. Of the
// fields, nil means not sent.
type Request struct {
	Target         []byte
	Authorization  []byte
	APIKey         []byte
	Origin         []byte
	AcceptEncoding []byte
	IfNoneMatch    []byte
	ForwardedFor   []byte

	Peer netip.Addr // of the connection
	Now  time.Time  // when it was found to have arrived
	Date []byte     // the HTTP date of the response

	Last bool // the client asks for the connection to be closed: the response must say so too

	Kept    *any // what the handler keeps; empty at first, or what was kept for an earlier connection
	Found   any  // what the handler's Knows keeps for Append
	Decided any  // what the handler's Ask has decided; nil: it was not asked

	at int // where it begins in what was read together
}
