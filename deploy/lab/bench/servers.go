//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gridcast/snapshots"
)

// with starts the servers of a case, warms each up, calls use with them and the names of those that are not installed,
// and stops them.
func (f *fixture) with(ctx context.Context, c benchCase, warmUp time.Duration, use func(started []*process, missing []string) error) error {
	var started []*process
	var missing []string
	defer func() {
		for _, s := range started {
			s.stop()
		}
	}()
	names := c.servers
	if f.before != "" {
		names = append([]string{before}, names...)
	}
	for _, name := range names {
		address, err := freeAddress()
		if err != nil {
			return err
		}
		command, err := f.command(name, c, address)
		if errors.Is(err, exec.ErrNotFound) {
			missing = append(missing, name)
			continue
		}
		if err != nil {
			return err
		}
		p, err := startProcess(ctx, name, c, address, command)
		if err != nil {
			return err
		}
		started = append(started, p)
		if err := p.settle(); err != nil {
			return err
		}
		var body []byte // nil: each server has its own
		if !c.nextRace {
			body = f.content(c)
		}
		if err := p.check(f.request(c), body); err != nil {
			return err
		}
		if _, err := f.load(ctx, p, c, warmUp, 0); err != nil {
			return fmt.Errorf("warm up %s: %w", name, err)
		}
	}
	return use(started, missing)
}

// command returns the command of a server that answers a case on an address.
func (f *fixture) command(name string, c benchCase, address string) ([]string, error) {
	switch name {
	case gridcast:
		return f.gridcast(f.binary, c, address), nil
	case before:
		return f.gridcast(f.before, c, address), nil
	case nginx:
		return f.nginx(c, address)
	case haproxy:
		return f.haproxy(c, address)
	case lighttpd:
		return f.lighttpd(c, address)
	}
	file := f.file(name + ".constant")
	if err := os.WriteFile(file, f.content(c), 0o600); err != nil {
		return nil, fmt.Errorf("constant of %s: %w", name, err)
	}
	return []string{os.Args[0], constantCommand, file, address}, nil
}

func (f *fixture) gridcast(binary string, c benchCase, address string) []string {
	command := []string{
		binary, "edge", "--store", "dir:" + f.file("store"), "--now", raceTime,
		"--tiers", unlimited + "=1000000000", "--log-format", "json", "--listen", address,
	}
	if c.tls {
		command = append(command, "--tls-cert", f.file(certFile), "--tls-key", f.file(keyFile))
	}
	return command
}

// content returns the body that a 200 of the case carries.
func (f *fixture) content(c benchCase) []byte {
	if body := f.body(c); c.gzip {
		return body.Encoded[snapshots.GZ]
	} else {
		return body.Identity
	}
}

// nginxConfig gives nginx the part of gridcast's work that it can do: keys by a map, a limit that is never
// met, the headers of the contract with a constant rate, ETags, gzip_static, TLS 1.3 with tickets.
const nginxConfig = `worker_processes 1;
daemon off;
user %[1]s;
pid %[2]s/nginx.pid;
error_log /dev/null;
worker_rlimit_nofile 12000;
events { worker_connections 11000; }
http {
  access_log off;
  client_body_temp_path %[2]s/body;
  proxy_temp_path %[2]s/proxy;
  fastcgi_temp_path %[2]s/fastcgi;
  uwsgi_temp_path %[2]s/uwsgi;
  scgi_temp_path %[2]s/scgi;
  keepalive_requests 1000000000;
  sendfile on;
  tcp_nopush on;
  gzip_static on;
  open_file_cache max=1000 inactive=1h;
  open_file_cache_valid 1h;
  map $http_x_api_key $client { default ""; %[6]s client; }
  limit_req_zone $client zone=keys:32m rate=1000000r/s;
  server {
    listen %[3]s%[5]s backlog=4096;
    %[4]s
    root %[2]s/root;
    default_type "application/json; charset=utf-8";
    add_header X-RateLimit-Limit 600;
    add_header X-RateLimit-Remaining 599;
    add_header X-RateLimit-Reset 1800000000;
    add_header Cache-Control "private, max-age=30, must-revalidate";
    add_header Vary Accept-Encoding;
    add_header X-Content-Type-Options nosniff;
    add_header Access-Control-Allow-Origin *;
    add_header Access-Control-Expose-Headers "Date, ETag, Retry-After, WWW-Authenticate, Allow, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Repr-Digest";
    location = /readyz { return 200; }
    location / {
      if ($client = "") { return 401; }
      limit_req zone=keys burst=1000000 nodelay;
    }
  }
}
`

// nginx writes the configuration and the files of a case, and returns the command.
func (f *fixture) nginx(c benchCase, address string) ([]string, error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(f.dir, "nginx-")
	if err != nil {
		return nil, fmt.Errorf("folder of nginx: %w", err)
	}
	user := "root"
	if os.Getuid() != 0 {
		user = "nobody" // nginx ignores it
	}
	certificate, ssl := "", ""
	if c.tls {
		certificate = fmt.Sprintf("ssl_certificate %s; ssl_certificate_key %s; ssl_protocols TLSv1.3; ssl_session_tickets on;", f.file(certFile), f.file(keyFile))
		ssl = " ssl"
	}
	path, _, _ := strings.Cut(f.target(c), "?")
	file := filepath.Join(dir, "root", path)
	files := map[string][]byte{
		filepath.Join(dir, "nginx.conf"): fmt.Appendf(nil, nginxConfig, user, dir, address, certificate, ssl, f.key),
		file:                             f.body(c).Identity,
	}
	if c.gzip {
		files[file+".gz"] = f.content(c)
	}
	err = os.MkdirAll(filepath.Dir(file), 0o755)
	for name, content := range files {
		err = errors.Join(err, os.WriteFile(name, content, 0o644))
	}
	if err != nil {
		return nil, fmt.Errorf("files of nginx: %w", err)
	}
	return []string{program, "-p", dir, "-c", filepath.Join(dir, "nginx.conf")}, nil
}

