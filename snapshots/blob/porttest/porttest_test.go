package porttest_test

import (
	"net"
	"testing"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob/porttest"
)

// Addresses differ as long as their tests run, and a server can listen at them.
func TestAddress(t *testing.T) {
	given := map[string]bool{}
	for range 200 {
		address := porttest.Address(t)
		must.Hold(t, !given[address], "%s is given out twice", address)
		given[address] = true
		listener := must.Get(net.Listen("tcp", address))(t)
		_ = listener.Close()
	}
}
