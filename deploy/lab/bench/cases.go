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
	goal        float64 // of the CPU time of a request, as a share of nginx's; 0: none
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
	haproxy  = "haproxy"
	lighttpd = "lighttpd"
	fasthttp = "fasthttp"
)

var (
	all     = []string{gridcast, nginx, haproxy, lighttpd, fasthttp}
	proxied = []string{gridcast, nginx, haproxy}
)

// percents are the loads at which the bench measures each server, in percent of its own capacity. The summary has
// those of summarised.
var percents = []int{30, 50, 70, 90}

const summarised = 70

// cases are the rows of deploy/docs/performance.md.
var cases = []benchCase{
	{name: "2 KB", connections: 64, size: 2 << 10, servers: all, goal: .85},
	{name: "2 KB, gzip", connections: 64, size: 2 << 10, gzip: true, servers: all, goal: .85},
	{name: "6 KB, gzip, TLS", connections: 64, size: 6 << 10, gzip: true, tls: true, servers: proxied, goal: .92},
	{name: "2 KB, new connection", connections: 16, size: 2 << 10, connect: eachRequest, servers: proxied, goal: 1.45},
	{name: "2 KB, new TLS connection, ticket", connections: 16, size: 2 << 10, tls: true, connect: withTicket, servers: proxied, goal: .90},
	{name: "2 KB, new TLS connection", connections: 16, size: 2 << 10, tls: true, connect: eachRequest, servers: proxied, goal: .90},
	{name: "304", connections: 64, size: 2 << 10, conditional: true, servers: []string{gridcast, nginx, lighttpd}}, // the others have no ETag
	// The others compute no countdown. fasthttp writes a constant of about the same size.
	{name: "next-race", connections: 64, size: 300, nextRace: true, servers: []string{gridcast, fasthttp}},
}
