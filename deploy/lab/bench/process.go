//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a server on the first core.
type process struct {
	name    string
	cmd     *exec.Cmd
	pid     int
	address string
	tls     bool
	tag     string // the ETag of its answer
	output  bytes.Buffer
}

// onCore pins a command to a core, if there are two.
func onCore(core int, command []string) []string {
	if _, err := exec.LookPath("taskset"); err != nil || runtime.NumCPU() < 2 {
		return command
	}
	return append([]string{"taskset", "-c", strconv.Itoa(core)}, command...)
}

// startProcess starts a server and waits until it answers.
func startProcess(ctx context.Context, name string, c benchCase, address string, command []string) (*process, error) {
	args := onCore(0, command)
	p := &process{name: name, cmd: exec.CommandContext(ctx, args[0], args[1:]...), address: address, tls: c.tls}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.pid = p.cmd.Process.Pid
	for deadline := time.Now().Add(30 * time.Second); !p.ready(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.stop()
			return nil, fmt.Errorf("%s does not answer:\n%s", name, p.output.String())
		}
	}
	return p, nil
}

// settle waits until the server is idle for two seconds, for a minute at most: an edge makes its downloads after the start.
func (p *process) settle() error {
	const quiet, step = 8, 250 * time.Millisecond
	for idle, last, left := 0, time.Duration(0), 240; idle < quiet && left > 0; left-- {
		used, err := p.cpu()
		if err != nil {
			return err
		}
		if idle++; used-last > step/50 {
			idle = 0
		}
		last = used
		time.Sleep(step)
	}
	return nil
}

// ready reports whether the server answers /readyz with 200.
func (p *process) ready() bool {
	scheme := "http"
	if p.tls {
		scheme = "https"
	}
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}}}
	answer, err := client.Get(scheme + "://" + p.address + "/readyz")
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// check keeps the ETag of the answer to a request, and compares its body, so that all servers do the same work.
func (p *process) check(request, body []byte) error {
	dial := net.Dial
	if p.tls {
		dial = func(network, address string) (net.Conn, error) {
			return tls.Dial(network, address, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
		}
	}
	c, err := dial("tcp", p.address)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write(request); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return fmt.Errorf("answer of %s: %w", p.name, err)
	}
	got, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || body != nil && !bytes.Equal(got, body)) {
		err = fmt.Errorf("%s answers %s with %d bytes, want the %d bytes that every server serves", p.name, answer.Status, len(got), len(body))
	}
	p.tag = answer.Header.Get("ETag")
	return errors.Join(err, answer.Body.Close())
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Wait() // its exit status does not matter
}

// pids returns the numbers of the server's process and its children.
func (p *process) pids() ([]string, error) {
	pid := strconv.Itoa(p.pid)
	children, err := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	if err != nil {
		return nil, fmt.Errorf("children of %s: %w", p.name, err)
	}
	return append(strings.Fields(string(children)), pid), nil
}

// cpu returns the CPU time that the threads of the server and of its children have used, from the
// scheduler's account in nanoseconds (proc(5), schedstat). Threads of a loaded server do not end.
func (p *process) cpu() (total time.Duration, err error) {
	pids, err := p.pids()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		threads, err := filepath.Glob(filepath.Join("/proc", pid, "task", "*", "schedstat"))
		if err != nil || len(threads) == 0 {
			return 0, fmt.Errorf("CPU time of %s: process %s has no schedstat", p.name, pid)
		}
		for _, thread := range threads {
			stat, err := os.ReadFile(thread)
			if err != nil {
				return 0, fmt.Errorf("CPU time of %s: %w", p.name, err)
			}
			running, _, _ := strings.Cut(string(stat), " ")
			nanoseconds, err := strconv.ParseInt(running, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("CPU time of %s: %w", p.name, err)
			}
			total += time.Duration(nanoseconds)
		}
	}
	return total, nil
}

// freeAddress returns a loopback address with a free port.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}
