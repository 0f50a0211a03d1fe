package edge_test

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/snapshots/blob/memblob"
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

// TestOutOfDescriptors shows that an edge which cannot accept continues as soon as it can.
func TestOutOfDescriptors(t *testing.T) {
	inner := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	listener := &exhausted{Listener: inner}
	w := newWorld(t, func(_ *edge.Config, d *edge.Deps, _ *setup) { d.Listener = listener })
	for range 3 {
		r := w.get("/api/v1/calendar")
		must.Hold(t, r.StatusCode == http.StatusOK, "got %d", r.StatusCode)
	}
	if listener.failed.Load() < 9 {
		t.Errorf("accepting failed %d times, want 9 or more", listener.failed.Load())
	}
}

// TestAdminAddressInUse shows that an edge which cannot open its admin port accepts no connections of the API.
func TestAdminAddressInUse(t *testing.T) {
	listen := func() net.Listener {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	api, taken := listen(), listen()
	cfg := edge.DefaultConfig()
	cfg.AdminListen = taken.Addr().String()
	e := must.Get(edge.New(cfg, edge.Deps{Store: memblob.New(), Log: discard, Listener: api}))(t)
	golden.Sentence(t, "the admin address is in use", e.Run(t.Context()), taken.Addr().String(), "ADDRESS")
	if c, err := net.Dial("tcp", api.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("the API still accepts connections, and nobody answers them")
	}
}

func TestConnectionBound(t *testing.T) {
	for _, tt := range []struct {
		configured int
		files      uint64
		want       int
	}{
		{50_000, 1 << 20, 50_000},
		{50_000, 50_256, 50_000},
		{50_000, 50_000, 49_744},
		{50_000, 1024, 768},
		{50_000, 256, 128},
		{50_000, 1, 1},
		{100, 1 << 63, 100},
	} {
		must.Equal(t, fmt.Sprintf("%d configured, %d files", tt.configured, tt.files), tt.want, edge.ConnectionBound(tt.configured, tt.files))
	}
}

// TestFewDescriptors starts an edge with fewer files than its connections need.
func TestFewDescriptors(t *testing.T) {
	var before syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	few := before
	few.Cur = 1000
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	defer func() {
		must.Do(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before))
	}()
	var log must.Buffer
	w := newWorld(t, func(_ *edge.Config, d *edge.Deps, _ *setup) { d.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	got := w.edge.MaxConnections()
	must.Hold(t, got == 744, "got %d connections, want 744", got)
	must.Show(t, "the log", log.String(), "connections=744 configured=50000 open_files=1000")
}