// haproxyConfig gives HAProxy the same work: keys by a map, a limit that is never met, the headers of the contract with a
// constant rate. HAProxy keeps the body in memory. It knows no ETag.
const haproxyConfig = `global
  nbthread 1
  maxconn 11000
  no strict-limits
  h1-case-adjust content-length Content-Length
  tune.bufsize 65536
defaults
  mode http
  timeout client 75s
  timeout connect 1s
  timeout server 1s
  option h1-case-adjust-bogus-client
frontend api
  bind %[1]s%[2]s
  stick-table type string len 64 size 100k expire 60s store http_req_rate(60s)
  http-request return status 200 if { path /readyz }
  http-request deny deny_status 401 unless { req.hdr(X-API-Key),map_str(%[3]s) -m found }
  http-request track-sc0 req.hdr(X-API-Key)
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt 1000000000 }
  http-request return status 200 content-type "application/json; charset=utf-8" file %[4]s hdr X-RateLimit-Limit 600 hdr X-RateLimit-Remaining 599 hdr X-RateLimit-Reset 1800000000 hdr Cache-Control "private, max-age=30, must-revalidate" hdr Vary Accept-Encoding hdr X-Content-Type-Options nosniff hdr Access-Control-Allow-Origin *%[5]s
`

// haproxy writes the configuration and the files of a case, and returns the command.
func (f *fixture) haproxy(c benchCase, address string) ([]string, error) {
	program, err := exec.LookPath("haproxy")
	if err != nil {
		return nil, err
	}
	config, keys, body, pair := f.file("haproxy.cfg"), f.file("haproxy.map"), f.file("haproxy.body"), f.file("haproxy.pem")
	certificate, certErr := os.ReadFile(f.file(certFile))
	private, keyErr := os.ReadFile(f.file(keyFile))
	ssl, coding := "", ""
	if c.tls {
		ssl = " ssl crt " + pair + " ssl-min-ver TLSv1.3"
	}
	if c.gzip {
		coding = " hdr Content-Encoding gzip"
	}
	if err := errors.Join(certErr, keyErr,
		os.WriteFile(pair, append(certificate, private...), 0o600),
		os.WriteFile(keys, []byte(f.key+" client\n"), 0o600),
		os.WriteFile(body, f.content(c), 0o600),
		os.WriteFile(config, fmt.Appendf(nil, haproxyConfig, address, ssl, keys, body, coding), 0o600)); err != nil {
		return nil, fmt.Errorf("files of HAProxy: %w", err)
	}
	return []string{program, "-db", "-f", config}, nil
}

// lighttpdConfig gives lighttpd the part of the work that it can do: one key, the headers of the contract with a constant
// rate, ETags. It has no limit for each key.
const lighttpdConfig = `server.bind = "%[1]s"
server.port = %[2]s
server.document-root = "%[3]s"
server.modules = ("mod_access", "mod_setenv")
server.max-fds = 12000
server.max-connections = 11000
server.max-keep-alive-requests = 65535
mimetype.assign = ("" => "application/json; charset=utf-8")
setenv.add-response-header = (
  "X-RateLimit-Limit" => "600",
  "X-RateLimit-Remaining" => "599",
  "X-RateLimit-Reset" => "1800000000",
  "Cache-Control" => "private, max-age=30, must-revalidate",
  "Vary" => "Accept-Encoding",
  "X-Content-Type-Options" => "nosniff",
  "Access-Control-Allow-Origin" => "*",
  "Access-Control-Expose-Headers" => "Date, ETag, Retry-After, WWW-Authenticate, Allow, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Repr-Digest"%[5]s
)
$HTTP["url"] != "/readyz" {
  $REQUEST_HEADER["X-API-Key"] != "%[4]s" { url.access-deny = ("") }
}
`

// lighttpd writes the configuration and the files of a case, and returns the command.
func (f *fixture) lighttpd(c benchCase, address string) ([]string, error) {
	program, err := exec.LookPath("lighttpd")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(f.dir, "lighttpd-")
	if err != nil {
		return nil, fmt.Errorf("folder of lighttpd: %w", err)
	}
	coding := ""
	if c.gzip {
		coding = `, "Content-Encoding" => "gzip"`
	}
	host, port, _ := strings.Cut(address, ":")
	path, _, _ := strings.Cut(f.target(c), "?")
	config, root := filepath.Join(dir, "lighttpd.conf"), filepath.Join(dir, "root")
	file := filepath.Join(root, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
		os.WriteFile(file, f.content(c), 0o644),
		os.WriteFile(filepath.Join(root, "readyz"), nil, 0o644),
		os.WriteFile(config, fmt.Appendf(nil, lighttpdConfig, host, port, root, f.key, coding), 0o644)); err != nil {
		return nil, fmt.Errorf("files of lighttpd: %w", err)
	}
	return []string{program, "-D", "-f", config}, nil
}
