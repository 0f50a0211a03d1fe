package main

import (
	"net"
	"testing"

	"gridcast/deploy/must"
)

// TestMetricsByDefault starts serve without an admin address: it shows its metrics on loopback, or says that the port is
// taken and serves all the same.
func TestMetricsByDefault(t *testing.T) {
	if testing.Short() {
		t.Skip("short: starts a process")
	}
	const shown, taken = "edge shows metrics", "metrics are not served"
	dir := t.TempDir()
	newKey(t, dir, "dir:store", "pro")
	serve := []string{"serve", "--store", "dir:store", "--archive", seasons(t, 2025, 2025), "--no-sources"}
	p := startServer(t, dir, serve...)
	must.Hold(t, p.says(shown) || p.says(taken), "the server does not say where its metrics are")
	p.end(t)

	occupied, err := net.Listen("tcp", "127.0.0.1:9100")
	if err == nil { // else another process has the port, which is as good
		defer occupied.Close()
	}
	p = startServer(t, dir, serve...)
	must.Hold(t, p.says(taken), "the server does not say that the port of its metrics is taken")
	p.end(t)
	p = startServer(t, dir, append(serve, "--admin-listen=")...)
	must.Hold(t, !p.says(shown) && !p.says(taken), "the server shows metrics that nobody wants")
	p.end(t)
}
