// Package porttest finds addresses for servers that tests start as processes of their own. A
// server in the test's own process is handed a listener instead.
package porttest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The ports that are given out lie below those that systems give to connections and to listeners
// that do not care, which begin at 32768 on Linux: between the test's choice and the server's
// start nobody gets the port by chance. A node of a Redis cluster needs the port 10,000 above its
// own too, which lies below them as well.
const (
	lowest = 10_000
	ports  = 6_000
)

// Address returns a loopback address, host:port, at which nobody listens. Until the test ends no
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
