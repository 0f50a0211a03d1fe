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
)

// deadStore is a store that does not answer readers.
type deadStore struct{ blob.Store }

var errDead = errors.New("connection refused")

func (deadStore) Get(context.Context, string, int64) (blob.Object, error) {
	return blob.Object{}, errDead
}

func (deadStore) Watch(context.Context, string, blob.Tag, int64) (blob.Object, error) {
	return blob.Object{}, errDead
}

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
		d.Store = deadStore{d.Store}
		s.copied = true
	})
	second.key = first.key
	if got := second.get("/api/v1/calendar"); string(got.body) != string(want.body) {
		t.Errorf("got %d %s, want %s", got.StatusCode, got.body, want.body)
	}
	second.await("problem told", func() bool {
		s := second.edge.Status()
		return s.StoreProblem != "" && s.Keys.Problem != ""
	})
	if body := second.do("GET", "/status").body; bytes.Contains(body, []byte(errDead.Error())) {
		t.Errorf("strangers are told about the storage: %s", body)
	}
	if s := second.edge.Status(); !s.Keys.FromCopy || !s.Ready {
		t.Errorf("got status %+v, want it ready from the copy", s)
	}
}
