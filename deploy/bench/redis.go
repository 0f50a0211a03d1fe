//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"time"
)

// startRedis starts a Redis on the core of the load, where there is one, and returns what ends
// it.
func (f *fixture) startRedis(ctx context.Context) (stop func(), err error) {
	redis, err := exec.LookPath("redis-server")
	if err != nil {
		return func() {}, nil //nolint:nilerr // without Redis its rows are left out
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("port for Redis: %w", err)
	}
	args := onCore(1, []string{redis, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", f.dir})
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start Redis: %w", err)
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			f.redis = "redis://" + address
			return stop, c.Close()
		}
		if time.Now().After(deadline) {
			stop()
			return nil, fmt.Errorf("redis does not accept: %w", err)
		}
	}
}
