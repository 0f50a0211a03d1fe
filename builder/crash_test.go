package builder_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/proof"
	"gridcast/builder/tiles"
	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/blobtest"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
)

// clone returns a store with the objects of another.
func clone(t *testing.T, s blob.Store) *memblob.Store {
	t.Helper()
	c := memblob.New()
	blobtest.Copy(t, c, s)
	return c
}

func mustAudit(t *testing.T, store blob.Store) proof.Audit {
	t.Helper()
	return must.Get(proof.AuditStore(t.Context(), store))(t)
}

// blamed is the first fault of an audit as text.
func blamed(a proof.Audit) string {
	if a.Green() {
		return "nothing"
	}
	return a.Faults[0].String()
}

// logged returns the number of files in the public log of the current version. It checks that tiles and checkpoint
// are those of the first files of the ledger.
func logged(t *testing.T, store blob.Store, key *notes.Signers) int64 {
	t.Helper()
	base := must.Get(snapshots.LoadBase(t.Context(), store, nil))(t)
	body := func(path string) []byte {
		entry, ok := base.Entry(path)
		if !ok {
			t.Fatalf("version %d has no %s", base.Pointer.Version, path)
		}
		return must.Get(base.Body(t.Context(), entry))(t)
	}
	checkpoint := body(tiles.Checkpoint)
	_, size, _, err := tiles.ReadCheckpoint(checkpoint, key.Trust())
	if err != nil || size != base.Manifest.Ledger.Seq {
		t.Errorf("version %d has %d files of the ledger, its log %d, %v", base.Pointer.Version, base.Manifest.Ledger.Seq, size, err)
	}
	l := must.Get(ledger.Load(t.Context(), store, ledger.AnyKind))(t)
	stored := map[string][]byte{}
	for _, entry := range base.Manifest.Entries {
		if strings.HasPrefix(entry.Path, snapshots.LogFolder) {
			stored[entry.Path] = body(entry.Path)
		}
	}
	again, err := tiles.Remake(l.Files()[:size], l.UpTo(size), stored)
	if err != nil || len(again) < 3 {
		t.Errorf("log of %d files: %v", len(again), err)
	}
	for path, data := range stored {
		if !bytes.Equal(data, again[path]) {
			t.Errorf("version %d: %s is not that of the ledger", base.Pointer.Version, path)
		}
	}
	if len(again) != len(stored) {
		t.Errorf("version %d has %d files of the log, made again %d", base.Pointer.Version, len(stored), len(again))
	}
	return size
}

// A builder with a due pick is killed at each of its writes in turn, to the ledger and to the signed version with the
// public log. Then another builder starts. No version ever shows a pick that the ledger lacks, and in the end ledger
// and version have the pick once. The log of a version is that of its ledger, and never gets shorter.
func TestCrashAtEveryWriteOfABuild(t *testing.T) {
	if testing.Short() {
		t.Skip("builds some fifty versions")
	}
	w := newWeekend(t, asItWas)
	before := austriaQualified.Add(-time.Hour)
	key := versionKey(t)
	begin := w.builder()
	begin.Signers = key
	build(t, begin, before)
	length := logged(t, w.Store, key)
	facts, err := begin.Facts(t.Context()) // no process changes the archive
	must.Do(t, err)
	at := austriaQualified
	for _, applied := range []bool{false, true} {
		positions := 0
		for n := 1; ; n++ {
			inner := clone(t, w.Store)
			store, died := faultblob.Mortal(inner, n, applied)
			// process starts on a store, with its own ledger and builder.
			process := func(s blob.Store) *builder.Builder {
				return &builder.Builder{
					Store: s, Signers: key, Ledger: must.Get(ledger.Load(t.Context(), s, ledger.Simulated))(t), Policy: w.Policy, Name: "test", Log: slog.New(slog.DiscardHandler),
					Facts: func(context.Context) (archive.Stored, error) { return facts, nil },
				}
			}
			first := process(store)
			_, err := first.Build(t.Context(), builder.Request{At: at})
			if died() != (err != nil) {
				t.Fatalf("write %d, applied %v: killed %v, and the build says %v", n, applied, died(), err)
			}
			what := fmt.Sprintf("killed at write %d, applied %v", n, applied)
			second := process(inner)
			if audit := mustAudit(t, inner); !audit.Green() {
				t.Errorf("%s: the audit blames %s", what, blamed(audit))
			}
			if now := logged(t, inner, key); now < length {
				t.Errorf("%s: the log has %d files, before it had %d", what, now, length)
			}
			build(t, second, at)
			if now := logged(t, inner, key); now <= length {
				t.Errorf("%s, and built again: the log has %d files, before it had %d", what, now, length)
			}
			if audit := mustAudit(t, inner); !audit.Green() || len(audit.Picks) != 1 || audit.Served < 2 {
				t.Errorf("%s, and built again: the audit blames %s, %d picks frozen, %d served", what, blamed(audit), len(audit.Picks), audit.Served)
			}
			if err == nil {
				if again := build(t, second, at); !again.Unchanged || len(again.Events) > 0 {
					t.Errorf("another build still finds something to do: %+v", again)
				}
				break
			}
			positions = n
		}
		if positions < 6 { // a pick, a claim, bodies, a manifest, the pointer
			t.Errorf("the builder was killed at %d writes only", positions)
		}
	}
}
