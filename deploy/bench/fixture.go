//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gridcast/edge/keys"
	"gridcast/schemas/catalog"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/dirblob"
)

// raceTime is when the edges of the bench stand: a Wednesday before a race, so that there is a
// countdown.
const raceTime = "2024-07-24T12:00:00Z"

// manyKeys is how many keys the case with many has.
const manyKeys = 100_000

// fixture is what all servers serve: the embedded seasons, published by the real binary.
type fixture struct {
	dir     string
	binary  string
	version *snapshots.Version
	keys    []string
	redis   string // URL; empty: there is none
}

func newFixture(ctx context.Context, dir, binary string) (*fixture, error) {
	absolute, err := filepath.Abs(binary)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", binary, err)
	}
	f := &fixture{dir: dir, binary: absolute}
	for _, store := range []string{"one", "many"} {
		build := exec.CommandContext(ctx, absolute, "build", "--store", "dir:"+f.store(store), "--now", raceTime)
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build the data: %w\n%s", err, out)
		}
	}
	store, err := dirblob.Open(f.store("one"))
	if err != nil {
		return nil, err
	}
	if f.version, err = snapshots.Open(ctx, store, nil); err != nil {
		return nil, err
	}
	if err := f.createKeys(ctx); err != nil {
		return nil, err
	}
	return f, os.WriteFile(filepath.Join(dir, "keys"), []byte(strings.Join(f.keys, "\n")+"\n"), 0o600)
}

func (f *fixture) store(name string) string { return filepath.Join(f.dir, name) }

// createKeys puts all keys into one store and the first of them into the other.
func (f *fixture) createKeys(ctx context.Context) error {
	var all keys.Document
	for range manyKeys {
		_, key, err := all.Create(keys.Request{Name: "bench", Tier: "pro"}, time.Now())
		if err != nil {
			return err
		}
		f.keys = append(f.keys, key)
	}
	for name, n := range map[string]int{"one": 1, "many": manyKeys} {
		store, err := dirblob.Open(f.store(name))
		if err != nil {
			return err
		}
		err = keys.Update(ctx, store, func(d *keys.Document) error {
			d.Keys = all.Keys[:n]
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// benchCase is one kind of request.
type benchCase struct {
	name   string
	target string
	header []string
	body   []byte // what a 200 carries; nil: no other server can answer it
	gzip   bool
	keys   int // keys used in turn
}

// cases returns those whose name begins with a text.
func (f *fixture) cases(only string) []benchCase {
	small, medium, large := f.nearest(500), f.nearest(2<<10), f.nearest(12<<10)
	gzip := []string{"Accept-Encoding: gzip"}
	all := []benchCase{
		{name: "2 KB", target: target(medium), body: medium.Identity},
		{name: "12 KB", target: target(large), body: large.Identity},
		{name: "2 KB gzip", target: target(medium), header: gzip, body: medium.Encoded[snapshots.GZ], gzip: true},
		{name: "12 KB gzip", target: target(large), header: gzip, body: large.Encoded[snapshots.GZ], gzip: true},
		{name: "small", target: target(small), body: small.Identity},
		{name: "next-race", target: catalog.BasePath + "/next-race"},
		{name: "304", target: target(medium), header: []string{`If-None-Match: "` + medium.Entry.ETag + `"`}},
		{name: "2 KB, 1 key of a list", target: target(medium), body: medium.Identity, keys: 1},
		{name: "2 KB, 100000 keys", target: target(medium), body: medium.Identity, keys: manyKeys},
	}
	var cases []benchCase
	for _, c := range all {
		if strings.HasPrefix(c.name, only) {
			cases = append(cases, c)
		}
	}
	return cases
}

// nearest returns the variant whose body is nearest to a size.
func (f *fixture) nearest(size int) *snapshots.Body {
	var best *snapshots.Body
	for _, body := range f.version.All() {
		if body.Entry.ETag != "" && (best == nil || distance(body, size) < distance(best, size)) {
			best = body
		}
	}
	return best
}

func distance(b *snapshots.Body, size int) int {
	return max(len(b.Identity)-size, size-len(b.Identity))
}

// target returns a request target that selects a body.
func target(b *snapshots.Body) string {
	variant, err := catalog.ParsePath(b.Entry.Path)
	if err != nil {
		panic("BUG: a published path: " + err.Error())
	}
	return variant.Target()
}

// servers returns those that can answer the case and whose name contains a text.
func (f *fixture) servers(c benchCase, only string) []server {
	store := "one"
	if c.keys > 1 {
		store = "many"
	}
	edge := []string{
		f.binary, "edge", "--store", "dir:" + f.store(store), "--now", raceTime,
		"--tier", "pro=1000000000", "--log-format", "json", "--listen",
	}
	all := []server{
		{name: gridcastName, command: edge},
		{name: "gridcast, lane off", command: edge, more: []string{"--express-lane", "off"}},
	}
	if f.redis != "" && c.name == "2 KB" {
		for _, mode := range []string{"lease", "strict"} {
			all = append(all, server{name: "gridcast, redis " + mode, command: edge, more: []string{"--redis", f.redis, "--redis-mode", mode}})
		}
	}
	if c.body != nil && c.keys == 0 {
		constant := func(kind string) []string {
			return []string{os.Args[0], constantCommand, kind, f.bodyFile(c)}
		}
		all = append(all, server{name: fasthttpName, command: constant("fasthttp")}, server{name: epollName, command: constant("epoll")})
	}
	if nginx, err := exec.LookPath("nginx"); err == nil && c.body != nil {
		all = append(all, server{name: nginxName, command: []string{nginx}, prepare: func(address string) ([]string, error) {
			return f.nginx(c, address)
		}})
	}
	var servers []server
	for _, s := range all {
		if strings.Contains(s.name, only) {
			servers = append(servers, s)
		}
	}
	return servers
}

// bodyFile writes the body of a case to a file and returns its name.
func (f *fixture) bodyFile(c benchCase) string {
	name := filepath.Join(f.dir, strings.ReplaceAll(c.name, " ", "-")+".body")
	if old, err := os.ReadFile(name); errors.Is(err, os.ErrNotExist) || !bytes.Equal(old, c.body) {
		if err := os.WriteFile(name, c.body, 0o600); err != nil {
			panic(fmt.Sprintf("body of a case: %v", err)) // the folder is ours
		}
	}
	return name
}
