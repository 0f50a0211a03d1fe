//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The names of the servers.
const (
	gridcastName = "gridcast"
	beforeName   = "gridcast, before"
	laneOffName  = "gridcast, lane off"
	leaseName    = "gridcast, redis lease"
	strictName   = "gridcast, redis strict"
	fasthttpName = "fasthttp constant"
	epollName    = "epoll constant"
	nginxName    = "nginx"
)

// servers returns those of a case whose name contains a text. Of what is not installed there
// is none.
func (f *fixture) servers(c benchCase, only string) []server {
	var servers []server
	names := c.servers
	if f.before != "" && slices.Contains(names, gridcastName) {
		names = append(slices.Clip(names), beforeName)
	}
	for _, name := range names {
		if s, installed := f.server(name, c); installed && strings.Contains(name, only) {
			servers = append(servers, s)
		}
	}
	return servers
}

// server returns how a server is started to answer a case.
func (f *fixture) server(name string, c benchCase) (s server, installed bool) {
	switch name {
	case gridcastName:
		return f.gridcast(name, c), true
	case beforeName:
		s := f.gridcast(name, c)
		s.command[0] = f.before
		return s, true
	case laneOffName:
		return f.gridcast(name, c, "--express-lane", "off"), true
	case leaseName:
		return f.gridcast(name, c, "--redis", f.redis, "--redis-mode", "lease"), f.redis != ""
	case strictName:
		return f.gridcast(name, c, "--redis", f.redis, "--redis-mode", "strict"), f.redis != ""
	case fasthttpName:
		return f.constant(name, c, fasthttpConstant), true
	case epollName:
		return f.constant(name, c, epollConstant), true
	case nginxName:
		nginx, err := exec.LookPath("nginx")
		return server{name: name, tls: c.tls, command: []string{nginx}, prepare: func(address string) ([]string, error) {
			return f.nginx(c, address)
		}}, err == nil
	}
	panic("BUG: no server " + name)
}

func (f *fixture) gridcast(name string, c benchCase, more ...string) server {
	store := "one"
	if c.keys > 1 {
		store = "many"
	}
	if c.tls {
		more = append(more, "--tls-cert", f.file(certFile), "--tls-key", f.file(keyFile))
	}
	return server{name: name, tls: c.tls, more: more, command: []string{
		f.binary, "edge", "--store", "dir:" + f.store(store), "--now", raceTime,
		"--tier", "pro=1000000000", "--log-format", "json", "--listen",
	}}
}

func (f *fixture) constant(name string, c benchCase, kind string) server {
	return server{name: name, command: []string{os.Args[0], constantCommand, kind}, prepare: func(address string) ([]string, error) {
		constant, file := c.body, filepath.Join(f.dir, kind+".constant")
		if kind == epollConstant {
			constant = f.whole(c)
		}
		if err := os.WriteFile(file, constant, 0o600); err != nil {
			return nil, fmt.Errorf("constant of a server: %w", err)
		}
		return []string{file, address}, nil
	}}
}

// whole returns what gridcast answers in a case whose body is stored and not compressed.
func (f *fixture) whole(c benchCase) []byte {
	for body, response := range f.responses.static {
		if target(body) == c.target {
			return response
		}
	}
	panic("BUG: no stored response in the case " + c.name)
}
