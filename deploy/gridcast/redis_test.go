package main

import (
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob/porttest"
)

// startRedis starts a Redis on a free port and returns its address.
func startRedis(t testing.TB, options ...string) string {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skipf("no redis-server here: %v", err)
	}
	address := porttest.Address(t)
	_, port, _ := strings.Cut(address, ":")
	cmd := exec.Command("redis-server", append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir()}, options...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	must.Until(t, "redis accepts", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return address
}
