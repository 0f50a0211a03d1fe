//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// idleConnections is the number of connections whose memory the bench measures.
const idleConnections = 10_000

// idle returns a sentence with the resident memory of an idle connection in each server, five seconds after its request.
func (f *fixture) idle(ctx context.Context) (string, error) {
	c := cases[0]
	var parts []string
	err := f.with(ctx, c, time.Second, func(servers []*process, missing []string) error {
		for _, name := range missing {
			parts = append(parts, name+" is not installed")
		}
		for _, s := range servers {
			each, err := f.idleOf(s, c)
			if err != nil {
				return fmt.Errorf("idle connections of %s: %w", s.name, err)
			}
			parts = append(parts, fmt.Sprintf("%s %.1f KB", s.name, each))
		}
		return nil
	})
	return fmt.Sprintf("%d idle connections, each: %s", idleConnections, strings.Join(parts, ", ")), err
}

func (f *fixture) idleOf(p *process, c benchCase) (kilobytes float64, err error) {
	empty, err := p.resident()
	if err != nil {
		return 0, err
	}
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			_ = conn.Close()
		}
	}()
	buffer := make([]byte, 64<<10)
	for range idleConnections {
		conn, err := net.Dial("tcp", p.address)
		if err != nil {
			return 0, err
		}
		open = append(open, conn)
		_, writeErr := conn.Write(f.request(c))
		if _, err := conn.Read(buffer); err != nil || writeErr != nil {
			return 0, errors.Join(writeErr, err)
		}
	}
	time.Sleep(5 * time.Second)
	full, err := p.resident()
	return float64(full-empty) / idleConnections, err
}

// resident returns the resident memory of the server and its children in kilobytes.
func (p *process) resident() (kilobytes int, err error) {
	pids, err := p.pids()
	for _, pid := range pids {
		status, readErr := os.ReadFile(filepath.Join("/proc", pid, "status"))
		_, line, _ := strings.Cut(string(status), "VmRSS:")
		line, _, _ = strings.Cut(line, "kB")
		n, parseErr := strconv.Atoi(strings.TrimSpace(line))
		err = errors.Join(err, readErr, parseErr)
		kilobytes += n
	}
	return kilobytes, err
}
