// Package redistest starts a real Redis for tests.
package redistest

import (
	"net"
	"os/exec"
	"syscall"
	"testing"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob/porttest"
)

// Server is a Redis on a free port of this machine, which ends with the test.
type Server struct {
	Address string // host:port

	arguments []string
	process   *exec.Cmd
}

// New starts a Redis that stores nothing, with more options of its command line. It skips the test where there is none.
func New(t testing.TB, options ...string) *Server {
	t.Helper()
	address := porttest.Address(t)
	_, port, _ := net.SplitHostPort(address)
	return Run(t, address, append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir()}, options...)...)
}

// Run starts redis-server with arguments that have it listen at the address.
func Run(t testing.TB, address string, arguments ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skipf("no redis-server here: %v", err)
	}
	s := &Server{Address: address, arguments: arguments}
	s.Start(t)
	t.Cleanup(s.Kill)
	return s
}

// Start starts the server, also again after Kill, and waits until it accepts.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	s.process = exec.Command("redis-server", s.arguments...)
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it must not survive a killed test binary
	must.Do(t, s.process.Start())
	must.Until(t, "redis accepts", func() bool {
		c, err := net.Dial("tcp", s.Address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// Signal sends a signal to the process.
func (s *Server) Signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	must.Do(t, s.process.Process.Signal(sig))
}

// Kill ends the server at once.
func (s *Server) Kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait() // the error reports the kill
}
