package builder_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// clone returns a store with the objects of another.
func clone(t *testing.T, s blob.Store) *memblob.Store {
	t.Helper()
	c := memblob.New()
	for info, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		object, err := s.Get(t.Context(), info.Key, math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Create(t.Context(), info.Key, object.Data); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// A builder with a due pick is killed at each of its writes in turn, to the ledger and to the version.
// Then another builder starts. No version ever shows a pick that the ledger lacks, and in the end ledger
// and version have the pick once.
func TestCrashAtEveryWriteOfABuild(t *testing.T) {
	if testing.Short() {
		t.Skip("builds some fifty versions")
	}
	w := newWeekend(t, asItWas)
	before := austriaQualified.Add(-time.Hour)
	build(t, w.builder(), before)
	at := austriaQualified
	for _, applied := range []bool{false, true} {
		positions := 0
		for n := 1; ; n++ {
			inner := clone(t, w.store)
			store, died := faultblob.Mortal(inner, n, applied)
			// process starts on a store, with its own ledger and builder.
			process := func(s blob.Store) (*weekend, *builder.Builder) {
				p := &weekend{t: t, store: s, archive: w.archive, policy: w.policy}
				var err error
				if p.ledger, err = ledger.Load(t.Context(), s, ledger.Simulated); err != nil {
					t.Fatal(err)
				}
				b := *w.builder()
				b.Store, b.Ledger, b.Facts = s, p.ledger, archive.NewStore(s).Load
				return p, &b
			}
			_, first := process(store)
			_, err := first.Build(t.Context(), builder.Request{At: at})
			if died() != (err != nil) {
				t.Fatalf("write %d, applied %v: killed %v, and the build says %v", n, applied, died(), err)
			}
			what := fmt.Sprintf("killed at write %d, applied %v", n, applied)
			p, second := process(inner)
			if audit := mustAudit(t, p); !audit.Green() {
				t.Errorf("%s: the audit blames %s", what, blamed(audit))
			}
			build(t, second, at)
			if audit := mustAudit(t, p); !audit.Green() || len(audit.Picks) != 1 || audit.Served < 2 {
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
