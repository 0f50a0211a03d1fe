package edge_test

import (
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"

	"gridcast/edge"
)

// exhausted is a listener that fails before each connection.
type exhausted struct {
	net.Listener
	failed atomic.Int32
}

func (l *exhausted) Accept() (net.Conn, error) {
	errs := []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED}
	if n := int(l.failed.Add(1)); n%4 != 0 {
		return nil, &net.OpError{Op: "accept", Err: errs[n%4-1]}
	}
	return l.Listener.Accept()
}

// TestOutOfDescriptors shows that an edge which cannot accept goes on when it can.
func TestOutOfDescriptors(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := &exhausted{Listener: inner}
	w := newWorld(t, func(_ *edge.Config, d *edge.Deps, _ *setup) { d.Listener = listener })
	for range 3 {
		if r := w.get("/api/v1/calendar"); r.StatusCode != http.StatusOK {
			t.Errorf("got %d", r.StatusCode)
		}
	}
	if listener.failed.Load() < 9 {
		t.Errorf("accepting failed %d times, want 9 or more", listener.failed.Load())
	}
}
