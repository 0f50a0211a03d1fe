package ledger_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gridcast/builder/ledger"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// life is the life of a round: at each instant a service appends the events that are due and not there yet. A
// process that starts again goes through all of it again.
var life = []struct {
	at  time.Time
	due func(s ledger.RoundRecord) []ledger.Event
}{
	{start.Add(-20 * time.Hour), func(s ledger.RoundRecord) []ledger.Event {
		if s.Pick != nil || len(s.Voided) > 0 {
			return nil
		}
		return one(fullFreeze(ledger.OnForm))
	}},
	{start.Add(-2 * time.Hour), func(s ledger.RoundRecord) []ledger.Event {
		if len(s.Override.Changes) > 0 {
			return nil
		}
		return s.Postpone(start, "flood") // two events in one file: the pick is void with it
	}},
	{start.Add(-time.Hour), func(s ledger.RoundRecord) []ledger.Event {
		if s.Override.Status != ledger.Postponed {
			return nil
		}
		return one(s.Reinstate(start.Add(24*time.Hour), "dry"))
	}},
	{start.Add(20 * time.Hour), func(s ledger.RoundRecord) []ledger.Event {
		if s.Pick != nil {
			return nil
		}
		return one(ledger.Freeze(monaco, pick, start.Add(24*time.Hour), true))
	}},
	{start.Add(26 * time.Hour), func(s ledger.RoundRecord) []ledger.Event {
		if s.Result() != nil {
			return nil
		}
		return one(s.Verify(rows("leclerc", "norris", "russell"), start.Add(24*time.Hour), ""))
	}},
	{start.Add(300 * time.Hour), func(s ledger.RoundRecord) []ledger.Event {
		if len(s.Revisions) > 1 {
			return nil
		}
		return one(s.Verify(rows("norris", "leclerc", "russell"), start.Add(24*time.Hour), "a penalty"))
	}},
}

// runLife opens the ledger and appends a whole life. It returns the head of the last append that was
// acknowledged.
func runLife(ctx context.Context, store blob.Store) (acknowledged ledger.Head, err error) {
	l, err := ledger.Open(ctx, store, ledger.Real, opened, "builder", anArchive)
	if err != nil {
		return ledger.Head{}, err
	}
	acknowledged = l.Head()
	if _, err := decideOn(ctx, l, opened, "builder", func(s *ledger.Fold) ([]ledger.Event, error) {
		if _, known := s.Record(monaco); known {
			return nil, nil
		}
		return one(keyEvent(monaco, 2026, "monaco")), nil
	}); err != nil {
		return acknowledged, err
	}
	acknowledged = l.Head()
	for _, d := range life {
		_, err := decideOn(ctx, l, d.at, "builder", func(s *ledger.Fold) ([]ledger.Event, error) {
			session, _ := s.Record(monaco)
			return d.due(session), nil
		})
		if err != nil {
			return acknowledged, err
		}
		acknowledged = l.Head()
	}
	return acknowledged, nil
}

// A process is killed at each of its writes in turn, then another one goes on. The ledger is whole. It has every
// event once, and all files that the first process saw acknowledged.
func TestCrashAtEveryWrite(t *testing.T) {
	quiet := memblob.New()
	if _, err := runLife(t.Context(), quiet); err != nil {
		t.Fatal(err)
	}
	undisturbed, err := ledger.Load(t.Context(), quiet, ledger.Real)
	if err != nil {
		t.Fatal(err)
	}
	want := session(t, undisturbed.Fold())
	files := 2 + len(life)
	for _, applied := range []bool{false, true} {
		for n := 1; n <= files+1; n++ {
			t.Run(fmt.Sprintf("write %d, applied %v", n, applied), func(t *testing.T) {
				inner := newStore(t)
				store, died := faultblob.Mortal(inner, n, applied)
				acknowledged, err := runLife(t.Context(), store)
				if died() != (err != nil) || died() != (n <= files) {
					t.Fatalf("killed: %v, with %v; want it at writes 1 to %d", died(), err, files)
				}
				if _, err := runLife(t.Context(), inner); err != nil {
					t.Fatalf("the next process: %v", err)
				}
				l, err := ledger.Load(t.Context(), inner, ledger.Real)
				if err != nil {
					t.Fatal(err)
				}
				if got := len(l.Files()); got != files {
					t.Errorf("%d files, want %d: every step once", got, files)
				}
				if acknowledged.Seq > 0 && l.Files()[acknowledged.Seq-1].Hash != acknowledged.Hash {
					t.Errorf("file %d is not the one that the first process saw acknowledged", acknowledged.Seq)
				}
				ids := cmpopts.IgnoreFields(ledger.FrozenPick{}, "EventID")
				if diff := cmp.Diff(want, session(t, l.Fold()), ids); diff != "" {
					t.Errorf("the round (-undisturbed +after the crash):\n%s", diff)
				}
				mustBeGreen(t, inner)
			})
		}
	}
}
