//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// server is how a server is started.
type server struct {
	name    string
	command []string                               // its address is added
	more    []string                               // and then these
	prepare func(address string) ([]string, error) // arguments instead of the address
	tls     bool
}

// process is a server that runs on the first core.
type process struct {
	cmd     *exec.Cmd
	address string
	tls     bool
	output  bytes.Buffer
}

// onCore puts a command on a core of its own, where there are two.
func onCore(core int, command []string) []string {
	if _, err := exec.LookPath("taskset"); err != nil || runtime.NumCPU() < 2 {
		return command
	}
	return append([]string{"taskset", "-c", strconv.Itoa(core)}, command...)
}

func (s *server) start(ctx context.Context) (*process, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args := append([]string{}, s.command...)
	if s.prepare != nil {
		more, err := s.prepare(address)
		if err != nil {
			return nil, err
		}
		args = append(args, more...)
	} else {
		args = append(append(args, address), s.more...)
	}
	args = onCore(0, args)
	p := &process{cmd: exec.CommandContext(ctx, args[0], args[1:]...), address: address, tls: s.tls}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if p.answers() {
			return p, nil
		}
		if time.Now().After(deadline) {
			p.stop()
			return nil, fmt.Errorf("%s does not answer:\n%s", s.name, p.output.String())
		}
	}
}

// answers reports whether the server answers with a success. All of them know /readyz, or
// anything.
func (p *process) answers() bool {
	c, err := net.DialTimeout("tcp", p.address, time.Second)
	if err != nil {
		return false
	}
	if p.tls {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	}
	defer func() { _ = c.Close() }()
	var head [12]byte
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte("GET /readyz HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")); err != nil {
		return false
	}
	n, err := c.Read(head[:])
	return err == nil && string(head[:n]) == "HTTP/1.1 200"
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait() // how it ends does not matter here
}

// freeAddress returns a loopback address that nobody listens on.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}
