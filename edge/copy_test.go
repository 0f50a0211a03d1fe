package edge_test

import (
	"bytes"
	"context"
	"errors"
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
	first.await("copy on disk", func() bool {
		_, err := os.Stat(filepath.Join(dir, "version", "current.json"))
		return err == nil
	})
	must.Do(t, first.stop())
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
