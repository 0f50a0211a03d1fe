//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gridcast/snapshots"
)

// nginxConfig does with nginx what can be done of gridcast's work: keys by a map, a limit that
// is never met, the headers of the contract, with the rate as constants.
const nginxConfig = `worker_processes 1;
daemon off;
user %[1]s;
pid %[2]s/nginx.pid;
error_log /dev/null;
worker_rlimit_nofile %[4]d;
events { worker_connections 16384; }
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
  map_hash_max_size 262144;
  map_hash_bucket_size 128;
  map $http_x_api_key $client { default ""; include %[2]s/keys.map; }
  limit_req_zone $client zone=keys:32m rate=1000000r/s;
  server {
    listen %[3]s backlog=4096%[5]s
    root %[2]s/root;
    default_type "application/json; charset=utf-8";
    add_header X-RateLimit-Limit 600;
    add_header X-RateLimit-Remaining 599;
    add_header X-RateLimit-Reset 1800000000;
    add_header Cache-Control "private, max-age=30, must-revalidate";
    add_header Vary Accept-Encoding;
    add_header X-Content-Type-Options nosniff;
    add_header Access-Control-Allow-Origin *;
    add_header Access-Control-Expose-Headers "Date, ETag, Retry-After, WWW-Authenticate, Allow, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset";
    location = /readyz { return 200; }
    location / {
      if ($client = "") { return 401; }
      limit_req zone=keys burst=1000000 nodelay;
    }
  }
}
`

// nginx writes the configuration and the files of a case, and returns the arguments of nginx.
func (f *fixture) nginx(c benchCase, address string) ([]string, error) {
	_, port, _ := strings.Cut(address, ":")
	dir := filepath.Join(f.dir, "nginx-"+port) // several of them may run
	path, _, _ := strings.Cut(c.target, "?")
	file := filepath.Join(dir, "root", path)
	var lines strings.Builder
	for i, key := range f.keys[:max(1, c.keys)] {
		fmt.Fprintf(&lines, "%s c%d;\n", key, i)
	}
	limit, err := fileLimit()
	if err != nil {
		return nil, err
	}
	user := "root"
	if os.Getuid() != 0 {
		user = "nobody" // it is not looked at
	}
	listen := ";"
	if c.tls {
		listen = fmt.Sprintf(" ssl;\n    ssl_certificate %s;\n    ssl_certificate_key %s;\n    ssl_protocols TLSv1.3;\n    ssl_session_tickets on;",
			f.file(certFile), f.file(keyFile))
	}
	plain := c.body
	files := map[string][]byte{
		filepath.Join(dir, "nginx.conf"): fmt.Appendf(nil, nginxConfig, user, dir, address, limit, listen),
		filepath.Join(dir, "keys.map"):   []byte(lines.String()),
	}
	if c.gzip {
		body, err := f.identity(c)
		if err != nil {
			return nil, err
		}
		plain, files[file+".gz"] = body.Identity, c.body
	}
	files[file] = plain
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("old files of nginx: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return nil, fmt.Errorf("folder of nginx: %w", err)
	}
	for name, content := range files {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return nil, fmt.Errorf("file of nginx: %w", err)
		}
	}
	return []string{"-p", dir, "-c", filepath.Join(dir, "nginx.conf")}, nil
}

// identity finds the body that a case's target selects.
func (f *fixture) identity(c benchCase) (*snapshots.Body, error) {
	for body := range f.bodies() {
		if target(body) == c.target {
			return body, nil
		}
	}
	return nil, fmt.Errorf("no variant for %s", c.target)
}
