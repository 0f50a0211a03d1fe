//go:build linux

package main

// benchCase is a kind of request and a way to send it.
type benchCase struct {
	name        string
	connections int
	size        int  // the body is the stored variant nearest to so many bytes, uncompressed
	gzip        bool // the client accepts gzip
	tls         bool // TLS 1.3
	connect     connectMode
	nextRace    bool // /next-race instead of a stored variant
	conditional bool // the request carries the ETag of the server's own answer
	servers     []string
	halfOf      string  // send half of the requests a second that gridcast answered in this case
	perSecond   float64 // requests due a second, whether earlier ones are answered or not; 0: as fast as the server answers
}

// connectMode says when the load generator opens a connection.
type connectMode string

const (
	keepAlive   connectMode = ""            // once
	eachRequest connectMode = "each"        // for each request, over TLS without a ticket
	withTicket  connectMode = "each,ticket" // for each request, resuming the session of the one before
)

// The servers.
const (
	gridcast = "gridcast"
	before   = "gridcast, before"
	nginx    = "nginx"
	fasthttp = "fasthttp"
	haproxy  = "haproxy"
)

var (
	all     = []string{gridcast, nginx, haproxy, fasthttp}
	proxied = []string{gridcast, nginx, haproxy}
)

// cases are the rows of deploy/docs/performance.md.
var cases = []benchCase{
	{name: "2 KB", connections: 64, size: 2 << 10, servers: all},
	{name: "2 KB", connections: 256, size: 2 << 10, servers: all},
	{name: "12 KB", connections: 64, size: 12 << 10, servers: all},
	{name: "2 KB, gzip", connections: 64, size: 2 << 10, gzip: true, servers: all},
	{name: "12 KB, gzip", connections: 64, size: 12 << 10, gzip: true, servers: all},
	{name: "2 KB, TLS", connections: 64, size: 2 << 10, tls: true, servers: proxied},
	{name: "6 KB, gzip, TLS", connections: 64, size: 6 << 10, gzip: true, tls: true, servers: proxied},
	{name: "2 KB, new connection", connections: 64, size: 2 << 10, connect: eachRequest, servers: proxied},
	{name: "2 KB, new TLS connection, ticket", connections: 64, size: 2 << 10, tls: true, connect: withTicket, servers: proxied},
	{name: "2 KB, new TLS connection", connections: 64, size: 2 << 10, tls: true, connect: eachRequest, servers: proxied},
	{name: "2 KB, half of the load", connections: 64, size: 2 << 10, halfOf: "2 KB", servers: all},
	{name: "12 KB, half of the load", connections: 64, size: 12 << 10, halfOf: "12 KB", servers: all},
	{name: "304", connections: 64, size: 2 << 10, conditional: true, servers: []string{gridcast, nginx}}, // the others have no ETag
	// nginx and HAProxy compute no countdown. fasthttp writes a constant of about the same size.
	{name: "next-race", connections: 64, size: 300, nextRace: true, servers: []string{gridcast, fasthttp}},
}
