package porttest_test

import (
	"net"
	"testing"

	"gridcast/snapshots/blob/porttest"
)

// Addresses are different as long as their test runs, and can be listened at.
func TestAddress(t *testing.T) {
	given := map[string]bool{}
	for range 200 {
		address := porttest.Address(t)
		if given[address] {
			t.Errorf("%s is given out twice", address)
		}
		given[address] = true
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = listener.Close()
	}
}
