// Package porttest finds addresses for servers that tests start as separate processes. A
// server in the test's own process gets a listener instead.
package porttest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The ports lie below those that systems give to connections and to listeners without a fixed port, which begin at
// 32768 on Linux. So nobody gets the port by chance between the test's choice and the server's start. A node of a
// Redis cluster also needs the port 10,000 above its own, which lies below them as well.
const (
	lowest = 10_000
	ports  = 6_000
)

// Address returns a free loopback address, host:port. Until the test ends no
// other call returns it, in this process or in another one: the call holds the UDP port of the
// same number, which no server here uses.
func Address(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(lowest+rand.IntN(ports))) //nolint:gosec // G404: not a secret
		held, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		if listener, err := net.Listen("tcp", address); err == nil {
			_ = listener.Close()
			t.Cleanup(func() { _ = held.Close() })
			return address
		}
		_ = held.Close()
	}
	t.Fatalf("no free port found from %d to %d", lowest, lowest+ports-1)
	return ""
}
