package edge_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
)

var errDead = errors.New("connection refused")

// dead is the store of that name, which does not answer.
func dead(store blob.Store) blob.Store {
	return named{faultblob.Wrap(store, func(context.Context, faultblob.Call) faultblob.Fate { return faultblob.Fate{Err: errDead} }), store.String()}
}

type named struct {
	blob.Store
	name string
}

func (n named) String() string { return n.name }

// TestStartWithoutStorage starts an edge from another edge's copy on disk.
func TestStartWithoutStorage(t *testing.T) {
	dir := t.TempDir()
	cached := func(c *edge.Config, _ *edge.Deps, _ *setup) { c.CacheDir = dir }
	first := newWorld(t, cached)
	want := first.get("/api/v1/calendar")
	first.stopWithCopy(dir)
	second := newWorld(t, cached, withoutKeys, withoutVersion, func(_ *edge.Config, d *edge.Deps, s *setup) {
		d.Store = dead(d.Store)
		s.copied = true
	})
	second.key = first.key
	got := second.get("/api/v1/calendar")
	must.Hold(t, string(got.body) == string(want.body), "got %d %s, want %s", got.StatusCode, got.body, want.body)
	second.await("problem told", func() bool {
		s := second.edge.Status()
		return s.StoreProblem != "" && s.Keys.Problem != ""
	})
	body := second.do("GET", "/status").body
	must.Hold(t, !bytes.Contains(body, []byte(errDead.Error())), "strangers are told about the storage: %s", body)
	s := second.edge.Status()
	must.Hold(t, s.Keys.FromCopy && s.Ready, "got status %+v, want it ready from the copy", s)
}

// stopWithCopy stops the edge when its copy is in the folder.
func (w *world) stopWithCopy(dir string) {
	w.t.Helper()
	for _, file := range []string{"version/current.json", "keys/keys.json"} { // written by two goroutines
		w.await("copy on disk: "+file, func() bool {
			_, err := os.Stat(filepath.Join(dir, file))
			return err == nil
		})
	}
	must.Do(w.t, w.stop())
}

// TestRestartWaitsForTheCopy has clients that ask a restarted edge before it has loaded its copy. The copy is slower than
// the wait for the store, which does not answer.
func TestRestartWaitsForTheCopy(t *testing.T) {
	dir := t.TempDir()
	cached := func(c *edge.Config, _ *edge.Deps, _ *setup) { c.CacheDir = dir }
	first := newWorld(t, cached)
	first.stopWithCopy(dir)
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	client := must.Get(net.Dial("tcp", listener.Addr().String()))(t)
	defer func() { _ = client.Close() }()
	_ = must.Get(io.WriteString(client, request("GET", "/api/v1/calendar", "X-API-Key: "+first.key["pro"])))(t)
	newWorld(t, cached, withoutKeys, withoutVersion, func(_ *edge.Config, d *edge.Deps, s *setup) {
		d.Store, d.Listener = dead(d.Store), listener
		s.copied, s.impatient = true, true
	})
	got := must.Get(read(bufio.NewReader(client), "GET"))(t)
	must.Hold(t, got.StatusCode == http.StatusOK, "got %d %s from an edge with a copy", got.StatusCode, got.body)
}
