//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// pids returns the process and its children, such as the worker of nginx.
func (p *process) pids() ([]string, error) {
	pid := strconv.Itoa(p.cmd.Process.Pid)
	children, err := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	if err != nil {
		return nil, fmt.Errorf("children of the server: %w", err)
	}
	return append(strings.Fields(string(children)), pid), nil
}

// cpu returns the processor time that the server's threads have used, by the scheduler's own
// account, which is in nanoseconds. Of a thread that has ended it knows nothing any more; those
// of a server under load do not end.
func (p *process) cpu() (time.Duration, error) {
	pids, err := p.pids()
	if err != nil {
		return 0, err
	}
	total := time.Duration(0)
	for _, pid := range pids {
		threads, err := filepath.Glob(filepath.Join("/proc", pid, "task", "*", "schedstat"))
		if err != nil || len(threads) == 0 {
			return 0, fmt.Errorf("processor time of the server: process %s has no schedstat", pid)
		}
		for _, thread := range threads {
			stat, err := os.ReadFile(thread)
			if err != nil {
				return 0, fmt.Errorf("processor time of the server: %w", err)
			}
			running, _, _ := strings.Cut(string(stat), " ")
			nanoseconds, err := strconv.ParseInt(running, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("processor time of the server: %w", err)
			}
			total += time.Duration(nanoseconds)
		}
	}
	return total, nil
}

// memory returns how many bytes of the server are resident.
func (p *process) memory() (int64, error) {
	pids, err := p.pids()
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for _, pid := range pids {
		status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
		if err != nil {
			return 0, fmt.Errorf("memory of the server: %w", err)
		}
		_, rest, _ := bytes.Cut(status, []byte("VmRSS:"))
		kilobytes, _, _ := bytes.Cut(rest, []byte("kB"))
		n, err := strconv.ParseInt(string(bytes.TrimSpace(kilobytes)), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("memory of the server: %w", err)
		}
		total += n << 10
	}
	return total, nil
}
