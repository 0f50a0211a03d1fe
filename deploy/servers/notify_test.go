package servers

import (
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
)

// TestNotifyStarted: systemd hears that a server is ready once it has a version. Without one it hears that before it would
// end the server after 90 s.
func TestNotifyStarted(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	systemd := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"}))(t)
	t.Cleanup(func() { _ = systemd.Close() })
	t.Setenv("NOTIFY_SOCKET", socket)
	heard := func() string {
		t.Helper()
		state := make([]byte, 100)
		n := must.Get(systemd.Read(state))(t)
		return string(state[:n])
	}
	version := make(chan struct{})
	close(version)
	for _, test := range []struct {
		name    string
		started chan struct{}
		after   time.Duration
	}{{"a version", version, 0}, {"no version", nil, startWait}} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			notifyStarted(t.Context(), test.started, slog.New(slog.DiscardHandler))
			if took := time.Since(began); took != test.after || took >= 90*time.Second {
				t.Errorf("%s: systemd is told after %v, want %v", test.name, took, test.after)
			}
		})
		if got := heard(); got != "READY=1" {
			t.Errorf("%s: systemd heard %q", test.name, got)
		}
		if got := heard(); got != "STOPPING=1" {
			t.Errorf("%s: at the end of the context systemd heard %q", test.name, got)
		}
	}
}
