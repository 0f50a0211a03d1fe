package edge_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
)

// TestTrust checks the states of an edge that serves signed versions alone: refused, served and stale, served and
// current.
func TestTrust(t *testing.T) {
	file := filepath.Join(t.TempDir(), "version.key")
	must.Do(t, notes.MakeKey(file, "example.com/gridcast"))
	key := must.Get(notes.ReadSigners(file))(t)
	folder := t.TempDir()
	trusting := func(c *edge.Config, _ *edge.Deps, _ *setup) { c.Trust, c.CacheDir = key.Trust(), folder }

	w := newWorld(t, withoutVersion, trusting)
	edgetest.Publish(t, w.store, 1)
	w.await("version refused", func() bool { return w.edge.Status().Refused != nil })
	s := w.edge.Status()
	must.Hold(t, s.Version == 0 && !s.Ready && s.Stale, "without a signature: version %d, ready %v, stale %v", s.Version, s.Ready, s.Stale)
	response := w.get("/status")
	must.Show(t, "/status", string(response.body), snapshots.ErrUnsigned.Error())

	sign := func(store *memblob.Store) {
		t.Helper()
		pointer, _, err := snapshots.LoadPointer(t.Context(), store)
		m, manifestErr := snapshots.LoadManifest(t.Context(), store, 0)
		note, noteErr := key.Sign(fmt.Sprintf("version %d", pointer.Version), "manifest "+pointer.Manifest,
			fmt.Sprintf("ledger %s %d %s", m.Ledger.Kind, m.Ledger.Seq, m.Ledger.Hash))
		_, createErr := store.Create(t.Context(), snapshots.NoteKey(pointer.Version), note)
		must.Do(t, errors.Join(err, manifestErr, noteErr, createErr))
	}
	sign(w.store)
	w.await("signed version served", func() bool { return w.edge.Status().Version == 1 })
	s = w.edge.Status()
	must.Hold(t, s.Stale && time.Time(s.GoodUntil).IsZero(), "without fresh.note: stale %v, good until %v", s.Stale, s.GoodUntil)
	if response := w.get("/signed/note"); response.StatusCode != http.StatusOK || !strings.HasPrefix(string(response.body), "example.com/gridcast\nversion 1\n") {
		t.Errorf("/signed/note: %d %s", response.StatusCode, response.body)
	}
	response = w.get("/log/checkpoint")
	must.Hold(t, response.StatusCode == http.StatusNotFound, "/log/checkpoint of a version without a log: %d", response.StatusCode)

	// The next edge finds the publisher's word about the version, and the highest number on disk.
	publisher := snapshots.Publisher{Store: w.store, Signers: key}
	if err := errors.Join(w.stop(), publisher.Freshen(t.Context(), func(context.Context, string) (string, error) {
		return `99 0123 ""`, nil // a list that is kept from the edge
	})); err != nil {
		t.Fatal(err)
	}
	next := newWorld(t, withoutKeys, withoutVersion, trusting, func(_ *edge.Config, d *edge.Deps, s *setup) { d.Store, s.copied = w.store, true })
	next.await("word of the publisher", func() bool { return !next.edge.Status().Stale })
	left := time.Until(time.Time(next.edge.Status().GoodUntil))
	must.Hold(t, left <= snapshots.FreshFor && left >= snapshots.FreshFor-time.Minute, "good for %v, want nearly %v", left, snapshots.FreshFor)
	next.await("an older list of keys", func() bool { return next.edge.Status().Keys.Stale })
	body := string(next.get("/status").body)
	must.Show(t, "/status", body, "list of keys with serial number 99 is current; this edge has another one, with 1")
	if s := next.edge.Status().Keys; !s.Loaded || s.Count == 0 {
		t.Errorf("an edge with an older list: %+v, want it to go on", s)
	}
	marks := string(readFile(t, filepath.Join(folder, "ratchet", "versions.json")))
	must.Show(t, "the ratchet", marks, `"number": 1`)
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(name))(t)
}
